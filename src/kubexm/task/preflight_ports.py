"""Where the parts of a cluster listen on a host, and whom it has to reach at which port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from urllib.parse import urlsplit

import msgspec

from kubexm.common.roles import CONTROL_PLANE, LOADBALANCER, REGISTRY
from kubexm.config.members import Member
from kubexm.config.rules.listeners import (
    API_SERVER,
    BGP,
    ETCD_CLIENTS,
    ETCD_MEMBERS,
    KUBELET,
    Listeners,
    exchanges_routes,
    is_kube_node,
    is_plane,
)
from kubexm.config.rules.rule import Declared
from kubexm.step.preflight_look import Peer

MOST_NEEDED = 6
MOST_PEERS = 8
"""So that many hosts ask no more than a few questions each."""


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
    def listeners(self) -> Listeners:
        return Listeners(self.declared)

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

    @cached_property
    def kubelets(self) -> Mapping[str, Sequence[Member]]:
        """By control plane some hosts whose kubelet it asks for logs; each begins with others."""
        nodes = [one for one in self.declared.members if is_kube_node(one) and not is_plane(one)]
        step = len(self.planes)
        found: dict[str, Sequence[Member]] = {}
        for number, plane in enumerate(self.planes):
            own = nodes[number::step]
            rest = (one for at, one in enumerate(nodes[: MOST_PEERS * step]) if at % step != number)
            found[plane.name] = (*own, *rest)[:MOST_PEERS]
        return found


def ports(parts: Parts, member: Member) -> dict[str, str]:
    """The ports that have to be free on a host, and who will listen there."""
    those = (one for one in parts.listeners.of(member) if one.is_ours)
    return {f"{one.protocol}/{one.port}": one.who for one in those}


def peers(parts: Parts, member: Member) -> tuple[Peer, ...]:
    """Others that a host has to reach: those it can't go without, neighbours, and some kubelets."""
    found: dict[str, Peer] = {}
    for other, port in _needed(parts, member):
        known = found.get(other.name)
        found[other.name] = _peer(other, {port, *(known.ports if known else ())})
    needed = [*found.values()][:MOST_NEEDED]
    mutual = {KUBELET, BGP} if exchanges_routes(parts.declared) else {KUBELET}
    beside = _others(parts.ring.get(member.name, ()), member)
    near = {one.name: _peer(one, mutual, False) for one in beside if one.name not in found}
    for one in parts.kubelets.get(member.name, ()):
        if one.name not in found:
            near.setdefault(one.name, _peer(one, {KUBELET}, False))
    return (*needed, *near.values())[:MOST_PEERS]


def site(declared: Declared, member: Member) -> Iterator[Peer]:
    """What a host needs that is no host of the cluster."""
    spec = declared.spec
    if declared.endpoint_kind == "external" and is_kube_node(member):
        where = spec.endpoint.address or declared.endpoint_host
        yield Peer("endpoint", where, (spec.endpoint.port,))
    if spec.etcd.external is not None and is_plane(member):
        for url in map(urlsplit, spec.etcd.external.endpoints):
            yield Peer("etcd", url.hostname or "", (url.port or ETCD_CLIENTS,))


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
        # Whoever asks for logs asks any of them, and that one the kubelet.
        yield from ((other, KUBELET) for other in _others(parts.planes, member))
    if is_kube_node(member) or member in parts.balancers:
        yield from ((other, API_SERVER) for other in _others(parts.planes, member))
    if is_kube_node(member):
        yield from ((other, spec.endpoint.port) for other in _others(parts.balancers, member))
        yield from ((other, spec.registry.port) for other in _others(parts.registries, member))


def _others(members: Sequence[Member], member: Member) -> list[Member]:
    return [other for other in members if other.name != member.name]
