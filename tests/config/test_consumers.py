"""Every field of the cluster file has a consumer: what is written there changes what is done.

For each key there is a file without it and the same file with it. Both are planned; the plan, its
hosts or its simulated world has to differ. A new key without a case fails the first test.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from kubexm.app import planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.config.model.cluster import ClusterFile
from kubexm.document.forms import Form
from kubexm.errors import InvalidInput
from kubexm.plan import codec
from kubexm.templates.merging import merged

_FILES = Path(__file__).parents[2] / "examples" / "clusters" / "files"
_CERTIFICATES = {
    "ca.crt": "etcd-ca.crt",
    "other.crt": "registry-ca.crt",
    "client.crt": "etcd-client.crt",
}
_BASE: dict[str, Any] = {
    "apiVersion": "kubexm.io/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "prod"},
    "spec": {
        "hosts": [
            {"name": "m[1:3]", "address": "10.0.0.[11:13]"},
            {"name": "w1", "address": "10.0.0.21"},
        ],
        "roleGroups": {"control-plane": ["m[1:3]"], "worker": ["w1"]},
        "kubernetes": {"version": "v1.36.3"},
        "network": {"plugin": "routed"},
    },
}


class Case(msgspec.Struct, frozen=True):
    """What is added to the file, and what it has besides."""

    added: dict[str, Any]
    around: dict[str, Any] = {}


def spec(**keys: Any) -> dict[str, Any]:
    return {"spec": keys}


def host(**keys: Any) -> dict[str, Any]:
    """The worker, with more said of it."""
    return spec(hosts=[_BASE["spec"]["hosts"][0], {**_BASE["spec"]["hosts"][1], **keys}])


def kubernetes(**keys: Any) -> dict[str, Any]:
    return spec(kubernetes=keys)


def system(**keys: Any) -> dict[str, Any]:
    return spec(system=keys)


_KEEPALIVED = spec(
    endpoint={"kind": "keepalived", "address": "10.0.0.10"},
    hosts=[*_BASE["spec"]["hosts"], {"name": "lb1", "address": "10.0.0.5"}],
    roleGroups={"loadbalancer": ["lb1"]},
)
_VIP = spec(endpoint={"kind": "kube-vip", "address": "10.0.0.10"})
_BGP = {"mode": "bgp", "bgp": {"asn": 65000, "peers": [{"address": "10.0.0.1", "asn": 65001}]}}
_OWN_ETCD = spec(etcd={"kind": "systemd"})
_EXTERNAL = {
    "endpoints": ["https://10.9.0.1:2379"],
    "ca": "ca.crt",
    "certificate": "client.crt",
    "key": "env://KEY",
}
_REGISTRY = spec(
    hosts=[*_BASE["spec"]["hosts"], {"name": "r1", "address": "10.0.0.40"}],
    roleGroups={"registry": ["r1"]},
)
_ACCESS = spec(
    containerRuntime={"registries": {"images.example": {"mirrors": ["https://a.example"]}}}
)
_SUPPLIED = {"certificate": "ca.crt", "key": "env://CA_KEY"}
_CHART = {"name": "shop", "repository": "https://charts.example", "version": "1.0.0"}
_ADDON = {"name": "shop", "inline": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"}


def access(**keys: Any) -> dict[str, Any]:
    return spec(containerRuntime={"registries": {"images.example": keys}})


def authority(name: str, **keys: Any) -> dict[str, Any]:
    return kubernetes(certificates={"authorities": {name: {**_SUPPLIED, **keys}}})


def chart(**keys: Any) -> dict[str, Any]:
    return spec(addons=[{"name": "shop", "chart": {**_CHART, **keys}}])


def addon(**keys: Any) -> dict[str, Any]:
    return spec(addons=[{**_ADDON, **keys}])


def external(**keys: Any) -> dict[str, Any]:
    return spec(etcd={"external": {**_EXTERNAL, **keys}})


def bgp(**keys: Any) -> dict[str, Any]:
    return spec(endpoint={"kubeVip": {**_BGP, "bgp": {**_BGP["bgp"], **keys}}})  # type: ignore[dict-item]


_PLUGINS = {name: spec(network={"plugin": name}) for name in ("flannel", "calico", "cilium")}
_AUDIT = kubernetes(apiServer={"audit": {"enabled": True}})
_ENCRYPTED = kubernetes(apiServer={"encryption": {"enabled": True}})
_LOCAL = spec(storage={"localPath": {"enabled": True}})
_NFS = {"server": "nfs.example", "path": "/exports"}
_NODE_LOCAL = spec(dns={"nodeLocal": {"enabled": True}})
_BACKUP = spec(etcd={"backup": {"every": "6h"}})
_PROXY = system(proxy={"http": "http://proxy.example:3128"})
_DUAL = spec(
    hosts=[
        {"name": "m1", "address": "10.0.0.11", "internalAddresses": ["10.0.0.11", "fd00::11"]},
    ],
    roleGroups={"control-plane": ["m1"], "worker": ["m1"]},
    network={
        "podCIDR": ["10.244.0.0/16", "fd00:64::/56"],
        "serviceCIDR": ["10.96.0.0/16", "fd00:96::/112"],
    },
)

CASES: dict[str, Case] = {
    "metadata.name": Case({"metadata": {"name": "other"}}),
    "spec.hosts.name": Case(merged(host(name="other"), spec(roleGroups={"worker": ["other"]}))),
    "spec.hosts.address": Case(host(address="10.0.0.22")),
    "spec.hosts.internalAddresses": Case(host(internalAddresses=["10.1.0.21"])),
    "spec.hosts.connection": Case(host(connection="local")),
    "spec.hosts.arch": Case(host(arch="arm64")),
    "spec.hosts.labels": Case(host(labels={"zone": "a"})),
    "spec.hosts.taints.key": Case(
        host(taints=[{"key": "b", "effect": "NoSchedule"}]),
        host(taints=[{"key": "a", "effect": "NoSchedule"}]),
    ),
    "spec.hosts.taints.value": Case(
        host(taints=[{"key": "a", "value": "x", "effect": "NoSchedule"}]),
        host(taints=[{"key": "a", "effect": "NoSchedule"}]),
    ),
    "spec.hosts.taints.effect": Case(
        host(taints=[{"key": "a", "effect": "NoExecute"}]),
        host(taints=[{"key": "a", "effect": "NoSchedule"}]),
    ),
    "spec.hosts.sudo": Case(host(sudo=True)),
    "spec.hosts.ssh": Case(host(ssh={"user": "admin"})),
    "spec.roleGroups.control-plane": Case(spec(roleGroups={"control-plane": ["m1"]})),
    "spec.roleGroups.worker": Case(spec(roleGroups={"worker": ["w1", "m1"]})),
    "spec.roleGroups.etcd": Case(spec(roleGroups={"etcd": ["m1"]})),
    "spec.roleGroups.loadbalancer": Case(
        spec(
            hosts=[*_KEEPALIVED["spec"]["hosts"], {"name": "lb2", "address": "10.0.0.6"}],
            roleGroups={"loadbalancer": ["lb1", "lb2"]},
        ),
        _KEEPALIVED,
    ),
    "spec.roleGroups.registry": Case(
        spec(roleGroups={"registry": ["r1"]}),
        spec(hosts=_REGISTRY["spec"]["hosts"], roleGroups={"worker": ["w1", "r1"]}),
    ),
    "spec.ssh": Case(spec(ssh={"user": "admin"})),
    "spec.sudo": Case(spec(sudo=True)),
    "spec.endpoint.kind": Case(spec(endpoint={"kind": "nginx"})),
    "spec.endpoint.domain": Case(spec(endpoint={"domain": "api.example"})),
    "spec.endpoint.address": Case(
        spec(endpoint={"address": "10.0.0.9"}),
        spec(endpoint={"kind": "external", "address": "10.0.0.10"}),
    ),
    "spec.endpoint.port": Case(spec(endpoint={"port": 8443}), _KEEPALIVED),
    "spec.endpoint.keepalived.interface": Case(
        spec(endpoint={"keepalived": {"interface": "eth7"}}), _KEEPALIVED
    ),
    "spec.endpoint.keepalived.routerId": Case(
        spec(endpoint={"keepalived": {"routerId": 77}}), _KEEPALIVED
    ),
    "spec.endpoint.kubeVip.mode": Case(spec(endpoint={"kubeVip": _BGP}), _VIP),
    "spec.endpoint.kubeVip.interface": Case(
        spec(endpoint={"kubeVip": {"interface": "eth7"}}), _VIP
    ),
    "spec.endpoint.kubeVip.bgp.asn": Case(
        bgp(asn=65010), merged(_VIP, spec(endpoint={"kubeVip": _BGP}))
    ),
    "spec.endpoint.kubeVip.bgp.peers.address": Case(
        bgp(peers=[{"address": "10.0.0.2", "asn": 65001}]),
        merged(_VIP, spec(endpoint={"kubeVip": _BGP})),
    ),
    "spec.endpoint.kubeVip.bgp.peers.asn": Case(
        bgp(peers=[{"address": "10.0.0.1", "asn": 65002}]),
        merged(_VIP, spec(endpoint={"kubeVip": _BGP})),
    ),
    "spec.kubernetes.version": Case(kubernetes(version="v1.35.4")),
    "spec.kubernetes.clusterName": Case(kubernetes(clusterName="other")),
    "spec.kubernetes.featureGates": Case(kubernetes(featureGates={"ContextualLogging": True})),
    "spec.kubernetes.imageRepository": Case(kubernetes(imageRepository="images.example/k8s")),
    "spec.kubernetes.apiServer.certSans": Case(kubernetes(apiServer={"certSans": ["a.example"]})),
    "spec.kubernetes.apiServer.extraArgs": Case(kubernetes(apiServer={"extraArgs": {"v": "4"}})),
    "spec.kubernetes.apiServer.audit.enabled": Case(_AUDIT),
    "spec.kubernetes.apiServer.audit.policy": Case(
        kubernetes(apiServer={"audit": {"policy": "policy.yaml"}}), _AUDIT
    ),
    "spec.kubernetes.apiServer.audit.maxAgeDays": Case(
        kubernetes(apiServer={"audit": {"maxAgeDays": 3}}), _AUDIT
    ),
    "spec.kubernetes.apiServer.audit.maxBackups": Case(
        kubernetes(apiServer={"audit": {"maxBackups": 3}}), _AUDIT
    ),
    "spec.kubernetes.apiServer.audit.maxSizeMib": Case(
        kubernetes(apiServer={"audit": {"maxSizeMib": 3}}), _AUDIT
    ),
    "spec.kubernetes.apiServer.encryption.enabled": Case(_ENCRYPTED),
    "spec.kubernetes.apiServer.encryption.provider": Case(
        kubernetes(apiServer={"encryption": {"provider": "aescbc"}}), _ENCRYPTED
    ),
    "spec.kubernetes.apiServer.encryption.resources": Case(
        kubernetes(apiServer={"encryption": {"resources": ["configmaps"]}}), _ENCRYPTED
    ),
    "spec.kubernetes.controllerManager.extraArgs": Case(
        kubernetes(controllerManager={"extraArgs": {"v": "4"}})
    ),
    "spec.kubernetes.scheduler.extraArgs": Case(kubernetes(scheduler={"extraArgs": {"v": "4"}})),
    "spec.kubernetes.kubelet.maxPods": Case(kubernetes(kubelet={"maxPods": 60})),
    "spec.kubernetes.kubelet.config": Case(kubernetes(kubelet={"config": {"eventRecordQPS": 5}})),
    "spec.kubernetes.kubelet.extraArgs": Case(kubernetes(kubelet={"extraArgs": {"v": "4"}})),
    "spec.kubernetes.kubeProxy.mode": Case(kubernetes(kubeProxy={"mode": "nftables"})),
    "spec.kubernetes.kubeProxy.config": Case(kubernetes(kubeProxy={"config": {"oomScoreAdj": 1}})),
    "spec.kubernetes.kubeadm.clusterConfiguration": Case(
        kubernetes(
            kubeadm={"clusterConfiguration": {"featureGates": {"RootlessControlPlane": True}}}
        )
    ),
    "spec.kubernetes.kubeadm.initConfiguration": Case(
        kubernetes(kubeadm={"initConfiguration": {"skipPhases": ["x"]}})
    ),
    "spec.kubernetes.kubeadm.joinConfiguration": Case(
        kubernetes(kubeadm={"joinConfiguration": {"skipPhases": ["x"]}})
    ),
    "spec.kubernetes.kubeadm.patches": Case(kubernetes(kubeadm={"patches": {"etcd": "a.yaml"}})),
    "spec.kubernetes.kubeadm.ignorePreflightErrors": Case(
        kubernetes(kubeadm={"ignorePreflightErrors": ["NumCPU"]})
    ),
    "spec.kubernetes.certificates.duration": Case(kubernetes(certificates={"duration": "90d"})),
    "spec.kubernetes.certificates.authorityDuration": Case(
        kubernetes(certificates={"authorityDuration": "2000d"})
    ),
    "spec.kubernetes.certificates.algorithm": Case(
        kubernetes(certificates={"algorithm": "ECDSA-P256"})
    ),
    **{
        f"spec.kubernetes.certificates.authorities.{name}.{key}": Case(
            authority(name, **{key: value}), authority(name)
        )
        for name in ("kubernetes", "etcd", "frontProxy")
        for key, value in (("certificate", "other.crt"), ("key", "env://OTHER"))
    },
    "spec.etcd.kind": Case(_OWN_ETCD),
    "spec.etcd.version": Case(spec(etcd={"version": "v3.6.6"}), _OWN_ETCD),
    "spec.etcd.dataDir": Case(spec(etcd={"dataDir": "/data/etcd"})),
    "spec.etcd.external.endpoints": Case(external(endpoints=["https://10.9.0.2:2379"]), external()),
    "spec.etcd.external.ca": Case(external(ca="other.crt"), external()),
    "spec.etcd.external.certificate": Case(external(certificate="other.crt"), external()),
    "spec.etcd.external.key": Case(external(key="env://OTHER"), external()),
    **{
        f"spec.etcd.tuning.{key}": Case(spec(etcd={"tuning": {key: value}}), around)
        for around in (_OWN_ETCD,)
        for key, value in (
            ("heartbeat", "100ms"),
            ("election", "9s"),
            ("snapshotCount", 5000),
            ("compaction", "1h"),
            ("quotaMib", 4096),
            ("maxRequestKib", 2048),
        )
    },
    "spec.etcd.backup.every": Case(_BACKUP),
    "spec.etcd.backup.keep": Case(spec(etcd={"backup": {"keep": 3}}), _BACKUP),
    "spec.etcd.backup.directory": Case(spec(etcd={"backup": {"directory": "/b"}}), _BACKUP),
    "spec.etcd.extraArgs": Case(spec(etcd={"extraArgs": {"log-level": "warn"}})),
    "spec.containerRuntime.version": Case(spec(containerRuntime={"version": "v2.2.7"})),
    "spec.containerRuntime.root": Case(spec(containerRuntime={"root": "/data/containerd"})),
    "spec.containerRuntime.systemdCgroup": Case(spec(containerRuntime={"systemdCgroup": False})),
    "spec.containerRuntime.sandboxImage": Case(
        spec(containerRuntime={"sandboxImage": "images.example/pause:1"})
    ),
    "spec.containerRuntime.registries.mirrors": Case(access(mirrors=["https://b.example"])),
    "spec.containerRuntime.registries.auth.username": Case(
        access(auth={"username": "other", "password": "env://P"}),
        access(auth={"username": "one", "password": "env://P"}),
    ),
    "spec.containerRuntime.registries.auth.password": Case(
        access(auth={"username": "one", "password": "env://Q"}),
        access(auth={"username": "one", "password": "env://P"}),
    ),
    "spec.containerRuntime.registries.ca": Case(access(ca="ca.crt"), _ACCESS),
    "spec.containerRuntime.registries.insecure": Case(access(insecure=True), _ACCESS),
    "spec.containerRuntime.registries.plainHttp": Case(access(plainHttp=True), _ACCESS),
    "spec.containerRuntime.config": Case(
        spec(containerRuntime={"config": {"debug": {"level": "warn"}}})
    ),
    "spec.network.plugin": Case(_PLUGINS["flannel"]),
    "spec.network.podCIDR": Case(spec(network={"podCIDR": "10.200.0.0/16"})),
    "spec.network.serviceCIDR": Case(spec(network={"serviceCIDR": "10.96.0.0/16"})),
    "spec.network.nodeMask": Case(spec(network={"nodeMask": 25})),
    "spec.network.nodeMaskIpv6": Case(spec(network={"nodeMaskIpv6": 72}), _DUAL),
    "spec.network.mtu": Case(spec(network={"mtu": 1400})),
    "spec.network.flannel.version": Case(
        spec(network={"flannel": {"version": "v0.28.4"}}), _PLUGINS["flannel"]
    ),
    "spec.network.flannel.backend": Case(
        spec(network={"flannel": {"backend": "host-gw"}}), _PLUGINS["flannel"]
    ),
    "spec.network.flannel.interface": Case(
        spec(network={"flannel": {"interface": "eth7"}}), _PLUGINS["flannel"]
    ),
    "spec.network.calico.version": Case(
        spec(network={"calico": {"version": "v3.32.0"}}), _PLUGINS["calico"]
    ),
    "spec.network.calico.encapsulation": Case(
        spec(network={"calico": {"encapsulation": "ipip"}}), _PLUGINS["calico"]
    ),
    "spec.network.calico.blockSize": Case(
        spec(network={"calico": {"blockSize": 24}}), _PLUGINS["calico"]
    ),
    "spec.network.cilium.version": Case(
        spec(network={"cilium": {"version": "v1.19.7"}}), _PLUGINS["cilium"]
    ),
    "spec.network.cilium.values": Case(
        spec(network={"cilium": {"values": {"debug": {"enabled": True}}}}), _PLUGINS["cilium"]
    ),
    "spec.dns.domain": Case(spec(dns={"domain": "k8s.example"})),
    "spec.dns.version": Case(spec(dns={"version": "v1.13.1"})),
    "spec.dns.replicas": Case(spec(dns={"replicas": 3})),
    "spec.dns.upstream": Case(spec(dns={"upstream": []})),
    "spec.dns.zones.names": Case(
        spec(dns={"zones": [{"names": ["b.example"], "servers": ["10.0.0.53"]}]}),
        spec(dns={"zones": [{"names": ["a.example"], "servers": ["10.0.0.53"]}]}),
    ),
    "spec.dns.zones.servers": Case(
        spec(dns={"zones": [{"names": ["a.example"], "servers": ["10.0.0.54"]}]}),
        spec(dns={"zones": [{"names": ["a.example"], "servers": ["10.0.0.53"]}]}),
    ),
    "spec.dns.nodeLocal.enabled": Case(_NODE_LOCAL),
    "spec.dns.nodeLocal.address": Case(
        spec(dns={"nodeLocal": {"address": "169.254.20.10"}}), _NODE_LOCAL
    ),
    "spec.storage.localPath.enabled": Case(_LOCAL),
    "spec.storage.localPath.version": Case(
        spec(storage={"localPath": {"version": "v0.0.36"}}), _LOCAL
    ),
    "spec.storage.localPath.directory": Case(
        spec(storage={"localPath": {"directory": "/data"}}), _LOCAL
    ),
    "spec.storage.nfs.server": Case(
        spec(storage={"nfs": {"server": "b.example"}}), spec(storage={"nfs": _NFS})
    ),
    "spec.storage.nfs.path": Case(
        spec(storage={"nfs": {"path": "/other"}}), spec(storage={"nfs": _NFS})
    ),
    "spec.storage.defaultClass": Case(
        spec(storage={"defaultClass": "nfs"}), merged(_LOCAL, spec(storage={"nfs": _NFS}))
    ),
    "spec.registry.host": Case(spec(registry={"host": "images.example"})),
    "spec.registry.port": Case(
        spec(registry={"port": 5443}), spec(registry={"host": "images.example"})
    ),
    "spec.registry.dataDir": Case(spec(registry={"dataDir": "/data/images"}), _REGISTRY),
    "spec.addons.name": Case(addon(name="other"), addon()),
    "spec.addons.namespace": Case(addon(namespace="other"), addon()),
    "spec.addons.manifests": Case(spec(addons=[{"name": "shop", "manifests": ["a.yaml"]}])),
    "spec.addons.inline": Case(addon()),
    "spec.addons.component": Case(spec(addons=[{"name": "m", "component": "metrics-server"}])),
    "spec.addons.timeout": Case(addon(timeout="9m"), addon()),
    "spec.addons.chart.name": Case(chart(name="other"), chart()),
    "spec.addons.chart.repository": Case(chart(repository="https://other.example"), chart()),
    "spec.addons.chart.version": Case(chart(version="1.1.0"), chart()),
    "spec.addons.chart.values": Case(chart(values={"a": 1}), chart()),
    "spec.addons.chart.valuesFiles": Case(chart(valuesFiles=["values.yaml"]), chart()),
    "spec.system.ntp.enabled": Case(system(ntp={"enabled": False})),
    "spec.system.ntp.servers": Case(system(ntp={"servers": ["ntp.example"]})),
    "spec.system.timeZone": Case(system(timeZone="Europe/Berlin")),
    "spec.system.sysctl": Case(system(sysctl={"vm.swappiness": "10"})),
    "spec.system.modules": Case(system(modules=["nf_conntrack"])),
    "spec.system.packages": Case(system(packages=["htop"])),
    "spec.system.hosts.address": Case(
        system(hosts=[{"address": "10.9.9.8", "names": ["a.example"]}]),
        system(hosts=[{"address": "10.9.9.9", "names": ["a.example"]}]),
    ),
    "spec.system.hosts.names": Case(
        system(hosts=[{"address": "10.9.9.9", "names": ["b.example"]}]),
        system(hosts=[{"address": "10.9.9.9", "names": ["a.example"]}]),
    ),
    "spec.system.proxy.http": Case(_PROXY),
    "spec.system.proxy.https": Case(system(proxy={"https": "http://p.example:3128"})),
    "spec.system.proxy.noProxy": Case(system(proxy={"noProxy": [".example"]}), _PROXY),
    "spec.preflight.skip": Case(spec(preflight={"skip": ["etcd-disk"]})),
    **{
        f"spec.preflight.{key}": Case(spec(preflight={key: value}))
        for key, value in (
            ("controlPlaneCpus", 4),
            ("controlPlaneMemoryMib", 4096),
            ("workerCpus", 2),
            ("workerMemoryMib", 2048),
            ("diskFreeMib", 20480),
            ("etcdFsync", "20ms"),
        )
    },
    "spec.onFailure": Case(spec(onFailure="rollback")),
    "spec.templates": Case(spec(templates="templates")),
    "spec.hooks": Case(
        spec(hooks={"system": {"pre": [{"name": "note", "command": {"argv": ["true"]}}]}})
    ),
}

ELSEWHERE = {
    "apiVersion": "says what kind of file it is: another is refused",
    "kind": "says what kind of file it is: another is refused",
    "spec.containerRuntime.kind": "has one value",
    "spec.preflight.clockOffset": "judged across hosts before a run: tests/app/test_preflight.py",
    "spec.storage.nfs.version": "the catalog has one; another is refused, as below",
    "metadata.labels": "shown with the cluster by `kubexm get`: tests/cli/test_clusters.py",
}
"""Keys that change no plan, and where they count."""


def keys(form: type[Form], path: tuple[str, ...] = ()) -> Iterator[str]:
    """The path of every key that is no form itself; what ssh takes is told by its own tests."""
    for field in form.fields().values():
        if "\0" in field.alias:
            continue
        below = [*_forms(field.annotation)]
        if not below or field.alias == "ssh":
            yield ".".join((*path, field.alias))
        for inner in below if field.alias != "ssh" else ():
            yield from keys(inner, (*path, field.alias))


def _forms(annotation: Any) -> Iterator[type[Form]]:
    if isinstance(annotation, type) and issubclass(annotation, Form):
        yield annotation
    for argument in get_args(annotation):
        yield from _forms(argument)


def test_every_key_has_a_case() -> None:
    known = {*CASES, *ELSEWHERE}
    assert sorted({*keys(ClusterFile)} - known) == []
    assert sorted(known - {*keys(ClusterFile)}) == []


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    beside(tmp_path)
    return tmp_path


def beside(tmp_path: Path) -> None:
    """Lay beside a cluster file what it may name."""
    for name, file in _CERTIFICATES.items():
        shutil.copyfile(_FILES / file, tmp_path / name)
    shutil.copyfile(_FILES / "audit-policy.yaml", tmp_path / "policy.yaml")
    (tmp_path / "values.yaml").write_text("name: a\n")
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    overlay = tmp_path / "templates" / "crictl"
    overlay.mkdir(parents=True)
    (overlay / "config.j2").write_text("# ours\nruntime-endpoint: {{ socket | yaml }}\n")


def plan(directory: Path, data: Mapping[str, Any]) -> bytes:
    """All that a file leads to, in a form that can be compared."""
    file = directory / "cluster.yaml"
    file.write_bytes(msgspec.json.encode(data))
    planned = planning.plan(PlanParams(OperationParams(ClusterParams(file))))
    return b"\n".join(
        (codec.encode(planned.graph), *(msgspec.json.encode(one) for one in planned.hosts))
    )


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(CASES.keys() - ELSEWHERE.keys()))
def test_what_is_written_changes_what_is_done(key: str, directory: Path) -> None:
    case = CASES[key]
    around = merged(deepcopy(_BASE), case.around)
    assert plan(directory, merged(deepcopy(around), case.added)) != plan(directory, around)


def test_a_version_that_the_catalog_does_not_have_is_refused(directory: Path) -> None:
    around = merged(deepcopy(_BASE), spec(storage={"nfs": {**_NFS, "version": "v4.0.9"}}))
    with pytest.raises(InvalidInput) as caught:
        plan(directory, around)
    assert "v4.0.9" in str(caught.value.problems)
