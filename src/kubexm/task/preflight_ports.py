"""Where the parts of a cluster listen on a host, and whom it has to reach at which port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from kubexm.common.roles import CONTROL_PLANE, LOADBALANCER, REGISTRY, WORKER
from kubexm.config.members import Member
from kubexm.config.rules.rule import Declared
from kubexm.step.preflight_look import Peer

API_SERVER = 6443
KUBELET = 10250
ETCD_CLIENTS = 2379
ETCD_MEMBERS = 2380
MOST_NEEDED = 6
MOST_PEERS = 8
"""So that many hosts ask no more than a few questions each."""
_CONTROL_PLANE = {
    f"tcp/{API_SERVER}": "the API server",
    "tcp/10257": "the controller manager",
    "tcp/10259": "the scheduler",
}
_KUBE_NODE = {f"tcp/{KUBELET}": "the kubelet", "tcp/10248": "the kubelet"}
_PROXY = {"tcp/10249": "kube-proxy", "tcp/10256": "kube-proxy"}
_ETCD = {f"tcp/{ETCD_CLIENTS}": "etcd", f"tcp/{ETCD_MEMBERS}": "etcd"}
_STACKED = {"tcp/2381": "etcd"}
_CILIUM = {"tcp/4240": "cilium", "tcp/4244": "cilium", "udp/8472": "cilium"}
_CALICO = {"tcp/9099": "calico"}
_CALICO_BGP = {"tcp/179": "calico"}
_CALICO_VXLAN = {"udp/4789": "calico"}
_FLANNEL_VXLAN = {"udp/8472": "flannel"}


class Parts(msgspec.Struct, frozen=True, dict=True):
    """Who has which part in a cluster; found once, since there may be thousands of hosts."""

    declared: Declared

    @cached_property
    def planes(self) -> tuple[Member, ...]:
        return self.declared.having(CONTROL_PLANE)

    @cached_property
    def etcd(self) -> tuple[Member, ...]:
        """The hosts with a member of etcd."""
        return self.declared.etcd_members

    @cached_property
    def balancers(self) -> tuple[Member, ...]:
        """The hosts that stand in front of the control planes."""
        is_theirs = self.declared.endpoint_kind == "keepalived"
        return self.declared.having(LOADBALANCER) if is_theirs else ()

    @cached_property
    def registries(self) -> tuple[Member, ...]:
        return self.declared.having(REGISTRY)

    @cached_property
    def holders(self) -> tuple[Member, ...]:
        """The hosts one of which gets the address of the endpoint."""
        return self.planes if self.declared.endpoint_kind == "kube-vip" else self.balancers

    @cached_property
    def ring(self) -> Mapping[str, tuple[Member, Member]]:
        """By kube node the one after and the one before it in the file, which is taken for one."""
        nodes = [member for member in self.declared.members if is_kube_node(member)]
        after, before = (*nodes[1:], *nodes[:1]), (*nodes[-1:], *nodes[:-1])
        found = zip(nodes, after, before, strict=True)
        return {one.name: (later, former) for one, later, former in found}


def is_plane(member: Member) -> bool:
    """Whether a host runs the API server."""
    return CONTROL_PLANE in member.roles


def is_kube_node(member: Member) -> bool:
    """Whether a host runs the kubelet."""
    return is_plane(member) or WORKER in member.roles


def ports(parts: Parts, member: Member) -> dict[str, str]:
    """The ports that have to be free on a host, and who will listen there."""
    declared, found = parts.declared, dict[str, str]()
    if is_plane(member):
        found |= _CONTROL_PLANE
    if is_kube_node(member):
        found |= _KUBE_NODE | _plugin(declared)
        found |= _PROXY if declared.spec.kubernetes.kube_proxy.mode != "none" else {}
    if member in parts.etcd:
        found |= _ETCD | (_STACKED if declared.etcd_kind == "stacked" else {})
    if member in parts.balancers or _has_own_balancer(declared, member):
        found[f"tcp/{declared.spec.endpoint.port}"] = "the load balancer"
    if member in parts.registries:
        found[f"tcp/{declared.spec.registry.port}"] = "the registry"
    return found


def _has_own_balancer(declared: Declared, member: Member) -> bool:
    own = declared.endpoint_kind in ("haproxy", "nginx")
    return own and is_kube_node(member) and not is_plane(member)


def _plugin(declared: Declared) -> dict[str, str]:
    network = declared.spec.network
    if network.plugin == "cilium":
        return _CILIUM
    if network.plugin == "flannel":
        return _FLANNEL_VXLAN if network.flannel.backend == "vxlan" else {}
    if network.plugin != "calico":
        return {}
    way = network.calico.encapsulation
    vxlan = _CALICO_VXLAN if way.startswith("vxlan") else {}
    return {**_CALICO, **vxlan, **(_CALICO_BGP if way != "vxlan" else {})}


def peers(parts: Parts, member: Member) -> tuple[Peer, ...]:
    """Others that a host has to reach: those it can't go without, and its neighbours."""
    found: dict[str, Peer] = {}
    for other, port in _needed(parts, member):
        known = found.get(other.name)
        found[other.name] = _peer(other, {port, *(known.ports if known else ())})
    needed = [*found.values()][:MOST_NEEDED]
    beside = _others(parts.ring.get(member.name, ()), member)
    near = {one.name: _peer(one, {KUBELET}, False) for one in beside if one.name not in found}
    return (*needed, *near.values())[:MOST_PEERS]


def _peer(member: Member, ports: set[int], needed: bool = True) -> Peer:
    return Peer(member.name, member.internal[0], tuple(sorted(ports)), needed)


def _needed(parts: Parts, member: Member) -> Iterator[tuple[Member, int]]:
    """Others and the port at which each is needed, the most important first."""
    spec = parts.declared.spec
    members = _others(parts.etcd, member)
    if member in parts.etcd:
        yield from ((other, ETCD_MEMBERS) for other in members)
    if is_plane(member):
        yield from ((other, ETCD_CLIENTS) for other in members)
    if is_kube_node(member) or member in parts.balancers:
        yield from ((other, API_SERVER) for other in _others(parts.planes, member))
    if is_kube_node(member):
        yield from ((other, spec.endpoint.port) for other in _others(parts.balancers, member))
        yield from ((other, spec.registry.port) for other in _others(parts.registries, member))


def _others(members: Sequence[Member], member: Member) -> list[Member]:
    return [other for other in members if other.name != member.name]
