"""Each check of a host by itself: what it lets pass, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from kubexm.common.checks import CHECKS
from kubexm.runner.clock import ClockState
from kubexm.runner.probed import Probed, Route
from kubexm.runner.probing import Knock
from kubexm.step.preflight import HELD, JUDGES
from kubexm.step.preflight_look import Found, Look, Peer, Place, Wanted

FACTS: Mapping[str, Any] = {
    "os": {"id": "debian", "family": "debian", "name": "Debian GNU/Linux 12"},
    "kernel": "6.1.0-28-amd64",
    "arch": "x86_64",
    "cpus": 2,
    "memory_mib": 1700,
    "swap_mib": 0,
    "filesystems": [
        {"path": "/", "free_mib": 20_000},
        {"path": "/var/lib/etcd", "free_mib": 500},
        {"path": "/var/lib/etc", "free_mib": 1},
    ],
    "addresses": ["10.0.0.5", "fd00::5"],
    "network": {"interface": "eth0", "nameservers": ["10.0.0.2"]},
    "ports": {"tcp/22": "sshd", "tcp/10250": "kubelet", "udp/8472": ""},
    "init": "systemd",
    "cgroup": 2,
    "selinux": "disabled",
    "package_manager": "apt",
    "runtimes": [],
}
A, B = Peer("cp1", "10.0.0.1", (2379, 6443)), Peer("n7", "10.0.0.7", (10250,), needed=False)
KNOCKS = {
    Knock("cp1", "10.0.0.1", 6443): "closed",
    Knock("cp1", "10.0.0.1", 2379): "open",
    Knock("n7", "10.0.0.7", 10250): "closed",
    Knock("endpoint", "10.0.0.200", 6443): "open",
    Knock("etcd", "10.9.0.1", 2379): "open",
}
PROBED = Probed(
    uid=0,
    is_ours=False,
    tools=frozenset(("conntrack", "ip", "iptables", "mount", "nsenter", "socat", "tc", "ethtool")),
    routes=(
        Route("default", "eth0", "10.0.0.254"),
        Route("10.0.0.0/24", "eth0"),
        Route("default", "eth0", "fe80::1", 6),
    ),
    clock=ClockState("Etc/UTC", synchronised=True, keeper="chronyd"),
    knocks=KNOCKS,  # type: ignore[arg-type]  # literals
    answering=frozenset(("10.0.0.2",)),
    links=("lo", "eth0", "cni-podman0"),
    place="/var/lib",
    writes=(0.001,) * 99 + (0.02,),
)
WANTED = Wanted(
    checks=(),
    hosts={"here": Place("amd64", ("10.0.0.5", "fd00:0::5", "a.name"), (A, B))},
    cpus=2,
    memory_mib=1700,
    kernel={"5.10": "cilium v1.18.0"},
    cgroup=2,
    disk={"/var/lib/kubelet": 10_240, "/var/lib/containerd": 1},
    etcd="/var/lib/etcd",
    ports={"tcp/6443": "the API server"},
    networks={"10.233.64.0/18": "pods", "fd00:1::/64": "services"},
    site=(Peer("endpoint", "10.0.0.200", (6443,)), Peer("etcd", "10.9.0.1", (2379,))),
    endpoint="10.0.0.100",
)


def found(
    check: str,
    facts: Mapping[str, Any] | None = None,
    probed: Mapping[str, Any] | None = None,
    **wanted: Any,
) -> list[Found]:
    """What a check finds on a host that is as it should be but for this."""
    told = {name: value for name, value in {**FACTS, **(facts or {})}.items() if value is not None}
    look = Look("here", replace(WANTED, **wanted), told, with_fields(PROBED, **(probed or {})))
    return [*JUDGES[check](look)]


def test_every_check_of_a_host_by_itself_is_made() -> None:
    alone = {name for name, check in CHECKS.items() if not check.across}

    assert JUDGES.keys() == alone - {"reachable"}
    assert JUDGES.keys() >= HELD


def test_what_selinux_keeps_from_haproxy_is_told_with_the_way_out() -> None:
    (of_balancer,) = found("selinux", {"selinux": "enforcing"}, haproxy=True)

    assert "setsebool -P haproxy_connect_any 1" in of_balancer.remedy
    assert found("selinux", {"selinux": "permissive"}, haproxy=True) == []


@pytest.mark.parametrize("check", JUDGES)
def test_a_host_that_is_as_it_should_be_has_nothing_wrong(check: str) -> None:
    assert found(check) == []


OTHERS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ("root", {}, {"uid": 1000}, {}, "commands do not run as root: user id 1000"),
    (
        "operating-system",
        {"os": {"id": "alpine", "family": "alpine", "name": "Alpine 3.20"}},
        {},
        {},
        "`Alpine 3.20` is like none of debian, rhel, suse",
    ),
    ("systemd", {"init": "openrc"}, {}, {}, "systemd does not run the host: `openrc` does"),
    ("architecture", {"arch": "riscv64"}, {}, {}, "`riscv64` is neither amd64 nor arm64"),
    (
        "architecture",
        {"arch": "aarch64"},
        {},
        {},
        "the host is arm64, and the plan has amd64",
    ),
    (
        "kernel",
        {"kernel": "5.4.0-150-generic"},
        {},
        {},
        "cilium v1.18.0 wants a kernel from 5.10 on: 5.4.0-150-generic",
    ),
    (
        "kernel",
        {"kernel": "4.18.0-305.el8.x86_64"},
        {},
        {},
        "cilium v1.18.0 wants a kernel from 5.10 on: 4.18.0-305.el8.x86_64",
    ),
    ("cgroups", {"cgroup": 1}, {}, {}, "control groups are of version 1, want 2"),
    ("cgroups", {"cgroup": None}, {}, {}, "no control groups are mounted"),
    ("processors", {"cpus": 1}, {}, {}, "fewer than 2 processors: 1"),
    ("memory", {"memory_mib": 1699}, {}, {}, "less than 1,700 MiB of memory: 1,699 MiB"),
    (
        "disk-space",
        {},
        {},
        {"disk": {"/var/lib/etcd": 10_240, "/var/lib/etcd/x": 1, "/var": 20_000}},
        "less than 10,240 MiB is free on `/var/lib/etcd`, for `/var/lib/etcd`, `/var/lib/etcd/x`:",
    ),
    (
        "etcd-disk",
        {},
        {"writes": (0.001,) * 98 + (0.0123, 0.02)},
        {},
        "one write of 100 takes more than 10 ms until it is durable: 12.3 ms, by 100 writes of 2,",
    ),
    ("swap", {"swap_mib": 1024}, {}, {}, "there is swap: 1,024 MiB"),
    ("selinux", {"selinux": "enforcing"}, {}, {}, "SELinux enforces its policy"),
    (
        "selinux",
        {"selinux": "enforcing"},
        {},
        {"haproxy": True},
        "SELinux enforces its policy, by which haproxy has only ports of the web",
    ),
    ("firewall", {}, {"firewall": "ufw"}, {}, "`ufw` is active"),
    (
        "clock-kept",
        {},
        {"clock": ClockState("", synchronised=False, keeper="")},
        {},
        "nobody keeps the clock right",
    ),
    (
        "clock-kept",
        {},
        {"clock": ClockState("", synchronised=False, keeper="chronyd")},
        {},
        "`chronyd` runs, and has not set the clock by another one yet",
    ),
    (
        "packages",
        {"package_manager": None},
        {"tools": frozenset(("conntrack", "ip", "iptables", "mount", "nsenter", "ethtool"))},
        {},
        "tools are missing, and no package manager is known: socat, tc",
    ),
    (
        "container-runtime",
        {},
        {"units": ("docker", "containerd", "etcd")},
        {},
        "another container runtime runs: docker, containerd",
    ),
    (
        "container-runtime",
        {"runtimes": ["cri-o"]},
        {},
        {},
        "another container runtime is installed: cri-o",
    ),
    (
        "other-cluster",
        {},
        {"member": "staging"},
        {},
        "a member of another cluster that kubexm has made: `staging`",
    ),
    ("other-cluster", {}, {"member": ""}, {}, "a member of another cluster that kubexm has made"),
    (
        "leftovers",
        {},
        {"files": ("/etc/kubernetes/admin.conf",)},
        {},
        "files of another cluster: `/etc/kubernetes/admin.conf`",
    ),
    (
        "leftovers",
        {},
        {"units": ("kubelet", "docker")},
        {},
        "units of another cluster that run: `kubelet`",
    ),
    (
        "leftovers",
        {},
        {"links": ("lo", "flannel.1", "cali123", "cni-podman0", "lxcbr0")},
        {},
        "links of another cluster: `flannel.1`, `cali123`",
    ),
    ("leftovers", {}, {"mounts": ("/var/lib/kubelet/x",)}, {}, "mounts of pods: `/var/lib/kubel"),
    (
        "leftovers",
        {},
        {"rules": ("KUBE-SERVICES",)},
        {},
        "packet filters of another cluster: `KUBE-SERVICES`",
    ),
    ("leftovers", {}, {"virtual_servers": 2}, {}, "virtual servers of IPVS: `2`"),
    (
        "ports-free",
        {},
        {},
        {"ports": {"tcp/10250": "the kubelet"}},
        "tcp/10250 is for the kubelet: `kubelet` has it",
    ),
    (
        "ports-free",
        {},
        {},
        {"ports": {"udp/8472": "flannel"}},
        "udp/8472 is for flannel: somebody has it",
    ),
    (
        "node-address",
        {"addresses": ["10.0.0.50", "fd00::5"]},
        {},
        {},
        "an address of the cluster file is not the host's: `10.0.0.5`, it has 10.0.0.50, fd00::5",
    ),
    (
        "default-route",
        {},
        {"routes": (Route("default", "eth0", "10.0.0.254"),)},
        {},
        "there is no default route of IPv6",
    ),
    (
        "networks-apart",
        {},
        {"routes": (Route("10.233.100.0/24", "docker0"),)},
        {},
        "10.233.64.0/18 of pods overlaps a way of the host: 10.233.100.0/24 by `docker0`",
    ),
    (
        "networks-apart",
        {"addresses": ["fd00:1::9"]},
        {"routes": None},
        {},
        "fd00:1::/64 of services overlaps a way of the host: fd00:1::9/128",
    ),
    (
        "nameserver",
        {"network": {"nameservers": []}},
        {},
        {},
        "/etc/resolv.conf names nobody: pods know names of the cluster alone",
    ),
    (
        "nameserver",
        {"network": {"nameservers": ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.2"]}},
        {},
        {},
        "nobody answers for names: 10.0.0.3, 10.0.0.4, 10.0.0.5",
    ),
    (
        "nameserver-loop",
        {"network": {"nameservers": ["127.0.0.1", "10.0.0.2"]}},
        {"resolvers": ("10.0.0.2",)},
        {},
        "/etc/resolv.conf names the host itself, which to a pod is the pod: 127.0.0.1",
    ),
    (
        "nameserver-loop",
        {"network": {"nameservers": ["127.0.0.53"]}},
        {},
        {},
        "/etc/resolv.conf names the host itself, which to a pod is the pod: 127.0.0.53",
    ),
    (
        "hosts-reach-each-other",
        {},
        {"knocks": {Knock("n7", "10.0.0.7", 10250): "open"}},
        {},
        "no answer from others of the cluster: cp1 10.0.0.1",
    ),
    (
        "ports-reachable",
        {},
        {"knocks": {**KNOCKS, Knock("cp1", "10.0.0.1", 6443): "unroutable"}},
        {},
        "no answer at ports of others: cp1 10.0.0.1 6443 (turned away)",
    ),
    (
        "site-reachable",
        {},
        {"knocks": {**KNOCKS, Knock("endpoint", "10.0.0.200", 6443): "silent"}},
        {},
        "no answer from what the site has: endpoint 10.0.0.200 6443 (no answer)",
    ),
    (
        "endpoint-address-free",
        {"addresses": ["10.0.0.100"]},
        {},
        {},
        "`10.0.0.100` is an address of the host already",
    ),
    (
        "endpoint-address-free",
        {},
        {"endpoint_hardware": "52:54:00:00:00:01"},
        {},
        "somebody has `10.0.0.100` already: 52:54:00:00:00:01",
    ),
    (
        "endpoint-address-free",
        {},
        {"endpoint": "closed"},
        {},
        "somebody has `10.0.0.100` already",
    ),
    (
        "endpoint-address-network",
        {},
        {"routes": (Route("10.0.0.0/8", "eth0", "10.1.0.1"), Route("10.1.0.0/24", "eth0"))},
        {},
        "`10.0.0.100` is in no network of the host",
    ),
]


@pytest.mark.parametrize(("check", "facts", "probed", "wanted", "message"), OTHERS)
def test_what_is_not_as_it_should_be_is_found(
    check: str,
    facts: dict[str, Any],
    probed: dict[str, Any],
    wanted: dict[str, Any],
    message: str,
) -> None:
    (one,) = found(check, facts, probed, **wanted)

    said = f"{one.what}: {one.figure}" if one.figure else one.what
    assert said.startswith(message)
    assert one.kind is None, "what comes of it is up to the check"


def test_every_check_of_a_host_has_an_example_of_what_it_finds() -> None:
    assert {check for check, *_ in OTHERS} == JUDGES.keys()


@pytest.mark.parametrize(
    ("check", "facts", "probed"),
    [
        ("operating-system", {"os": None}, {}),
        ("kernel", {"kernel": None}, {}),
        ("processors", {"cpus": None}, {}),
        ("memory", {"memory_mib": None}, {}),
        ("disk-space", {"filesystems": None}, {}),
        ("etcd-disk", {}, {"writes": ()}),
        ("clock-kept", {}, {"clock": None}),
        ("packages", {}, {"tools": None}),
        ("ports-free", {"ports": None}, {}),
        ("node-address", {"addresses": None}, {}),
        ("default-route", {"network": None}, {"routes": None}),
        ("nameserver", {"network": None}, {}),
        ("nameserver", {}, {"answering": None}),
        ("hosts-reach-each-other", {}, {"knocks": None}),
        ("ports-reachable", {}, {"knocks": None}),
        ("site-reachable", {}, {"knocks": None}),
        ("endpoint-address-network", {}, {"routes": None}),
    ],
)
def test_what_a_host_does_not_tell_is_not_judged(
    check: str, facts: dict[str, Any], probed: dict[str, Any]
) -> None:
    (one,) = found(check, facts, probed)

    assert one.kind == "unknown"


@pytest.mark.parametrize(
    ("kernel", "least", "passes"),
    [
        ("5.10.0", "5.10", True),
        ("5.9.99", "5.10", False),
        ("4.18.0-553.el8_10.x86_64", "5.10", True),
        ("4.18.0-553.el8_10.x86_64", "5.13", False),
        ("4.18.0-372.el8.x86_64", "5.4", True),
        ("4.18.0-372.el8.x86_64", "5.10", False),
        ("4.19.57", "4.19.57", True),
    ],
)
def test_kernels_are_compared_by_what_they_can_do(kernel: str, least: str, passes: bool) -> None:
    assert (found("kernel", {"kernel": kernel}, kernel={least: "x"}) == []) is passes


def test_one_of_several_who_answers_for_names_is_enough() -> None:
    several = {"network": {"nameservers": ["10.0.0.3", "10.0.0.2"]}}

    assert found("nameserver", several) == []


def test_a_stub_of_resolved_is_no_loop_where_it_asks_others() -> None:
    stub = {"network": {"nameservers": ["127.0.0.53"]}}

    assert found("nameserver-loop", stub, {"resolvers": ("10.0.0.2",)}) == []
    assert len(found("nameserver-loop", stub, {"resolvers": ("127.0.0.1",)})) == 1


@pytest.mark.parametrize(
    ("networks", "routes", "lacking"),
    [
        (["10.1.0.0/16"], (), ["IPv4"]),
        (["10.1.0.0/16"], (Route("default", "eth0", "10.0.0.254"),), []),
        (["10.1.0.0/16"], (Route("default", "eth0", "fe80::1", 6),), ["IPv4"]),
        (["fd00:1::/64"], (Route("default", "ppp0", "", 6),), []),
        (["fd00:1::/64"], (Route("default", "eth0", "10.0.0.254"),), ["IPv6"]),
        (["fd00:1::/64"], (Route("default", "lo", "", 6),), ["IPv6"]),
        (["10.1.0.0/16", "fd00:1::/64"], (Route("default"),), ["IPv4", "IPv6"]),
        ([], (Route("default", "eth0", "10.0.0.254"),), []),
        ([], (), ["IPv4"]),
    ],
)
def test_each_family_of_the_cluster_needs_a_default_route_of_its_own(
    networks: list[str], routes: tuple[Route, ...], lacking: list[str]
) -> None:
    lost = found("default-route", probed={"routes": routes}, networks=dict.fromkeys(networks, "x"))

    assert [one.what for one in lost] == [
        f"there is no default route of {name}" for name in lacking
    ]


def test_facts_tell_the_default_route_of_ipv4_where_nobody_lists_routes() -> None:
    def kinds(network: str) -> list[str | None]:
        told = found("default-route", probed={"routes": None}, networks={network: "pods"})
        return [one.kind for one in told]

    assert (kinds("10.1.0.0/16"), kinds("fd00:1::/64")) == ([], ["unknown"])


def test_a_way_to_all_private_addresses_is_only_told() -> None:
    wide = {"routes": (Route("10.0.0.0/8", "eth0", "10.0.0.254"),)}
    halves = {"routes": (Route("0.0.0.0/1", "tun0"), Route("128.0.0.0/1", "tun0"))}

    assert [one.kind for one in found("networks-apart", probed=wide)] == ["warning"]
    assert found("networks-apart", probed=halves) == []


def test_a_neighbour_that_is_gone_is_only_told_and_so_is_anybody_once_the_cluster_is_there() -> (
    None
):
    nobody: dict[str, Any] = {"knocks": {}}

    kinds = [one.kind for one in found("hosts-reach-each-other", probed=nobody)]
    later = [
        one.kind for one in found("hosts-reach-each-other", probed={**nobody, "is_ours": True})
    ]

    assert kinds == [None, "warning"]
    assert later == ["warning", "warning"]


def test_who_answers_at_no_port_but_to_a_ping_is_there() -> None:
    pinged: dict[str, Any] = {"knocks": {}, "pinged": frozenset(("10.0.0.1", "10.0.0.7"))}

    assert found("hosts-reach-each-other", probed=pinged) == []
    assert [one.figure for one in found("ports-reachable", probed=pinged)] == [
        "cp1 10.0.0.1 2379 (no answer), cp1 10.0.0.1 6443 (no answer)",
        "n7 10.0.0.7 10250 (no answer)",
    ]


def test_a_host_of_the_cluster_needs_less_room_than_a_new_one() -> None:
    little = {"filesystems": [{"path": "/", "free_mib": 2000}]}
    less = {"filesystems": [{"path": "/", "free_mib": 1000}]}

    assert len(found("disk-space", little)) == 1
    assert found("disk-space", little, {"is_ours": True}) == []
    assert len(found("disk-space", less, {"is_ours": True})) == 1
