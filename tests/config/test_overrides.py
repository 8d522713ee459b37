"""What is laid over the settings of programs: all but what contradicts the rest of the file."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.test_rules import THREE, cluster, told

from kubexm.config.cluster import checked
from kubexm.document import source
from kubexm.errors import InvalidCluster
from kubexm.templates.merging import merged

VERSION = {"kubernetes": {"version": "v1.36.3"}}
CRI, RUNTIME = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
PLUGINS = "containerRuntime/config/plugins"
IMAGES = "io.containerd.cri.v1.images"
BEHIND_HAPROXY = {"roleGroups": {"control-plane": [THREE]}}
ANONYMOUS = {"kubernetes": {"apiServer": {"extraArgs": {"anonymous-auth": "false"}}}}


def at(path: str, value: Any) -> dict[str, Any]:
    """A spec that says one thing, at a path with `/` between its keys."""
    for key in reversed(path.split("/")):
        value = {key: value}
    # Laid over by `merged`, a `null` would be gone.
    kubernetes = {**VERSION["kubernetes"], **value.get("kubernetes", {})}
    return {**value, "kubernetes": kubernetes}


CLUSTER, INIT, JOIN = (
    f"kubernetes/kubeadm/{document}Configuration" for document in ("cluster", "init", "join")
)
REFUSED = {
    f"{CLUSTER}/apiVersion": "kubeadm.k8s.io/v1beta3",
    f"{CLUSTER}/kind": "Foo",
    f"{CLUSTER}/kubernetesVersion": "v1.30.0",
    f"{CLUSTER}/clusterName": "other",
    f"{CLUSTER}/controlPlaneEndpoint": "a.example:6443",
    f"{CLUSTER}/certificatesDir": "/etc/x",
    f"{CLUSTER}/imageRepository": "images.example",
    f"{CLUSTER}/networking": {"podSubnet": "10.1.0.0/16"},
    f"{CLUSTER}/etcd": {"local": {"dataDir": "/data"}},
    f"{CLUSTER}/dns": {"disabled": False},
    f"{CLUSTER}/proxy": {"disabled": True},
    f"{CLUSTER}/apiServer/certSANs": ["a.example"],
    f"{CLUSTER}/controllerManager/extraArgs/cluster-cidr": "10.1.0.0/16",
    f"{INIT}/localAPIEndpoint": {"bindPort": 7443},
    f"{INIT}/nodeRegistration/name": "other",
    f"{INIT}/nodeRegistration/taints": [],
    f"{INIT}/dryRun": True,
    f"{JOIN}/controlPlane": {},
    f"{JOIN}/discovery/file": {"kubeConfigPath": "/x"},
    f"{JOIN}/patches": {"directory": "/x"},
    "kubernetes/kubelet/config/port": 10251,
    "kubernetes/kubelet/config/healthzPort": 10257,
    "kubernetes/kubelet/extraArgs/port": "10251",
    "kubernetes/kubelet/extraArgs/healthz-port": "10257",
    "kubernetes/kubelet/extraArgs/read-only-port": "10255",
    "kubernetes/apiServer/extraArgs/secure-port": "7443",
    "kubernetes/apiServer/extraArgs/secure_port": "7443",
    "kubernetes/apiServer/extraArgs/service-cluster-ip-range": "10.1.0.0/16",
    "kubernetes/apiServer/extraArgs/etcd-servers": "https://10.0.0.1:2379",
    "kubernetes/apiServer/extraArgs/etcd-certfile": "/x",
    "kubernetes/apiServer/extraArgs/advertise-address": "10.0.0.1",
    "kubernetes/controllerManager/extraArgs/cluster-cidr": "10.1.0.0/16",
    "kubernetes/controllerManager/extraArgs/node-cidr-mask-size-ipv6": "64",
    "kubernetes/scheduler/extraArgs/secure-port": "7443",
    "kubernetes/kubelet/config/kind": "Bar",
    "kubernetes/kubelet/config/clusterDNS": ["10.0.0.1"],
    "kubernetes/kubelet/config/clusterDomain": "a.example",
    "kubernetes/kubelet/config/cgroupDriver": "cgroupfs",
    "kubernetes/kubelet/config/staticPodPath": "/x",
    "kubernetes/kubelet/config/containerRuntimeEndpoint": "unix:///x",
    "kubernetes/kubelet/extraArgs/node-ip": "10.0.0.1",
    "kubernetes/kubelet/extraArgs/hostname-override": "x",
    "kubernetes/kubelet/extraArgs/config": "/x",
    "kubernetes/kubelet/extraArgs/bootstrap-kubeconfig": "/x",
    "kubernetes/kubelet/extraArgs/max-pods": "500",
    "kubernetes/kubeProxy/config/mode": "ipvs",
    "kubernetes/kubeProxy/config/clusterCIDR": "10.1.0.0/16",
    "etcd/extraArgs/name": "x",
    "etcd/extraArgs/listen-client-urls": "https://0.0.0.0:2379",
    "etcd/extraArgs/listen-peer-urls": "https://0.0.0.0:2380",
    "etcd/extraArgs/initial-cluster-state": "existing",
    "etcd/extraArgs/peer-cert-file": "/x",
    "etcd/extraArgs/heartbeat-interval": "100",
    "etcd/extraArgs/auto-compaction-mode": "revision",
    "etcd/extraArgs/auto-compaction-retention": "5h",
    "containerRuntime/config/version": 2,
    "containerRuntime/config/root": "/x",
    f"{PLUGINS}/{IMAGES}/pinned_images/sandbox": "x",
    f"{PLUGINS}/{RUNTIME}/containerd/runtimes/runc/options/SystemdCgroup": True,
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_the_file_has_a_key_for_or_others_depend_on_is_refused(path: str) -> None:
    (found,) = told(cluster(**at(path, REFUSED[path])))

    assert found.startswith(f"spec.{path.replace('/', '.')}: ")
    assert "can't be set here: " in found


@pytest.mark.parametrize(
    ("path", "flag"),
    [
        (f"{CLUSTER}/apiServer/extraArgs", "secure-port"),
        (f"{INIT}/nodeRegistration/kubeletExtraArgs", "node-ip"),
    ],
)
def test_a_flag_in_a_list_is_refused_at_its_entry(path: str, flag: str) -> None:
    flags = [{"name": "v", "value": "4"}, {"name": flag, "value": "x"}]

    (found,) = told(cluster(**at(path, flags)))

    assert found.startswith(f"spec.{path.replace('/', '.')}[1]: `{flag}` can't be set here")


def test_the_key_of_the_file_is_named() -> None:
    data = cluster(**at("kubernetes/kubelet/config/clusterDomain", "a.example"))

    with pytest.raises(InvalidCluster) as caught:
        checked(source.from_data(data))

    assert caught.value.problems[0].hint == "write `spec.dns.domain` in its place"


TAKEN = {
    "kubernetes/kubelet/config": {
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "featureGates": {"X": True},
        "maxPods": 200,
    },
    "kubernetes/kubeProxy": {"mode": "nftables", "config": {"conntrack": {"maxPerCore": 0}}},
    "containerRuntime": {
        "systemdCgroup": False,
        "config": {"plugins": {RUNTIME: {"restrict_oom_score_adj": True}}},
    },
    "kubernetes/kubeadm/ignorePreflightErrors": ["SystemVerification", "KernelModules"],
    "kubernetes/apiServer/extraArgs": {"anonymous-auth": "true", "event-ttl": "2h"},
    f"{CLUSTER}/apiServer": {"extraVolumes": [], "extraEnvs": [{"name": "A", "value": "b"}]},
    f"{INIT}/timeouts": {"discovery": "9m"},
    f"{JOIN}/nodeRegistration": {"imagePullSerial": False},
    f"{PLUGINS}/{CRI}": {"stream_server_port": "10010"},
    "etcd/extraArgs": {"log-level": "warn", "listen-metrics-urls": "http://0.0.0.0:2381"},
}


@pytest.mark.parametrize("path", TAKEN)
def test_all_else_is_taken(path: str) -> None:
    assert told(cluster(**at(path, TAKEN[path]))) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{CLUSTER}/apiServer", None),
        (f"{CLUSTER}/apiServer/extraArgs", None),
        (f"{CLUSTER}/apiServer/extraArgs", []),
        (f"{CLUSTER}/apiServer/extraArgs", [{"value": "x"}]),
        (f"{CLUSTER}/controllerManager", None),
        (f"{INIT}/nodeRegistration", None),
        (f"{INIT}/nodeRegistration/kubeletExtraArgs", []),
        (f"{JOIN}/discovery", None),
        (PLUGINS, None),
        (f"{PLUGINS}/{IMAGES}", None),
        (f"{PLUGINS}/{RUNTIME}/containerd/runtimes", None),
        ("containerRuntime/config/grpc", None),
    ],
)
def test_what_has_parts_of_ours_is_not_taken_away_as_a_whole(path: str, value: Any) -> None:
    (found,) = told(cluster(**at(path, value)))

    name = path.rpartition("/")[2]
    assert found.startswith(f"spec.{path.replace('/', '.')}: `{name}` can't be taken away")


IN_USE: dict[str, Any] = {
    "apiServer": {"encryption": {"enabled": True}, "audit": {"enabled": True}},
    "featureGates": {"ContextualLogging": True},
}
FLAGS = {
    "apiServer": ("encryption-provider-config", "audit_policy_file", "audit-log-maxage"),
    **dict.fromkeys(("controllerManager", "scheduler"), ("feature-gates",)),
}


@pytest.mark.parametrize(("part", "flag"), [(part, flag) for part in FLAGS for flag in FLAGS[part]])
def test_what_is_in_use_is_not_set_by_a_flag(part: str, flag: str) -> None:
    by_key = at(f"kubernetes/{part}/extraArgs", {flag: "x"})
    by_list = at(f"{CLUSTER}/{part}/extraArgs", [{"name": flag, "value": "x"}])

    for spec in (by_key, by_list):
        assert told(cluster(**spec)) == []
        (found,) = told(cluster(**merged(spec, {"kubernetes": IN_USE})))
        assert f"`{flag}` can't be set here: the file has `kubernetes." in found


@pytest.mark.parametrize(
    ("part", "flag", "wrong", "right"),
    [
        ("apiServer", "allow-privileged", "false", "true"),
        ("apiServer", "enable_bootstrap_token_auth", "False", "true"),
        ("apiServer", "bind-address", "127.0.0.1", "0.0.0.0"),
        ("apiServer", "bind-address", "::1", "::"),
        ("apiServer", "bind-address", "localhost", "0.0.0.0"),
        ("controllerManager", "allocate-node-cidrs", "0", "true"),
    ],
)
def test_no_flag_cuts_the_cluster_off(part: str, flag: str, wrong: str, right: str) -> None:
    def judged(value: str, plugin: str = "flannel") -> list[str]:
        by_key = at(f"kubernetes/{part}/extraArgs", {flag: value})
        by_list = at(f"{CLUSTER}/{part}/extraArgs", [{"name": flag, "value": value}])
        network = {"network": {"plugin": plugin}}
        return [one for spec in (by_key, by_list) for one in told(cluster(**spec, **network))]

    assert [f"found `{wrong}`, and " in one for one in judged(wrong)] == [True, True]
    assert judged(right) == []
    is_of_nodes = flag == "allocate-node-cidrs"
    assert len(judged(wrong, "calico")) == (0 if is_of_nodes else 2)


def test_the_log_of_requests_may_go_elsewhere() -> None:
    spec = at("kubernetes/apiServer/extraArgs", {"audit-log-path": "-"})

    assert told(cluster(**merged(spec, {"kubernetes": IN_USE}))) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "extraVolumes: `extraVolumes` can't be taken away as a whole"),
        ([], "extraVolumes: `extraVolumes` can't be taken away as a whole"),
        ([{"name": "encryption"}], "extraVolumes[0]: `encryption` can't be set here"),
        ([{"name": "mine"}], ""),
    ],
)
def test_files_of_what_is_in_use_stay_with_the_api_server(value: Any, message: str) -> None:
    spec = merged(at(f"{CLUSTER}/apiServer/extraVolumes", value), {"kubernetes": IN_USE})

    found = told(cluster(**spec))

    assert [message in one for one in found] == ([True] if message else [])


def test_pods_of_a_host_are_counted_as_the_kubelet_is_told() -> None:
    spec = at("kubernetes/kubelet/config/maxPods", 500)

    (found,) = told(cluster(**spec, network={"plugin": "flannel"}))

    assert "a /24 has 254 addresses for 500 pods of a host" in found
    assert told(cluster(**spec)) == [], "calico takes more blocks as it needs them"


@pytest.mark.parametrize(
    ("around", "who"),
    [
        ({}, "the probes of its pod ask"),
        (BEHIND_HAPROXY, "haproxy and the probes of its pod ask"),
        (merged(BEHIND_HAPROXY, at("kubernetes/kubeadm/patches/kube-apiserver", "a")), "haproxy"),
    ],
)
def test_who_asks_for_the_health_of_an_api_server_has_no_credentials(
    around: dict[str, Any], who: str
) -> None:
    (found,) = told(cluster(**merged(merged(VERSION, ANONYMOUS), around)))

    assert f"extraArgs.anonymous-auth: {who}" in found


def test_a_pod_with_other_probes_may_refuse_those_without_credentials() -> None:
    patched = at("kubernetes/kubeadm/patches/kube-apiserver", "a.yaml")

    assert told(cluster(**merged(patched, ANONYMOUS))) == []


@pytest.mark.parametrize(
    ("version", "path", "key"),
    [
        ("v1.36.3", CLUSTER, "netwoking"),
        ("v1.36.3", INIT, "localApiEndpoint"),
        ("v1.36.3", JOIN, "timeout"),
        ("v1.30.0", INIT, "timeouts"),
    ],
)
def test_what_kubeadm_does_not_read_is_refused(version: str, path: str, key: str) -> None:
    spec = merged(at(f"{path}/{key}", {}), {"kubernetes": {"version": version}})

    (found,) = told(cluster(**spec))

    assert found == f"spec.{path.replace('/', '.')}.{key}: unknown key `{key}`"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("netwoking", "write `spec.network.podCIDR`"),
        ("kubernetesVerson", "write `spec.kubernetes.version` in its place"),
        ("apiSever", "did you mean `apiServer`?"),
    ],
)
def test_no_hint_proposes_a_key_that_is_refused_too(key: str, hint: str) -> None:
    with pytest.raises(InvalidCluster) as caught:
        checked(source.from_data(cluster(**at(f"{CLUSTER}/{key}", {}))))

    assert caught.value.problems[0].hint.startswith(hint)


@pytest.mark.parametrize(
    ("version", "plugin", "is_read"),
    [("v1.7.28", CRI, True), ("v1.7.28", RUNTIME, False), ("v2.2.7", CRI, False)],
)
def test_a_plugin_of_containerd_has_the_name_that_its_version_gives_it(
    version: str, plugin: str, is_read: bool
) -> None:
    plugins = {plugin: {"restrict_oom_score_adj": True}}
    runtime = {"version": version, "config": {"plugins": plugins}}

    assert (told(cluster(containerRuntime=runtime)) == []) == is_read
