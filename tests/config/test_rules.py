"""Every rule between fields of a cluster file: what breaks it, and where that is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kubexm.config.cluster import RULES, checked, parse_cluster
from kubexm.config.members import members
from kubexm.config.model.cluster import ClusterFile
from kubexm.config.rules.rule import Declared, Rule
from kubexm.document import source
from kubexm.errors import InvalidCluster

THREE = "node[1:3]"
HOSTS = [{"name": THREE, "address": "10.0.0.[11:13]"}]
FIVE = [{"name": "node[1:5]", "address": "10.0.0.[11:15]"}]
DISK = {"key": "disk", "effect": "NoSchedule"}
DUAL = {"podCIDR": ["10.1.0.0/16", "fd00:1::/48"], "serviceCIDR": ["10.2.0.0/16", "fd00:2::/112"]}


def cluster(**spec: Any) -> dict[str, Any]:
    body = {"kubernetes": {"version": "v1.36.3"}, "hosts": HOSTS, **spec}
    head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "c"}}
    return {**head, "spec": body}


def chart(**keys: Any) -> dict[str, Any]:
    given = {"name": "shop", "repository": "https://a.example", "version": "1.0.0", **keys}
    return {"addons": [{"name": "shop", "chart": given}]}


def api_server(**keys: Any) -> dict[str, Any]:
    return {"kubernetes": {"version": "v1.36.3", "apiServer": keys}}


def told(data: Mapping[str, Any]) -> list[str]:
    """What is wrong with a cluster; nothing if it is sound."""
    try:
        checked(source.from_data(data))
    except InvalidCluster as error:
        return [problem.message if problem.hint else "no hint" for problem in error.problems]
    return []


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "known-hosts": (
        {"roleGroups": {"control-plane": ["nod1"]}},
        "spec.roleGroups.control-plane[0]: there is no host `nod1`",
    ),
    "groups-once": (
        {"roleGroups": {"control-plane": [THREE, "node1"]}},
        "spec.roleGroups.control-plane[1]: the group has `node1` already",
    ),
    "control-plane": (
        {"roleGroups": {"worker": []}},
        "spec.roleGroups.worker: found an empty list, want a host at least",
    ),
    "roles-in-use": (
        {"roleGroups": {"loadbalancer": ["node3"]}},
        "nothing runs on it: there is an endpoint of the kind `single`",
    ),
    "one-registry": (
        {"roleGroups": {"registry": ["node[2:3]"]}},
        "spec.roleGroups.registry: found `node2`, `node3`, want one host",
    ),
    "unique-addresses": (
        {"hosts": [*HOSTS, {"name": "other", "address": "10.0.0.12"}]},
        "spec.hosts[1]: `other` and `node2` have the same address `10.0.0.12`",
    ),
    "cluster-addresses": (
        {"hosts": [{"name": "a", "address": "a.example"}]},
        "spec.hosts[0]: `a` has the name `a.example` for an address, want an IP address",
    ),
    "kube-node-names": (
        {"hosts": [{"name": "Node_1", "address": "10.0.0.1"}]},
        "spec.hosts[0].name: `Node_1` can't be the name of a kube node",
    ),
    "one-machine": (
        {
            "hosts": [
                {"name": "a", "address": "10.0.0.1", "connection": "local"},
                {"name": "b", "address": "10.0.0.2", "connection": "local"},
            ]
        },
        "spec.hosts[1].connection: `a` is this machine already",
    ),
    "marks-of-kube-nodes": (
        {
            "hosts": [*HOSTS, {"name": "e1", "address": "10.0.0.31", "labels": {"a": "b"}}],
            "roleGroups": {"etcd": ["e1"]},
        },
        "spec.hosts[1].labels: `labels` has no meaning for `e1`, which is no kube node",
    ),
    "taints-once": (
        {"hosts": [{**HOSTS[0], "taints": [DISK, {**DISK, "value": "b"}]}]},
        "spec.hosts[0].taints[1]: `disk` is there twice for `NoSchedule`",
    ),
    "room-for-names": (
        {"hosts": [{**HOSTS[0], "taints": [DISK]}]},
        "spec.hosts[0].taints: every kube node has a taint that keeps CoreDNS away",
    ),
    "labels-of-kubelets": (
        {"hosts": [{**HOSTS[0], "labels": {"kubernetes.io/os": "plan9"}}]},
        "labels.kubernetes.io/os: found `plan9`, and the kubelet of `node1` says `linux`",
    ),
    "endpoint-single": (
        {"roleGroups": {"control-plane": [THREE]}, "endpoint": {"kind": "single"}},
        "spec.endpoint.kind: `single` with 3 control planes: `node1`, `node2`, `node3`",
    ),
    "endpoint-address": (
        {"endpoint": {"kind": "kube-vip"}},
        "spec.endpoint: `address` is missing for `kind: kube-vip`",
    ),
    "endpoint-address-free": (
        {"endpoint": {"kind": "kube-vip", "address": "10.0.0.12"}},
        "spec.endpoint.address: `10.0.0.12` is the address of host `node2`",
    ),
    "endpoint-balancer": (
        {
            "roleGroups": {"control-plane": [THREE]},
            "endpoint": {"kind": "external", "address": "10.0.0.12"},
        },
        "at `10.0.0.12` is the API server of `node2`, and no load balancer",
    ),
    "endpoint-address-outside": (
        {"endpoint": {"kind": "kube-vip", "address": "10.233.64.9"}},
        "spec.endpoint.address: `10.233.64.9` is among the addresses of pods",
    ),
    "endpoint-address-usable": (
        {"endpoint": {"kind": "kube-vip", "address": "fd00::9"}},
        "spec.endpoint.address: `fd00::9` is IPv6, of which `node1` has no address",
    ),
    "load-balancer-hosts": (
        {"endpoint": {"kind": "keepalived", "address": "10.0.0.100"}},
        "`kind: keepalived`, and the role `loadbalancer` has no host",
    ),
    "endpoint-port": (
        {"endpoint": {"kind": "haproxy", "port": 8443}},
        "found 8443, want 6443: control planes have no balancer, and API servers listen at that",
    ),
    "endpoint-settings": (
        {"endpoint": {"keepalived": {"routerId": 5}}},
        "spec.endpoint.keepalived: `keepalived` has no meaning for `kind: single`",
    ),
    "etcd-odd": (
        {"roleGroups": {"control-plane": ["node[1:2]"]}},
        "spec.roleGroups.control-plane: 2 members of etcd: `node1`, `node2`",
    ),
    "etcd-external": (
        {"etcd": {"kind": "external"}},
        "spec.etcd: `external` is missing for `kind: external`",
    ),
    "etcd-settings": (
        {"etcd": {"version": "v3.6.16"}},
        "spec.etcd.version: `version` has no meaning for `kind: stacked`",
    ),
    "etcd-patch": (
        {
            "etcd": {"kind": "systemd"},
            "roleGroups": {"etcd": [THREE]},
            "kubernetes": {
                "version": "v1.36.3",
                "kubeadm": {"patches": {"etcd": "etcd.yaml"}},
            },
        },
        "spec.kubernetes.kubeadm.patches.etcd: a patch of `etcd` has no effect for `kind: systemd`",
    ),
    "families": (
        {"network": {"podCIDR": ["10.1.0.0/16", "10.2.0.0/16"]}},
        "spec.network.podCIDR: found 2 networks of IPv4, want one of each family",
    ),
    "overlap": (
        {"network": {"podCIDR": "10.233.0.0/16"}},
        "spec.network.serviceCIDR: 10.233.0.0/18 of services overlaps 10.233.0.0/16 of pods",
    ),
    "hosts-outside": (
        {"hosts": [{"name": "a", "address": "10.0.0.1"}], "network": {"podCIDR": "10.0.0.0/16"}},
        "spec.network.podCIDR: 10.0.0.0/16 of pods has the addresses of hosts: `a 10.0.0.1`",
    ),
    "networks-usable": (
        {"network": {"podCIDR": "127.16.0.0/16"}},
        "127.16.0.0/16 has addresses of 127.0.0.0/8, which no pod and no service can have",
    ),
    "pods-for-all": (
        {"hosts": FIVE, "network": {"plugin": "routed", "podCIDR": "10.1.0.0/22"}},
        "10.1.0.0/22 has 4 parts of /24, want 5, one for each kube node",
    ),
    "pods-of-a-host": (
        {"network": {"plugin": "routed", "nodeMask": 26}},
        "spec.network.nodeMask: a /26 has 62 addresses for 110 pods of a host",
    ),
    "services-size": (
        {"network": {"serviceCIDR": "11.0.0.0/8"}},
        "spec.network.serviceCIDR: found 11.0.0.0/8, want a prefix from /12 to /26",
    ),
    "host-families": (
        {"network": DUAL},
        "spec.hosts[0]: `node1` has no address of IPv6, which pods have",
    ),
    "plugin-settings": (
        {"network": {"plugin": "routed", "calico": {"blockSize": 24}}},
        "spec.network.calico: `calico` has no meaning for `plugin: routed`",
    ),
    "proxy-mode": (
        {"kubernetes": {"version": "v1.36.3", "kubeProxy": {"mode": "none"}}},
        "spec.kubernetes.kubeProxy.mode: `none`, and `calico` does not take its place",
    ),
    "ports-apart": (
        {
            "endpoint": {"kind": "keepalived", "address": "10.0.0.100"},
            "roleGroups": {"control-plane": ["node1"], "loadbalancer": ["node1"]},
        },
        "spec.endpoint.port: the API server of `node1` listens at 6443 as well",
    ),
    "preflight-checks": (
        {"preflight": {"skip": ["memory", "memroy"]}},
        "spec.preflight.skip[1]: there is no check `memroy`",
    ),
    "kernel-settings": (
        {"system": {"sysctl": {"net.ipv4.ip_forward": "0"}}},
        "spec.system.sysctl.net.ipv4.ip_forward: found `0`, want `1`: else no pod reaches another",
    ),
    "node-ports": (
        api_server(extraArgs={"service-node-port-range": "40000-39000"}),
        "port-range: found `40000-39000`, want a range of ports, each from 1 to 65535",
    ),
    "certificate-duration": (
        {
            "kubernetes": {
                "version": "v1.36.3",
                "certificates": {"duration": "3d", "authorityDuration": "2d"},
            }
        },
        "spec.kubernetes.certificates.duration: `duration` is longer than `authorityDuration`",
    ),
    "endpoint-domain": (
        {"endpoint": {"kind": "haproxy", "domain": "node2"}},
        "spec.endpoint.domain: `node2` is the name of a host",
    ),
    "hosts-file": (
        {"system": {"hosts": [{"address": "10.9.0.1", "names": ["a.example", "node2"]}]}},
        "hosts[0].names[1]: hosts know `node2` by another address than `10.9.0.1` already",
    ),
    "node-local-address": (
        {"dns": {"nodeLocal": {"enabled": True, "address": "10.0.0.13"}}},
        "spec.dns.nodeLocal.address: `10.0.0.13` is host `node3`",
    ),
    "dns-zones": (
        {"dns": {"zones": [{"names": ["a.example", "a.example"], "servers": ["10.0.0.53"]}]}},
        "spec.dns.zones[0].names[1]: `a.example` is there twice",
    ),
    "dns-servers": (
        {"dns": {"upstream": ["10.0.0.53", "127.0.0.53"]}},
        "spec.dns.upstream[1]: at `127.0.0.53` a pod of CoreDNS would ask itself, or nobody",
    ),
    "dns-upstream": (
        {"dns": {"upstream": ["10.0.0.53", "10.233.0.10"]}},
        "spec.dns.upstream[1]: `10.233.0.10` is in 10.233.0.0/18, the addresses of services",
    ),
    "directories": (
        {"etcd": {"dataDir": "/var/lib"}},
        "spec.etcd.dataDir: `/var/lib` belongs to the operating system",
    ),
    "directories-apart": (
        {"containerRuntime": {"root": "/a"}, "etcd": {"dataDir": "/a/b"}},
        "spec.etcd.dataDir: `/a/b` and `/a` of `containerRuntime.root` are not apart",
    ),
    "overrides": (
        {"etcd": {"extraArgs": {"data-dir": "/data"}}},
        "etcd.extraArgs.data-dir: `data-dir` can't be set here: the file has `etcd.dataDir` for it",
    ),
    "anonymous-requests": (
        api_server(extraArgs={"anonymous-auth": "false"}),
        "the probes of its pod ask the API server for its health without credentials",
    ),
    "overrides-in-use": (
        api_server(encryption={"enabled": True}, extraArgs={"encryption-provider-config": "/x"}),
        (
            "spec.kubernetes.apiServer.extraArgs.encryption-provider-config:"
            " `encryption-provider-config` can't be set here:"
            " the file has `kubernetes.apiServer.encryption` for it"
        ),
    ),
    "flags-that-cut-off": (
        api_server(extraArgs={"allow-privileged": "false"}),
        (
            "spec.kubernetes.apiServer.extraArgs.allow-privileged: found `false`,"
            " and kube-proxy and the pods of the network are privileged"
        ),
    ),
    "kubeadm-keys": (
        {
            "kubernetes": {
                "version": "v1.36.3",
                "kubeadm": {"clusterConfiguration": {"netwoking": {}}},
            }
        },
        "spec.kubernetes.kubeadm.clusterConfiguration.netwoking: unknown key `netwoking`",
    ),
    "containerd-plugins": (
        {"containerRuntime": {"config": {"plugins": {"io.containerd.grpc.v1.cri": {"a": 1}}}}},
        "containerd 2.x does not read this under `io.containerd.grpc.v1.cri`",
    ),
    "effect-of-kube-proxy": (
        {
            "network": {"plugin": "cilium"},
            "kubernetes": {
                "version": "v1.36.3",
                "kubeProxy": {"mode": "none", "config": {"oomScoreAdj": 1}},
            },
        },
        "spec.kubernetes.kubeProxy.config: `config` has no meaning for `mode: none`",
    ),
    "effect-of-audit": (
        api_server(audit={"maxAgeDays": 3}),
        "apiServer.audit.maxAgeDays: `maxAgeDays` has no meaning without `enabled: true`",
    ),
    "effect-of-encryption": (
        api_server(encryption={"provider": "aescbc"}),
        "apiServer.encryption.provider: `provider` has no meaning without `enabled: true`",
    ),
    "effect-of-node-local": (
        {"dns": {"nodeLocal": {"address": "169.254.1.1"}}},
        "spec.dns.nodeLocal.address: `address` has no meaning without `enabled: true`",
    ),
    "effect-of-local-path": (
        {"storage": {"localPath": {"directory": "/b"}}},
        "spec.storage.localPath.directory: `directory` has no meaning without `enabled: true`",
    ),
    "effect-of-ntp": (
        {"system": {"ntp": {"enabled": False, "servers": ["a.example"]}}},
        "spec.system.ntp.servers: `servers` has no meaning without `enabled: true`",
    ),
    "effect-of-backup": (
        {"etcd": {"backup": {"keep": 3}}},
        "spec.etcd.backup.keep: `keep` has no meaning without `every`",
    ),
    "effect-of-proxy": (
        {"system": {"proxy": {"noProxy": ["a.example"]}}},
        "spec.system.proxy.noProxy: `noProxy` has no meaning without `http` and `https`",
    ),
    "effect-of-registry": (
        {"registry": {"port": 5001}},
        "`port` has no meaning without `host`, and without a host of the role `registry`",
    ),
    "effect-of-network": (
        {"network": {"nodeMask": 25}},
        "nodeMask: `nodeMask` has no meaning for `plugin: calico`, which hands out blocks",
    ),
    "effect-of-calico": (
        {
            "hosts": [{"name": "a", "address": "fd00::1"}],
            "network": {
                "podCIDR": "fd00:1::/56",
                "serviceCIDR": "fd00:2::/112",
                "calico": {"encapsulation": "ipip"},
            },
        },
        "encapsulation: `encapsulation` has no meaning as `ipip` where pods have no IPv4",
    ),
    "addon-names": (
        {"addons": [{"name": "a", "inline": "x"}, {"name": "a", "inline": "y"}]},
        "spec.addons[1].name: the add-on `a` is there twice",
    ),
    "chart-version": (
        chart(version=None),
        "spec.addons[0].chart: `version` is missing beside `repository`",
    ),
    "chart-name": (
        chart(name="folder/shop"),
        "spec.addons[0].chart.name: `folder/shop` can't be the name of a chart",
    ),
    "release-name": (
        {"addons": [{"name": "My_Shop", "chart": {"name": "shop.tgz"}}]},
        "spec.addons[0].name: `My_Shop` can't be the name of a release",
    ),
    "addon-namespace": (
        {"addons": [{"name": "m", "component": "metrics-server", "namespace": "here"}]},
        "addons[0].namespace: `namespace` has no meaning for `component: metrics-server`",
    ),
}
SOUND: dict[str, dict[str, Any]] = {
    "one host": {"hosts": HOSTS[:1]},
    "behind a proxy on every node": {"roleGroups": {"control-plane": [THREE]}},
    "with an address that moves": {
        "roleGroups": {"control-plane": [THREE]},
        "endpoint": {"kind": "kube-vip", "address": "10.0.0.100"},
    },
    "with load balancers": {
        "hosts": FIVE,
        "roleGroups": {"control-plane": [THREE], "loadbalancer": ["node[4:5]"]},
        "endpoint": {"kind": "keepalived", "address": "10.0.0.100"},
    },
    "with an etcd of its own": {"roleGroups": {"etcd": [THREE]}, "etcd": {"version": "v3.6.16"}},
    "of two families": {
        "hosts": [
            {"name": "a", "address": "10.0.0.1", "internalAddresses": ["10.0.0.1", "fd00::1"]}
        ],
        "network": DUAL,
    },
    "without kube-proxy": {
        "network": {"plugin": "cilium"},
        "kubernetes": {"version": "v1.36.3", "kubeProxy": {"mode": "none"}},
    },
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_rule_is_told(name: str) -> None:
    spec, message = BROKEN[name]

    found = told(cluster(**spec))

    assert any(message in text for text in found), found


@pytest.mark.parametrize("written", ["", "0-100", "1-65536", "a-b", "30000-", "1,2", "30000 - 1"])
def test_ports_of_services_that_are_no_range_are_told(written: str) -> None:
    found = told(cluster(**api_server(extraArgs={"service-node-port-range": written})))

    assert any(f"found `{written}`, want a range of ports" in text for text in found), found


@pytest.mark.parametrize(
    ("spec", "role", "instead"),
    [
        (
            {"roleGroups": {"etcd": ["node3"]}, "etcd": {"kind": "stacked"}},
            "etcd",
            "etcd of the kind `stacked`",
        ),
        (
            {"roleGroups": {"registry": ["node3"]}, "registry": {"host": "registry.lan"}},
            "registry",
            "the registry `registry.lan` by `registry.host`",
        ),
    ],
)
def test_a_role_of_which_nothing_runs_is_told_with_what_is_there_instead(
    spec: dict[str, Any], role: str, instead: str
) -> None:
    said = f"spec.roleGroups.{role}: nothing runs on it: there is {instead}"
    assert told(cluster(**spec)) == [said]


def test_there_is_a_case_for_every_rule_and_no_other() -> None:
    assert [rule.name for rule in RULES] == list(BROKEN)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_is_the_rule_of_that_name_that_tells_it(rule: Rule) -> None:
    spec, message = BROKEN[rule.name]
    file, _ = ClusterFile.read(cluster(**spec))
    assert file is not None

    found = [*rule.judge(Declared("c", file.spec, members(file.spec)))]

    assert any(finding.message in message for finding in found if finding.hint), found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_rests_where_what_it_goes_by_is_missing(rule: Rule) -> None:
    assert rule.applies(frozenset({("spec", "templates")}))
    assert not rule.applies(frozenset({rule.reads[0]}))
    assert not rule.applies(frozenset({(*rule.reads[0], "part")}))
    assert not rule.applies(frozenset({("spec",)}))


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_cluster_breaks_none(name: str) -> None:
    assert told(cluster(**SOUND[name])) == []


def test_a_part_that_can_not_be_read_hides_no_other_problem() -> None:
    text = msgspec.json.encode(
        cluster(
            kubernetes={"version": "new"},
            roleGroups={"control-plane": ["nobody"]},
            network={"podCIDR": "10.0.0.0/16", "nodeMask": "x"},
        )
    )

    with pytest.raises(InvalidCluster) as caught:
        parse_cluster(text, "c.json")

    found = [problem.message for problem in caught.value.problems]
    assert [message.partition(":")[0] for message in found] == [
        "spec.kubernetes.version",
        "spec.roleGroups.control-plane[0]",
        "spec.network.podCIDR",
        "spec.network.nodeMask",
    ]
    assert "more may be found when these are mended" in caught.value.hint


def test_the_check_for_another_cluster_can_not_be_left_out() -> None:
    (said,) = told(cluster(preflight={"skip": ["leftovers", "other-cluster"]}))

    assert "spec.preflight.skip[1]: `other-cluster` can't be left out" in said


@pytest.mark.parametrize(
    ("target", "hint"),
    [("kubeletconfiguration", "kubernetes.kubelet.config"), ("corednsdeployment", "coredns/")],
)
def test_a_patch_of_what_nothing_reads_is_refused_with_what_does(target: str, hint: str) -> None:
    kubernetes = {"version": "v1.36.3", "kubeadm": {"patches": {target: "patch.yaml"}}}

    with pytest.raises(InvalidCluster) as caught:
        checked(source.from_data(cluster(kubernetes=kubernetes)))

    (problem,) = caught.value.problems
    assert f"a patch of `{target}` would have no effect" in problem.message
    assert hint in problem.hint
