"""What a cluster file wants of its hosts, by their part in the cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubexm.config.cluster import checked
from kubexm.config.rules.rule import Declared
from kubexm.document import source
from kubexm.engine import MemoryJournal, Options, execute
from kubexm.module.preflight import preflight
from kubexm.plan.graph import as_graph
from kubexm.plan.result import GraphExecutionResult
from kubexm.resource import catalog, materials
from kubexm.resource import declared as needed
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.sim import Machine, World, WorldSettings
from kubexm.spec.loader import Loader
from kubexm.step.preflight import Fit
from kubexm.step.preflight_look import Peer
from kubexm.task.context import ClusterContext
from kubexm.task.operator_files import OperatorFiles
from kubexm.task.preflight_groups import PASSING_MIB, groups
from kubexm.task.preflight_ports import MOST_PEERS, Parts, peers

HOSTS = [
    {"name": "cp[1:3]", "address": "10.0.0.[11:13]"},
    {"name": "node[1:4]", "address": "10.0.0.[21:24]"},
]
PLANES = {"control-plane": ["cp[1:3]"]}


def declared(**spec: Any) -> Declared:
    body = {"kubernetes": {"version": "v1.36.3"}, "hosts": HOSTS, "roleGroups": PLANES, **spec}
    head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "demo"}}
    return checked(source.from_data({**head, "spec": body})).declared


def fits(cilium: str = "", **spec: Any) -> dict[str, Fit]:
    found = groups(declared(**spec), {"cp1": "arm64"}, cilium)
    return {group.name: group.step for group in found}


def test_hosts_with_the_same_part_are_put_to_the_same_checks() -> None:
    found = groups(declared(), {})

    assert [(group.name, group.hosts) for group in found] == [
        ("control-plane", ("cp1", "cp2", "cp3")),
        ("worker", ("node1", "node2", "node3", "node4")),
    ]


def test_thresholds_are_those_of_the_part() -> None:
    found = fits(preflight={"workerCpus": 4, "controlPlaneMemoryMib": 4000, "etcdFsync": "20ms"})

    plane, worker = found["control-plane"], found["worker"]
    assert (plane.cpus, plane.memory_mib, plane.etcd_fsync) == (2, 4000, 0.02)
    assert (worker.cpus, worker.memory_mib) == (4, 1024)
    assert plane.cluster == "demo"
    assert plane.hosts["cp1"].arch == "arm64"
    assert plane.hosts["cp2"].arch == "", "any will do"
    assert plane.hosts["cp2"].addresses == ("10.0.0.12",)


def test_only_members_of_etcd_are_asked_how_fast_their_disk_is() -> None:
    etcd = {"kind": "systemd", "dataDir": "/data/etcd"}
    groups = {"control-plane": ["cp[1:2]"], "etcd": ["cp3"]}
    found = fits(etcd=etcd, roleGroups=groups, endpoint={"kind": "haproxy"})

    assert ("etcd-disk" in found["etcd"].checks, found["etcd"].etcd) == (True, "/data/etcd")
    assert ("etcd-disk" in found["control-plane"].checks, found["control-plane"].etcd) == (
        False,
        "",
    )
    assert "kernel" not in found["etcd"].checks
    assert (found["etcd"].cpus, found["etcd"].memory_mib) == (0, 0)
    assert set(found["etcd"].ports) == {"tcp/2379", "tcp/2380", "tcp/2381"}


def test_room_is_wanted_where_data_will_lie() -> None:
    found = fits(
        containerRuntime={"root": "/data/containerd"},
        roleGroups={**PLANES, "registry": ["node4"]},
        preflight={"diskFreeMib": 5000},
    )

    assert found["worker"].disk == {
        "/var/lib/kubexm": PASSING_MIB,
        "/tmp": PASSING_MIB,
        "/data/containerd": 5000,
        "/var/lib/kubelet": 5000,
    }
    assert found["control-plane"].disk["/var/lib/etcd"] == 5000
    assert found["registry"].disk == {
        "/var/lib/kubexm": PASSING_MIB,
        "/tmp": PASSING_MIB,
        "/var/lib/registry": 5000,
    }
    assert found["registry"].ports == {"tcp/5000": "the registry"}


def test_ports_are_those_of_what_runs_on_a_host() -> None:
    found = fits(network={"plugin": "flannel"})

    assert found["control-plane"].ports == {
        "tcp/6443": "the API server",
        "tcp/10257": "the controller manager",
        "tcp/10259": "the scheduler",
        "tcp/10250": "the kubelet",
        "tcp/10248": "the kubelet",
        "udp/8472": "flannel",
        "tcp/10249": "kube-proxy",
        "tcp/10256": "kube-proxy",
        "tcp/2379": "etcd",
        "tcp/2380": "etcd",
        "tcp/2381": "etcd",
    }
    assert found["worker"].ports["tcp/6443"] == "the load balancer", "one on each of them"


@pytest.mark.parametrize(
    ("network", "there", "not_there"),
    [
        ({"plugin": "calico"}, {"tcp/9099", "udp/4789"}, {"tcp/179"}),
        ({"plugin": "calico", "calico": {"encapsulation": "none"}}, {"tcp/179"}, {"udp/4789"}),
        ({"plugin": "cilium"}, {"tcp/4240", "udp/8472"}, {"udp/4789"}),
        ({"plugin": "flannel", "flannel": {"backend": "host-gw"}}, set(), {"udp/8472"}),
        ({"plugin": "routed"}, set(), {"udp/8472", "udp/4789", "tcp/9099"}),
    ],
)
def test_ports_are_those_of_the_network_plugin(
    network: dict[str, Any], there: set[str], not_there: set[str]
) -> None:
    ports = fits(network=network)["worker"].ports.keys()

    assert ports >= there
    assert not ports & not_there


def test_a_port_of_the_endpoint_is_wanted_of_load_balancers() -> None:
    found = fits(
        roleGroups={**PLANES, "loadbalancer": ["node[3:4]"]},
        endpoint={"kind": "keepalived", "address": "10.0.0.100", "port": 8443},
        kubernetes={"version": "v1.36.3", "kubeProxy": {"mode": "none"}},
        network={"plugin": "cilium"},
    )

    assert found["loadbalancer"].ports == {
        "tcp/8443": "the load balancer",
        "tcp/8081": "the health of haproxy",
    }
    assert (found["loadbalancer"].endpoint, found["loadbalancer"].endpoint_port) == (
        "10.0.0.100",
        8443,
    )
    assert "endpoint-address-free" in found["loadbalancer"].checks
    assert found["control-plane"].endpoint == ""
    assert "endpoint-address-free" not in found["control-plane"].checks
    assert not {"tcp/10256", "tcp/8443"} & found["worker"].ports.keys()


@pytest.mark.parametrize(
    ("spec", "role", "there"),
    [
        ({}, "worker", {"tcp/6443", "tcp/8081"}),
        ({"dns": {"nodeLocal": {"enabled": True}}}, "worker", {"tcp/9253", "tcp/9254"}),
        ({"endpoint": {"kind": "kube-vip", "address": "10.0.0.9"}}, "control-plane", {"tcp/2112"}),
        ({"etcd": {"kind": "systemd"}}, "control-plane", {"tcp/2379", "tcp/2381"}),
    ],
)
def test_ports_are_those_of_all_that_comes_with_a_cluster(
    spec: dict[str, Any], role: str, there: set[str]
) -> None:
    ports = fits(**spec)[role].ports

    assert ports.keys() >= there
    assert "tcp/22" not in ports, "sshd has it already, and may"


def test_selinux_has_to_let_haproxy_be_where_it_is_a_service() -> None:
    keepalived = {"kind": "keepalived", "address": "10.0.0.100"}
    groups = {**PLANES, "loadbalancer": ["node[3:4]"]}

    found = fits(roleGroups=groups, endpoint=keepalived)

    assert [name for name, fit in found.items() if fit.haproxy] == ["loadbalancer"]
    assert not any(fit.haproxy for fit in fits(endpoint={"kind": "haproxy"}).values())


def test_a_balancer_of_nginx_tells_of_its_health_nowhere() -> None:
    assert "tcp/8081" not in fits(endpoint={"kind": "nginx"})["worker"].ports


def test_control_planes_hold_the_address_of_kube_vip() -> None:
    vip = {"kind": "kube-vip", "address": "10.0.0.100"}
    bgp = {"mode": "bgp", "bgp": {"peers": [{"address": "10.0.0.254", "asn": 65001}]}}

    arp = fits(endpoint=vip)["control-plane"]
    far = fits(endpoint={**vip, "kubeVip": bgp})["control-plane"]

    assert {"endpoint-address-free", "endpoint-address-network"} <= set(arp.checks)
    assert "endpoint-address-free" in far.checks
    assert "endpoint-address-network" not in far.checks, "routers are told where it is"


@pytest.mark.parametrize(
    ("version", "kubelet", "ignored", "cgroup"),
    [
        ("v1.34.4", {}, [], 1),
        ("v1.35.4", {}, [], 2),
        ("v1.36.3", {"failCgroupV1": False}, [], 2),
        ("v1.36.3", {}, ["SystemVerification"], 2),
        ("v1.36.3", {"failCgroupV1": False}, ["SystemVerification"], 1),
        ("v1.36.3", {"failCgroupV1": False}, ["SYSTEMVERIFICATION"], 1),
    ],
)
def test_control_groups_are_those_that_the_kubelet_and_kubeadm_take(
    version: str, kubelet: dict[str, Any], ignored: list[str], cgroup: int
) -> None:
    kubernetes = {
        "version": version,
        "kubelet": {"config": kubelet},
        "kubeadm": {"ignorePreflightErrors": ignored},
    }

    assert fits(kubernetes=kubernetes)["worker"].cgroup == cgroup


@pytest.mark.parametrize(
    ("cilium", "mode", "kernels"),
    [
        ("", "iptables", {"4.9.17"}),
        ("", "nftables", {"4.9.17", "5.13"}),
        ("v1.20.2", "iptables", {"4.9.17", "5.10"}),
        ("v1.17.1", "nftables", {"4.9.17", "5.4", "5.13"}),
        ("1.15.0", "iptables", {"4.9.17", "4.19.57"}),
    ],
)
def test_kernels_are_what_the_parts_of_the_cluster_want(
    cilium: str, mode: str, kernels: set[str]
) -> None:
    kubernetes = {"version": "v1.36.3", "kubeProxy": {"mode": mode}}

    assert fits(cilium, kubernetes=kubernetes)["worker"].kernel.keys() == kernels


@pytest.mark.parametrize(
    ("spec", "gone"),
    [
        ({"preflight": {"skip": ["memory", "firewall"]}}, {"memory", "firewall"}),
        ({"dns": {"upstream": []}}, {"nameserver", "nameserver-loop"}),
        ({"dns": {"upstream": ["10.0.0.2"]}}, {"nameserver", "nameserver-loop"}),
        (
            {
                "kubernetes": {
                    "version": "v1.36.3",
                    "kubelet": {"config": {"failSwapOn": False, "resolvConf": "/x"}},
                }
            },
            {"swap", "nameserver-loop"},
        ),
        (
            {"hosts": [{"name": "one", "address": "10.0.0.1"}], "roleGroups": {}},
            {"hosts-reach-each-other", "ports-reachable"},
        ),
    ],
)
def test_what_is_left_out_or_has_no_meaning_is_not_checked(
    spec: dict[str, Any], gone: set[str]
) -> None:
    usual = {name for step in fits().values() for name in step.checks}
    left = {name for step in fits(**spec).values() for name in step.checks}

    assert usual >= gone
    assert left == usual - gone


def test_a_host_tries_those_it_needs_and_its_neighbours() -> None:
    cluster = declared()
    parts = Parts(cluster)
    by_name = {member.name: member for member in cluster.members}

    assert peers(parts, by_name["node1"]) == (
        Peer("cp1", "10.0.0.11", (6443,)),
        Peer("cp2", "10.0.0.12", (6443,)),
        Peer("cp3", "10.0.0.13", (6443,)),
        Peer("node2", "10.0.0.22", (10250,), needed=False),
    )
    assert peers(parts, by_name["cp1"])[:3] == (
        Peer("cp2", "10.0.0.12", (2379, 2380, 6443, 10250)),
        Peer("cp3", "10.0.0.13", (2379, 2380, 6443, 10250)),
        Peer("node4", "10.0.0.24", (10250,), needed=False),
    )


def test_a_control_plane_tries_kubelets_for_which_it_is_asked_for_logs() -> None:
    parts = Parts(declared())
    by_name = {member.name: member for member in parts.declared.members}
    large = Parts(
        declared(
            hosts=[
                {"name": "cp[1:3]", "address": "10.0.1.[1:3]"},
                {"name": "n[1:90]", "address": "10.0.0.[1:90]"},
            ],
            network={"podCIDR": ["10.64.0.0/14"]},
        )
    )

    assert [one.host for one in peers(parts, by_name["cp2"])] == [
        *("cp1", "cp3", "node2", "node1", "node3", "node4")
    ]
    assert peers(parts, by_name["cp2"])[2] == Peer("node2", "10.0.0.22", (10250,), needed=False)
    tried = [
        {one.host for one in peers(large, plane)[2:] if one.ports == (10250,)}
        for plane in large.planes
    ]
    assert [len(names) for names in tried] == [6, 6, 6]
    assert len(set.union(*tried)) == 17, "each tries others, but for neighbours in the file"


@pytest.mark.parametrize(
    ("encapsulation", "ports"),
    [("ipip", (179, 10250)), ("vxlan", (10250,)), ("none", (179, 10250))],
)
def test_neighbours_try_whether_they_can_tell_each_other_routes(
    encapsulation: str, ports: tuple[int, ...]
) -> None:
    parts = Parts(
        declared(network={"plugin": "calico", "calico": {"encapsulation": encapsulation}})
    )
    (node1,) = (member for member in parts.declared.members if member.name == "node1")

    assert peers(parts, node1)[-1] == Peer("node2", "10.0.0.22", ports, needed=False)


def test_what_the_site_has_is_tried_by_those_who_need_it() -> None:
    external = {
        "endpoints": ["https://10.9.0.1:2379", "https://etcd2.example.com:4001"],
        "ca": "ca.crt",
        "certificate": "client.crt",
        "key": "env://KEY",
    }
    endpoint = {"kind": "external", "domain": "api.example.com", "port": 443}

    found = fits(endpoint=endpoint, etcd={"external": external})

    balancer = Peer("endpoint", "api.example.com", (443,))
    members = (Peer("etcd", "10.9.0.1", (2379,)), Peer("etcd", "etcd2.example.com", (4001,)))
    assert found["control-plane"].site == (balancer, *members)
    assert found["worker"].site == (balancer,)
    assert all("site-reachable" in step.checks for step in found.values())
    assert not any("site-reachable" in step.checks for step in fits().values())


def test_a_host_of_a_large_cluster_tries_a_few_others() -> None:
    large = declared(
        hosts=[
            {"name": "cp[1:7]", "address": "10.0.1.[1:7]"},
            {"name": "n[1:240]", "address": "10.0.0.[1:240]"},
        ],
        roleGroups={"control-plane": ["cp[1:7]"]},
        network={"podCIDR": ["10.64.0.0/14"]},
    )
    parts = Parts(large)

    found = {member.name: peers(parts, member) for member in large.members}

    assert max(map(len, found.values())) == MOST_PEERS
    assert [peer.host for peer in found["n100"]][-2:] == ["n101", "n99"]
    assert all(
        member.name not in {one.host for one in found[member.name]} for member in large.members
    )


def context(cluster: Declared) -> ClusterContext:
    known = catalog.load(())
    bill = materials.bill(known, needed.needs(cluster, {}))
    arch = dict.fromkeys([member.name for member in cluster.members], "amd64")
    return ClusterContext(cluster, known, bill, arch, OperatorFiles(None))  # type: ignore[arg-type]


def carried_out(cluster: Declared, directory: Path, **settings: Any) -> GraphExecutionResult:
    """The module alone, on simulated hosts."""
    names = tuple(member.name for member in cluster.members)
    graph = as_graph(cluster.name, preflight(context(cluster)), hosts=names)
    addresses = {member.name: member.internal for member in cluster.members}
    world = World.create(directory, WorldSettings(addresses=addresses, **settings))
    hosts = [HostConfig(name, world.connector(name)) for name in names]

    async def scenario() -> GraphExecutionResult:
        async with Runtime.build(RuntimeConfig(hosts)) as runtime:
            return await execute(graph, runtime, Options(), load=Loader(), journal=MemoryJournal())

    try:
        return asyncio.run(scenario())
    finally:
        world.close()


def test_the_module_has_a_node_for_each_part_and_changes_nothing(tmp_path: Path) -> None:
    result = carried_out(declared(), tmp_path / "world")

    assert result.status == "Success"
    assert [*result.node_results] == ["preflight/hosts/control-plane", "preflight/hosts/worker"]
    units = [unit for node in result.node_results.values() for unit in node.host_results.values()]
    assert [unit.message for unit in units] == ["fit"] * 7
    assert all(unit.satisfied for unit in units)


def test_a_simulated_host_that_has_a_name_for_an_address_tells_of_itself(tmp_path: Path) -> None:
    addresses: dict[str, tuple[str, ...]] = {
        "a": ("a.example",),
        "b": ("fd00:1::1",),
        "c": ("fd00:2::1",),
    }
    world = World.create(tmp_path / "world", WorldSettings(addresses=addresses))
    hosts = [HostConfig(name, world.connector(name)) for name in addresses]

    async def scenario() -> set[str]:
        async with Runtime.build(RuntimeConfig(hosts)) as runtime:
            return {facts["network"]["mac"] for facts in runtime.facts().values()}

    try:
        assert len(asyncio.run(scenario())) == 3, "each has a hardware address of its own"
    finally:
        world.close()


def test_the_module_refuses_a_host_that_is_not_fit(tmp_path: Path) -> None:
    small = {"node2": Machine(memory_mib=512), "cp1": Machine(swap_mib=64)}
    result = carried_out(declared(), tmp_path / "world", machines=small)

    workers = result.node_results["preflight/hosts/worker"].host_results
    planes = result.node_results["preflight/hosts/control-plane"].host_results
    assert result.status == "Failed"
    assert [name for name, unit in workers.items() if unit.status == "Failed"] == ["node2"]
    assert workers["node2"].message.startswith("not fit, by `memory`\nmemory: less than 1,024 MiB")
    assert planes["cp1"].satisfied
    assert planes["cp1"].message.startswith("fit\nswap: there is swap: 64 MiB")
