"""Rules of hosts and their roles."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from kubexm.common.counting import few
from kubexm.common.nearest import nearest
from kubexm.common.roles import CONTROL_PLANE, ETCD, LOADBALANCER, REGISTRY, WORKER
from kubexm.config.members import GROUPS, listed, written_out
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.fields import as_ip
from kubexm.document.findings import Finding

_KUBE_NODE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_OF_EACH = ("localhost", "ip6-localhost", "ip6-loopback")
"""Names in the hosts file of every machine, which lead it to itself."""
_GROUPS = ("spec", "roleGroups")
_ADD_ADDRESSES = (
    "add `internalAddresses: [ADDRESS]`: by it the cluster knows the host, which kubexm reaches by"
    " its name"
)


@rule("known-hosts", "hosts", "roleGroups")
def known_hosts(cluster: Declared) -> Iterator[Finding]:
    """Groups name hosts that are there."""
    there = [member.name for member in cluster.members]
    for role in GROUPS:
        for number, pattern in enumerate(listed(cluster.spec.role_groups, role) or ()):
            if unknown := [name for name in written_out([pattern]) if name not in there]:
                near = nearest(unknown[0], there)
                hint = f"did you mean `{near}`?" if near else "add it under `spec.hosts`"
                message = f"there is no host {few(unknown)}"
                yield Finding((*_GROUPS, role, number), message, hint)


@rule("groups-once", "roleGroups")
def groups_once(cluster: Declared) -> Iterator[Finding]:
    """A group names a host once."""
    for role in GROUPS:
        first: dict[str, int] = {}
        for number, pattern in enumerate(listed(cluster.spec.role_groups, role) or ()):
            names = written_out([pattern])
            if again := [name for name in names if first.setdefault(name, number) != number]:
                message = f"the group has {few(again)} already"
                hint = f"leave out what entry {first[again[0]]} names"
                yield Finding((*_GROUPS, role, number), message, hint)


@rule("control-plane", "roleGroups")
def control_plane(cluster: Declared) -> Iterator[Finding]:
    """There is a control plane, and somebody runs pods."""
    for role in (CONTROL_PLANE, WORKER):
        if listed(cluster.spec.role_groups, role) == ():
            message = "found an empty list, want a host at least"
            yield Finding((*_GROUPS, role), message, "name a host, or leave it out")


@rule("roles-in-use", "roleGroups", "endpoint", "etcd", "registry.host")
def roles_in_use(cluster: Declared) -> Iterator[Finding]:
    """A role that has hosts is one that something runs on."""
    groups = cluster.spec.role_groups
    if groups.loadbalancer and cluster.endpoint_kind != "keepalived":
        hint = "write `endpoint: {kind: keepalived, address: …}`, or leave the group out"
        yield _unused(LOADBALANCER, f"an endpoint of the kind `{cluster.endpoint_kind}`", hint)
    if groups.etcd and cluster.etcd_kind != "systemd":
        hint = "write `etcd: {kind: systemd}`, or leave the group out"
        yield _unused(ETCD, f"etcd of the kind `{cluster.etcd_kind}`", hint)
    if groups.registry and (given := cluster.spec.registry.host) is not None:
        hint = "leave `registry.host` out to have one set up on this host, or leave the group out"
        yield _unused(REGISTRY, f"the registry `{given}` by `registry.host`", hint)


def _unused(role: str, instead: str, hint: str) -> Finding:
    return Finding((*_GROUPS, role), f"nothing runs on it: there is {instead}", hint, at_key=True)


@rule("one-registry", "roleGroups")
def one_registry(cluster: Declared) -> Iterator[Finding]:
    """There is one registry at most."""
    if len(found := cluster.having(REGISTRY)) > 1:
        names = few([member.name for member in found])
        yield Finding((*_GROUPS, REGISTRY), f"found {names}, want one host", "name one of them")


@rule("unique-addresses", "hosts")
def unique_addresses(cluster: Declared) -> Iterator[Finding]:
    """No two hosts have one address."""
    first: dict[str, str] = {}
    for member in cluster.members:
        for address in dict.fromkeys((member.address, *member.internal)):
            if (other := first.setdefault(address, member.name)) != member.name:
                message = f"`{member.name}` and `{other}` have the same address `{address}`"
                yield Finding(member.place, message, "give each its own; a range needs one, too")


@rule("cluster-addresses", "hosts")
def cluster_addresses(cluster: Declared) -> Iterator[Finding]:
    """The others know a host by IP addresses that lead to it."""
    for member in cluster.members:
        for text in member.internal:
            if (found := as_ip(text)) is None:
                message = f"`{member.name}` has the name `{text}` for an address"
                yield Finding(member.place, f"{message}, want an IP address", _ADD_ADDRESSES)
            elif _leads_nowhere(found):
                message = f"`{text}` of `{member.name}` does not lead to it from another host"
                hint = "write one of its own network as `address`, or under `internalAddresses`"
                yield Finding(member.place, message, hint)


def _leads_nowhere(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return found.is_loopback or found.is_unspecified or found.is_multicast or found.is_link_local


@rule("kube-node-names", "hosts")
def kube_node_names(cluster: Declared) -> Iterator[Finding]:
    """Hosts have names that kube nodes can have."""
    for member in cluster.members:
        if not _KUBE_NODE.fullmatch(member.name) or len(member.name) > 63:
            message = f"`{member.name}` can't be the name of a kube node"
            hint = "use small letters, digits, `-` and `.`, at most 63, none of `-.` at an end"
            yield Finding((*member.place, "name"), message, hint)
        elif _is_of_each(member.name):
            message = f"`{member.name}` leads every host to itself"
            yield Finding((*member.place, "name"), message, "give it a name of its own")


def _is_of_each(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in _OF_EACH or parts[-1] == "localhost"


@rule("one-machine", "hosts")
def one_machine(cluster: Declared) -> Iterator[Finding]:
    """The machine kubexm runs on is one host."""
    local = [member for member in cluster.members if member.is_local]
    for member in local[1:]:
        message = f"`{local[0].name}` is this machine already"
        yield Finding((*member.place, "connection"), message, "reach the other one by ssh")


RULES = (
    known_hosts,
    groups_once,
    control_plane,
    roles_in_use,
    one_registry,
    unique_addresses,
    cluster_addresses,
    kube_node_names,
    one_machine,
)
