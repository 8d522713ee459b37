"""Values that a cluster can't be made with: each is refused at its place, with what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.config.test_consumers import beside
from tests.config.test_rules import DUAL, HOSTS, THREE, chart, cluster, told

from kubexm.app import planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.config.cluster import parse_cluster
from kubexm.config.reference import explained
from kubexm.errors import InvalidCluster, InvalidInput
from kubexm.templates.merging import merged

ZONES = {"names": ["a.example"], "servers": ["10.0.0.53"]}
ONLY_V6 = {
    "hosts": [{"name": "a", "address": "fd00::1"}],
    "network": {"podCIDR": ["fd00:1::/48"], "serviceCIDR": ["fd00:2::/112"]},
}
SECRET = "spec.etcd.external.key: found no reference to a secret"


def system(**keys: Any) -> dict[str, Any]:
    return {"system": keys}


def kubernetes(**keys: Any) -> dict[str, Any]:
    return {"kubernetes": {"version": "v1.36.3", **keys}}


def tuning(**keys: Any) -> dict[str, Any]:
    return {"etcd": {"tuning": keys}}


def host(**keys: Any) -> dict[str, Any]:
    return {"hosts": [{"name": "a", **keys}]}


def external(**keys: Any) -> dict[str, Any]:
    given = {"endpoints": ["https://10.9.0.1:2379"], "ca": "a", "certificate": "b", **keys}
    return {"etcd": {"external": {"key": "env://KEY", **given}}}


def encrypted(*resources: str) -> dict[str, Any]:
    return kubernetes(apiServer={"encryption": {"enabled": True, "resources": [*resources]}})


FIELDS: list[tuple[dict[str, Any], str]] = [
    (system(packages=["htop", "rm -rf"]), "spec.system.packages[1]: found the text `rm -rf`"),
    (system(packages=["-y"]), "spec.system.packages[0]: found the text `-y`"),
    (system(modules=["-x"]), "spec.system.modules[0]: found the text `-x`"),
    (system(sysctl={"vm.swappiness": "1\n2"}), r"spec.system.sysctl.vm.swappiness: found the text"),
    (system(hosts=[{"address": "10.0.0.9", "names": ["a\nb"]}]), "spec.system.hosts[0].names[0]:"),
    (system(hosts=[{"address": "10.0.0.9", "names": ["10.0.0.8"]}]), "want the name of a host"),
    (system(timeZone="Europe/Berlin\n"), "spec.system.timeZone: found"),
    (system(timeZone=""), "spec.system.timeZone: found"),
    (system(timeZone="Mars/Olympus"), "spec.system.timeZone: found the text `Mars/Olympus`"),
    *(
        (system(proxy={"http": text}), "spec.system.proxy.http: found no address of a proxy")
        for text in (
            *("http://a b", "proxy", "proxy:3128", "user:secretpw@proxy:3128", "foo:bar@@"),
            *("socks9://proxy:3128", "http://proxy:0", "http://proxy:99999", "http://"),
            *("http://a@@b", "http://proxy/path", "http://a_/?b", "http://-"),
        )
    ),
    *(
        (system(proxy={"http": "http://proxy", "noProxy": [text]}), "spec.system.proxy.noProxy[0]:")
        for text in ("a,b", "http://a.example", "a b", "")
    ),
    ({"etcd": {"dataDir": "/"}}, "spec.etcd.dataDir: found the text `/`"),
    ({"etcd": {"dataDir": "/a/../b"}}, "spec.etcd.dataDir: found the text `/a/../b`"),
    ({"etcd": {"backup": {"directory": "/"}}}, "spec.etcd.backup.directory: found"),
    (tuning(compaction="0.5s"), "spec.etcd.tuning: `compaction` is 0.5 s, want a second at least"),
    ({"etcd": {"backup": {"every": "1s"}}}, "spec.etcd.backup: `every` is 1 s"),
    ({"registry": {"dataDir": "/"}}, "spec.registry.dataDir: found"),
    ({"templates": "/"}, "spec.templates: found the text `/`, want a directory"),
    ({"containerRuntime": {"root": "/"}}, "spec.containerRuntime.root: found"),
    ({"storage": {"localPath": {"directory": "/"}}}, "spec.storage.localPath.directory: found"),
    (
        {
            "containerRuntime": {
                "registries": {"a.lan": {"auth": {"username": "a:b", "password": "env://WORD"}}}
            }
        },
        "registries.a.lan.auth.username: found the text `a:b`, want a name without `:`",
    ),
    (chart(version="1 2"), "spec.addons[0].chart.version: found the text `1 2`"),
    (chart(version="^1.2"), "spec.addons[0].chart.version: found the text `^1.2`"),
    (chart(repository="a.example"), "spec.addons[0].chart.repository: found"),
    ({"addons": [{"name": "a", "inline": "x", "timeout": 0.5}]}, "spec.addons[0].timeout: found"),
    (external(key="a key"), SECRET),
    (external(key="${vars.key}"), SECRET),
    (external(endpoints=["https://10.9.0.1"]), "and a port"),
    (external(endpoints=["http://10.9.0.1:2379"]), "spec.etcd.external.endpoints[0]: found"),
    (external(endpoints=["https://10.9.0.1:99999"]), "spec.etcd.external.endpoints[0]: found"),
    (host(address="exa mple"), "spec.hosts[0].address: found the text `exa mple`"),
    (host(address="http://foo:22/"), "spec.hosts[0].address: found the text `http://foo:22/`"),
    (host(address="10.0.0.300"), "spec.hosts[0].address: found the text `10.0.0.300`"),
    (host(address="10.0.0.010"), "spec.hosts[0].address: found the text `10.0.0.010`"),
    (host(address="fe80::1%eth0"), "spec.hosts[0].address: found"),
    (host(address="a.example", internalAddresses=["b.example"]), "internalAddresses[0]: found"),
    (
        {"hosts": [{"name": "a[1:3]", "address": "10.0.0.[254:256]"}]},
        "spec.hosts[0].address: found the text `10.0.0.[254:256]`",
    ),
    (
        {"hosts": [{"name": "a[1:2]", "internalAddresses": ["10.0.0.[1:3]"]}]},
        "spec.hosts[0].internalAddresses[0]: found 3 addresses, want 2",
    ),
    (tuning(heartbeat=0), "spec.etcd.tuning.heartbeat: found the number 0"),
    (tuning(heartbeat="0.0005s"), "spec.etcd.tuning.heartbeat: found"),
    (tuning(election=0), "spec.etcd.tuning.election: found the number 0"),
    (tuning(election="51s"), "spec.etcd.tuning.election: found the text `51s`, want at most 50"),
    (tuning(election="1s"), "spec.etcd.tuning: `election` 1 s is less than five times"),
    (
        {
            "endpoint": {
                "kind": "kube-vip",
                "address": "10.0.0.9",
                "kubeVip": {"mode": "bgp", "bgp": {"peers": []}},
            }
        },
        "spec.endpoint.kubeVip.bgp.peers: found an empty list",
    ),
    *(
        (
            {"containerRuntime": {"registries": {"a.example": {"mirrors": [f"https://m{rest}"]}}}},
            "registries.a.example.mirrors[0]: found more than the address of a registry",
        )
        for rest in ("/path?x=secretpw", "#secretpw")
    ),
    *(
        (encrypted("secrets", text), "encryption.resources[1]: found the text")
        for text in (
            *("*", "Secrets", "secrets.*", "*.*.apps", "a b", "-x", "", "secrets."),
            *("events.events.k8s.io", "*.extensions", "serviceipallocations"),
        )
    ),
    *(
        (encrypted(*found), f"encryption: `{found[0]}` and `{found[1]}` of `resources` overlap")
        for found in (
            *(("secrets", "secrets"), ("secrets", "*."), ("*.*", "secrets"), ("secrets", "*.*")),
            ("*.apps", "deployments.apps"),
        )
    ),
    *(
        (
            kubernetes(kubeadm={"ignorePreflightErrors": ["NumCPU", text]}),
            f"kubeadm.ignorePreflightErrors[1]: found the text `{text}`, want the name of one",
        )
        for text in ("all", "All", "Mem,Swap", "", " Swap")
    ),
    *(
        (kubernetes(apiServer={"certSans": [text]}), f"certSans[0]: found the text `{text}`")
        for text in ("*", "*.", "a.*.example", "*.10.0.0.1", "*.fd00::1", "**.a", "a:443")
    ),
    (kubernetes(apiServer={"extraArgs": {"--foo": "a"}}), "found the text `--foo`"),
    (kubernetes(scheduler={"extraArgs": {"a b": "a"}}), "found the text `a b`"),
    (kubernetes(kubelet={"extraArgs": {"": "a"}}), "want the name of a flag"),
    (kubernetes(kubelet={"extraArgs": {"v": "a\nb"}}), "extraArgs.v: found the text"),
    ({"etcd": {"extraArgs": {"--debug": "a"}}}, "found the text `--debug`"),
    *(
        (spec, "found 16 servers, want 15 at most")
        for servers in ([f"10.9.0.{number}" for number in range(1, 17)],)
        for spec in (
            {"dns": {"upstream": servers}},
            {"dns": {"zones": [{"names": ["a.example"], "servers": servers}]}},
        )
    ),
    (kubernetes(featureGates={"A b": True}), "want the name of a feature"),
]


@pytest.mark.parametrize(("spec", "message"), FIELDS)
def test_a_value_that_no_host_can_take_is_refused_at_its_place(
    spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidCluster) as caught:
        parse_cluster(msgspec.json.encode(cluster(**spec)), "c.json")

    (problem,) = caught.value.problems
    assert message in problem.message
    assert "\n" not in problem.message
    assert problem.where.startswith("c.json:1:")
    assert problem.hint


V6 = [{"name": "a", "address": "fd00::1"}]
KEEPALIVED = {"kind": "keepalived", "address": "10.0.0.100"}
UNFIT = ("127.0.0.9", "0.0.0.0", "224.0.0.1", "10.233.0.9", "10.233.64.9", "10.0.0.12", "fd00::9")
"""What the cache of names can't be asked at."""


def node_local(address: str = "169.254.25.10") -> dict[str, Any]:
    return {"dns": {"nodeLocal": {"enabled": True, "address": address}}}


def named(address: str, name: str) -> dict[str, Any]:
    return system(hosts=[{"address": address, "names": [name]}])


def labelled(labels: dict[str, str], **keys: Any) -> dict[str, Any]:
    return {"hosts": [{**HOSTS[0], **keys, "labels": labels}]}


def tainted(*taints: dict[str, str]) -> dict[str, Any]:
    """A worker with taints, beside hosts without."""
    return {"hosts": [*HOSTS, {"name": "w", "address": "10.0.0.20", "taints": [*taints]}]}


LABEL_HOOK = {
    "system": {"pre": [{"name": "a", "command": {"argv": ["true", "${host.labels.zone}"]}}]}
}


def beside_workers(**keys: Any) -> dict[str, Any]:
    """A host that is no kube node."""
    hosts = [*HOSTS, {"name": "e1", "address": "10.0.0.20", **keys}]
    return {"hosts": hosts, "roleGroups": {"etcd": ["e1"]}}


RULED: list[tuple[dict[str, Any], str]] = [
    (host(), "spec.hosts[0]: `a` has the name `a` for an address"),
    (host(address="127.0.0.1"), "spec.hosts[0]: `127.0.0.1` of `a` does not lead to it"),
    ({"endpoint": {"kind": "nginx", "port": 8443}}, "spec.endpoint.port: found 8443"),
    ({"endpoint": {"kind": "single", "port": 8443}}, "spec.endpoint.port: found 8443"),
    *(
        ({"endpoint": {"kind": "kube-vip", "address": address}}, "that a host can be reached by")
        for address in ("127.0.0.1", "0.0.0.0", "224.0.0.18")
    ),
    (
        {"network": {"podCIDR": "fd00:1::/56", "serviceCIDR": "fd00:2::/112"}},
        "`node1` has no address of IPv6, which pods have",
    ),
    ({"hosts": V6}, "`a` has no address of IPv4, which pods have"),
    (
        {"network": {**DUAL, "serviceCIDR": [*reversed(DUAL["serviceCIDR"])]}},
        "spec.network.serviceCIDR: services have IPv6 and IPv4, pods IPv4 and IPv6",
    ),
    (
        {
            **host(address="10.0.0.1", internalAddresses=["fd00::1", "10.0.0.1"]),
            "network": DUAL,
        },
        "`a` has IPv6 and IPv4, pods have IPv4 and IPv6 first",
    ),
    (
        host(address="10.0.0.1", internalAddresses=["10.0.0.1", "10.0.0.2"]),
        "`a` has IPv4 and IPv4, pods have IPv4",
    ),
    ({"network": {"podCIDR": "10.1.0.0/27"}}, "a block is a /26, which is more than all of"),
    ({"network": {"podCIDR": "10.1.0.0/25"}}, "10.1.0.0/25 has 2 blocks of /26, want 3"),
    (
        {"network": {"podCIDR": "10.1.0.0/29", "calico": {"blockSize": 32}}},
        "10.1.0.0/29 has 8 addresses, want 24",
    ),
    ({"network": {"plugin": "cilium", "podCIDR": "10.1.0.0/25"}}, "a host gets a /24, which is"),
    ({"network": {"plugin": "none", "podCIDR": "10.1.0.0/23"}}, "10.1.0.0/23 has 2 parts of /24"),
    ({"network": {"plugin": "cilium", "nodeMask": 26}}, "a /26 has 62 addresses for 110 pods"),
    (
        {"network": {"plugin": "flannel", "podCIDR": "10.64.0.0/10", "nodeMask": 27}},
        "10.64.0.0/10 has more parts of /27 than are kept count of",
    ),
    *(
        ({"network": {"podCIDR": text}}, "which no pod and no service can have")
        for text in ("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/16")
    ),
    *(
        (
            {"hosts": V6, "network": {"podCIDR": text, "serviceCIDR": "fd00:2::/112"}},
            "which no pod and no service can have",
        )
        for text in ("::/64", "fe80::/64", "ff00::/64")
    ),
    ({"network": {"serviceCIDR": "127.0.0.0/18"}}, "spec.network.serviceCIDR: 127.0.0.0/18 has"),
    *(
        (
            {
                "roleGroups": {"control-plane": ["node1"], "registry": ["node1"]},
                "registry": {"port": port},
            },
            f"spec.registry.port: {who} of `node1` listens at {port} as well",
        )
        for port, who in (
            (6443, "the API server"),
            (10250, "the kubelet"),
            (2381, "etcd"),
            (22, "sshd"),
        )
    ),
    *(
        (
            {
                "roleGroups": {"control-plane": ["node1"], "loadbalancer": ["node1"]},
                "endpoint": {**KEEPALIVED, "port": port},
            },
            f"spec.endpoint.port: {who} of `node1` listens at {port} as well",
        )
        for port, who in (
            (22, "sshd"),
            (8081, "the health of haproxy"),
            (10249, "kube-proxy"),
            (10259, "the scheduler"),
        )
    ),
    (
        kubernetes(kubeProxy={"config": {"healthzBindAddress": "0.0.0.0:10250"}}),
        "kubeProxy.config.healthzBindAddress: the kubelet of `node1`, `node2`, `node3` listens at",
    ),
    (
        kubernetes(kubelet={"config": {"readOnlyPort": 10257}}),
        "kubelet.config.readOnlyPort: the controller manager of `node1` listens at 10257 as well",
    ),
    (
        {
            "ssh": {"port": 2222},
            "roleGroups": {"control-plane": ["node1"], "registry": ["node2"]},
            "registry": {"port": 2222},
        },
        "spec.registry.port: sshd of `node2` listens at 2222 as well",
    ),
    (
        {"hosts": [{**HOSTS[0], "ssh": {"port": 10250}}]},
        "spec.hosts[0].ssh.port: the kubelet of `node1`, `node2`, `node3` listens at 10250",
    ),
    (
        {"dns": {"upstream": ["10.233.64.9"]}},
        "spec.dns.upstream[0]: `10.233.64.9` is in 10.233.64.0/18, the addresses of pods",
    ),
    ({"dns": {"zones": [{**ZONES, "names": ["cluster.local"]}]}}, "the cluster itself answers"),
    ({"dns": {"zones": [{**ZONES, "names": ["local"]}]}}, "the cluster itself answers for `local`"),
    ({"dns": {"zones": [ZONES, ZONES]}}, "spec.dns.zones[1].names[0]: `a.example` is there twice"),
    *((node_local(text), f"spec.dns.nodeLocal.address: `{text}`") for text in UNFIT),
    (
        merged(node_local(), {"dns": {"upstream": ["169.254.25.10"]}}),
        "spec.dns.upstream[0]: `169.254.25.10` is the cache of names",
    ),
    (
        merged(node_local(), {"dns": {"zones": [{**ZONES, "servers": ["169.254.25.10"]}]}}),
        "spec.dns.zones[0].servers[0]: `169.254.25.10` is the cache of names",
    ),
    ({"endpoint": {"domain": "localhost"}}, "spec.endpoint.domain: `localhost` is every host"),
    ({"endpoint": {"domain": "node2"}}, "spec.endpoint.domain: `node2` is the name of a host"),
    ({"endpoint": {"domain": "a.cluster.local"}}, "in the domain of services"),
    *(
        ({"hosts": [{"name": name, "address": "10.0.0.1"}]}, f"`{name}` leads every host to itself")
        for name in ("localhost", "localhost.localdomain", "a.localhost", "ip6-loopback")
    ),
    (named("10.9.0.1", "localhost"), "hosts know `localhost` by another address"),
    (named("10.9.0.1", "Node1"), "hosts know `Node1` by another address"),
    (
        {**named("10.9.0.1", "api.c.kubexm.internal"), "endpoint": {"kind": "haproxy"}},
        "hosts know `api.c.kubexm.internal` by another address",
    ),
    (
        {
            **named("10.9.0.1", "api.example"),
            "endpoint": {"kind": "external", "address": "10.9.0.2", "domain": "api.example"},
        },
        "hosts know `api.example` by another address than `10.9.0.1`",
    ),
    *(
        ({"etcd": {"dataDir": path}}, f"spec.etcd.dataDir: `{path.rstrip('/')}` belongs to the op")
        for path in ("/home", "/var/lib/", "/etc/kubernetes", "/run/a", "/usr/share/a", "/lib64/a")
    ),
    *(
        ({"containerRuntime": {"root": path}}, f"`{path}` belongs to Kubernetes")
        for path in ("/var/lib/kubelet", "/var/lib/kubelet/a", "/opt/cni/bin", "/var/lib/kubexm")
    ),
    (
        {"etcd": {"backup": {"every": "6h", "directory": "/var/lib/etcd/backup"}}},
        "spec.etcd.backup.directory: `/var/lib/etcd/backup` and `/var/lib/etcd` of `etcd.dataDir`",
    ),
    (
        {"containerRuntime": {"root": "/var/lib/etcd"}},
        "spec.containerRuntime.root: `/var/lib/etcd` and `/var/lib/etcd` of `etcd.dataDir`",
    ),
    (
        {
            "storage": {"localPath": {"enabled": True, "directory": "/data"}},
            "registry": {"dataDir": "/data/images"},
            "roleGroups": {"control-plane": ["node1"], "registry": ["node2"]},
        },
        "spec.storage.localPath.directory: `/data` and `/data/images` of `registry.dataDir`",
    ),
    *(
        (labelled({key: value}, arch="amd64"), f"spec.hosts[0].labels.{key}: found `{value}`")
        for key, value in (
            ("kubernetes.io/hostname", "node2"),
            ("beta.kubernetes.io/os", "windows"),
            ("kubernetes.io/arch", "arm64"),
        )
    ),
    (kubernetes(apiServer={"audit": {"policy": "a"}}), "audit.policy: `policy` has no meaning"),
    ({"etcd": {"backup": {"directory": "/b"}}}, "backup.directory: `directory` has no meaning"),
    ({"registry": {"dataDir": "/b"}}, "spec.registry.dataDir: `dataDir` has no meaning"),
    (
        {"registry": {"host": "a.example", "dataDir": "/b"}},
        "spec.registry.dataDir: `dataDir` has no meaning without a host of the role",
    ),
    *(
        (system(sysctl={key: "0"}), f"spec.system.sysctl.{key}: found `0`, want `1`")
        for key in ("net.bridge.bridge-nf-call-iptables", "net.ipv4.conf.all.forwarding")
    ),
    *(
        ({**ONLY_V6, **system(sysctl={key: "0"})}, f"spec.system.sysctl.{key}: found `0`")
        for key in ("net.bridge.bridge-nf-call-ip6tables", "net.ipv6.conf.all.forwarding")
    ),
    ({"network": {"plugin": "none", "mtu": 1400}}, "spec.network.mtu: `mtu` has no meaning for `"),
    (
        merged(ONLY_V6, {"network": {"calico": {"blockSize": 24}}}),
        "spec.network.calico.blockSize: `blockSize` has no meaning where pods have no IPv4",
    ),
    (
        beside_workers(taints=[{"key": "a", "effect": "NoSchedule"}]) | {"hooks": LABEL_HOOK},
        "spec.hosts[1].taints: `taints` has no meaning for `e1`, which is no kube node",
    ),
    ({"network": {"plugin": "cilium", "nodeMaskIpv6": 80}}, "has no meaning where pods have no IP"),
]


@pytest.mark.parametrize(("spec", "message"), RULED)
def test_what_does_not_go_together_is_refused(spec: dict[str, Any], message: str) -> None:
    found = told(cluster(**spec))

    assert any(message in text for text in found), found
    assert "no hint" not in found


SOUND: list[dict[str, Any]] = [
    encrypted("secrets", "deployments.apps", "*.example.com", "configmaps"),
    encrypted("*.", "*.apps"),
    encrypted("*.*"),
    kubernetes(kubeProxy={"config": {"metricsBindAddress": "0.0.0.0:10249"}}),
    # The kind stays as it is for good: who wants more control planes later says it at once.
    {"hosts": HOSTS[:1], "endpoint": {"kind": "haproxy"}},
    beside_workers(labels={"zone": "a"}) | {"hooks": LABEL_HOOK},
    merged(ONLY_V6, {"network": {"calico": {"encapsulation": "none"}}}),
    tuning(compaction="0s"),
    tuning(compaction="1s"),
    system(sysctl={"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "0"}),
    {**ONLY_V6, **system(sysctl={"net.ipv4.ip_forward": "0"})},
    host(address="a.example", internalAddresses=["10.0.0.1"]),
    host(address="10.0.0.1", internalAddresses=["10.9.0.1"]),
    {"hosts": V6, "network": {"podCIDR": "fd00:1::/56", "serviceCIDR": "fd00:2::/112"}},
    {"storage": {"nfs": {"server": "nfs.example", "path": "/"}}},
    {"network": {"podCIDR": "10.1.0.0/24"}},
    {
        "roleGroups": {"control-plane": ["node1"], "registry": ["node2"]},
        "registry": {"port": 6443},
    },
    {
        "roleGroups": {"control-plane": ["node1"], "loadbalancer": ["node1"]},
        "endpoint": {**KEEPALIVED, "port": 8443},
    },
    {"endpoint": {"kind": "external", "address": "10.0.0.100", "port": 22}},
    system(packages=["nfs-common", "libc6:amd64", "curl=8.5.0-2"], timeZone="Etc/GMT+5"),
    system(sysctl={"net.ipv4.tcp_rmem": "4096\t87380 6291456", "kernel.core_pattern": ""}),
    tuning(heartbeat="10s", election="50s"),
    tuning(heartbeat="9ms", election="0.045s"),
    system(proxy={"https": "https://[fd00::1]:3128", "noProxy": ["*", ".a.example:80", "::1/128"]}),
    system(proxy={"http": "http://reader@proxy.lan/"}),
    node_local("10.9.0.1"),
    {"dns": {"zones": [{**ZONES, "servers": ["10.233.0.53"]}]}},
    {"endpoint": {"domain": "node1"}},
    named("10.0.0.11", "node1"),
    named("127.0.0.1", "localhost"),
    {**named("10.9.0.1", "api.lan"), "endpoint": {"kind": "external", "domain": "api.lan"}},
    {"endpoint": {"kind": "external", "address": "10.0.0.11"}},
    {
        "roleGroups": {"control-plane": [THREE]},
        "endpoint": {"kind": "external", "address": "10.0.0.11", "port": 8443},
    },
    {"etcd": {"dataDir": "/var/backups/a"}, "containerRuntime": {"root": "/var/backups/ab"}},
    {"etcd": {"dataDir": "/var/backups/etcd"}},
    labelled({"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}),
    tainted({"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "PreferNoSchedule"}),
    {"registry": {"host": "a.example", "port": 5001}},
    {"etcd": {"backup": {"every": 0, "keep": 7}}},
    {"network": {"plugin": "cilium", "nodeMask": 23}},
    {"addons": [{"name": "m", "component": "metrics-server", "namespace": "default"}]},
]


@pytest.mark.parametrize("spec", SOUND)
def test_what_works_is_taken(spec: dict[str, Any]) -> None:
    assert told(cluster(**spec)) == []


@pytest.mark.parametrize(
    ("taint", "is_well"),
    [
        ({"key": "a", "effect": "NoExecute"}, False),
        ({"key": "a", "effect": "PreferNoSchedule"}, True),
        ({"key": "CriticalAddonsOnly", "effect": "NoExecute"}, True),
        ({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}, True),
        ({"key": "node-role.kubernetes.io/control-plane", "effect": "NoExecute"}, False),
    ],
)
def test_some_kube_node_lets_core_dns_in(taint: dict[str, str], is_well: bool) -> None:
    spec = {"hosts": [{**HOSTS[0], "taints": [taint]}]}

    assert (told(cluster(**spec)) == []) == is_well


@pytest.mark.parametrize("text", ["user:secretpw@proxy:3128", "http://user:secretpw@proxy:3128"])
def test_the_password_of_a_proxy_is_refused_and_never_shown(text: str) -> None:
    data = cluster(**system(proxy={"http": text}))

    with pytest.raises(InvalidCluster) as caught:
        parse_cluster(msgspec.json.encode(data), "c.json")

    assert "secretpw" not in f"{caught.value} {caught.value.problems}"


def test_no_hint_proposes_what_is_refused() -> None:
    spec = {
        "roleGroups": {
            "control-plane": ["node1"],
            "loadbalancer": ["node2"],
            "registry": ["node2"],
        },
        "endpoint": {**KEEPALIVED, "port": 5000},
        "registry": {"port": 8443},
        "ssh": {"port": 5000},
    }

    with pytest.raises(InvalidCluster) as caught:
        parse_cluster(msgspec.json.encode(cluster(**spec)), "c.json")

    (problem,) = caught.value.problems
    assert "such as 9443" in problem.hint, "5000 and 8443 are taken, 6443 is the API server's"


def test_addresses_are_written_as_programs_write_them() -> None:
    data = cluster(
        **host(address="a.example", internalAddresses=["FD00:0::1"]),
        network={"podCIDR": "fd00:1::/56", "serviceCIDR": "fd00:2::/112"},
    )

    (member,) = parse_cluster(msgspec.json.encode(data), "c.json").declared.members

    assert (member.address, member.internal) == ("a.example", ("fd00::1",))


def test_a_secret_that_has_to_be_a_reference_is_told_once_and_never_shown() -> None:
    auth = {"username": "me", "password": "hunter2"}
    data = cluster(containerRuntime={"registries": {"a.example": {"auth": auth}}})

    with pytest.raises(InvalidCluster) as caught:
        parse_cluster(msgspec.json.encode(data), "c.json")

    assert len(caught.value.problems) == 1
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("archive", [None, b"no archive"])
def test_a_chart_that_tells_no_version_is_refused_when_planning(
    archive: bytes | None, tmp_path: Path
) -> None:
    beside(tmp_path)
    if archive is not None:
        (tmp_path / "shop.tgz").write_bytes(archive)
    file = tmp_path / "cluster.yaml"
    addons = [{"name": "shop", "chart": {"name": "shop.tgz"}}]
    file.write_bytes(msgspec.json.encode(cluster(addons=addons)))

    with pytest.raises(InvalidInput) as caught:
        planning.plan(PlanParams(OperationParams(ClusterParams(file))))

    assert "shop.tgz" in str(caught.value.problems)


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("network.podCIDR", "spec.network.podCIDR"),
        ("spec.hosts[0].name", "spec.hosts.name"),
        ("hosts[0].taints[1].key", "spec.hosts.taints.key"),
        ("metadata.name", "metadata.name"),
    ],
)
def test_a_key_is_explained_however_its_path_is_written(given: str, whole: str) -> None:
    assert explained(given) == explained(whole)
    assert explained(given).path == whole


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("netwrk.podCIDR", "did you mean `network`?"),
        ("spec.network.podCidr", "did you mean `podCIDR`?"),
        ("zzzzz", "write the whole path, such as `spec.network.podCIDR`"),
    ],
)
def test_a_path_that_is_none_is_told_with_what_to_write(path: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        explained(path)

    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ({"network": {"podCidr": "10.1.0.0/16"}}, "did you mean `podCIDR`?"),
        ({"hosts": [{"name": "n[1-3]"}]}, "with a colon between them: `[1:3]`"),
        ({"kubernetes": {"version": 1.36}}, "write all three numbers, such as `v1.36.3`"),
        ({"kubernetes": {"version": ["v1.36.3"]}}, "write one text, and no list or mapping"),
        ({"kubernetes": {"version": None}}, "fill it or leave it out"),
        ({"kubernetes": {"version": "v1.36.3", "clusterName": 5}}, "put it in quotes"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_was_meant(spec: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidCluster) as caught:
        parse_cluster(msgspec.json.encode(cluster(**spec)), "c.json")

    (problem,) = caught.value.problems
    assert hint in problem.hint
