"""The hosts of a cluster with what each of them is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kubexm.common.roles import CONTROL_PLANE, ETCD, LOADBALANCER, REGISTRY, WORKER
from kubexm.config.model.cluster import ClusterSpec
from kubexm.config.model.hosts import Arch, HostSpec, RoleGroups, TaintSpec
from kubexm.document import ranges
from kubexm.document.fields import as_ip, unbracketed
from kubexm.document.source import DataPath

GROUPS = (CONTROL_PLANE, WORKER, ETCD, LOADBALANCER, REGISTRY)


class Member(msgspec.Struct, frozen=True):
    """A host of the cluster."""

    name: str
    address: str
    internal: tuple[str, ...]
    """The IP addresses that the others know it by, one of each family, as programs write them."""
    roles: tuple[str, ...]
    number: int
    """Its entry in the file, which may stand for several."""
    arch: Arch | None = None
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[TaintSpec, ...] = ()
    sudo: bool = False
    is_local: bool = False

    @property
    def place(self) -> DataPath:
        """Where the file has it."""
        return ("spec", "hosts", self.number)


def members(spec: ClusterSpec) -> tuple[Member, ...]:
    """All hosts in the order of the file; ranges are written out."""
    named = [*_named(spec)]
    roles = _roles([name for name, *_ in named], spec.role_groups)
    return tuple(
        Member(
            name,
            address,
            internal,
            tuple(role for role in GROUPS if name in roles[role]),
            number,
            host.arch,
            host.labels,
            host.taints,
            spec.sudo if host.sudo is None else host.sudo,
            host.connection == "local",
        )
        for name, address, internal, host, number in named
    )


def listed(groups: RoleGroups, role: str) -> Sequence[str] | None:
    """The names that a group has in the file; None if it says nothing."""
    found: Sequence[str] | None = getattr(groups, role.replace("-", "_"))
    return found


def written_out(patterns: Sequence[str]) -> list[str]:
    """The names that some ranges stand for."""
    return [name for pattern in patterns for name in ranges.parse(pattern).members()]


def _named(
    spec: ClusterSpec,
) -> Iterator[tuple[str, str, tuple[str, ...], HostSpec, int]]:
    for number, host in enumerate(spec.hosts):
        names = [*ranges.parse(host.name).members()]
        addresses = _each(host.address, names) or names
        internal = [_each(text, names) for text in host.internal_addresses or ()]
        for at, name in enumerate(names):
            known = tuple(texts[at] for texts in internal) or (addresses[at],)
            yield name, addresses[at], tuple(map(_normal, known)), host, number


def _normal(text: str) -> str:
    """An address as programs write it; a name as it is, which a rule refuses."""
    found = as_ip(unbracketed(text))
    return text if found is None else str(found)


def _each(text: str | None, names: Sequence[str]) -> list[str]:
    """One address for each name; a text without a range is that of all."""
    if text is None:
        return []
    pattern = ranges.parse(text)
    return [*pattern.members()] if pattern.size == len(names) else [text] * len(names)


def _roles(names: Sequence[str], groups: RoleGroups) -> Mapping[str, frozenset[str]]:
    """The hosts of each role; what is not said follows from what is."""
    said = {role: written_out(listed(groups, role) or ()) for role in GROUPS}
    if listed(groups, CONTROL_PLANE) is None:
        said[CONTROL_PLANE] = [*names[:1]]
    if listed(groups, WORKER) is None:
        elsewhere = {name for role in GROUPS for name in said[role]}
        said[WORKER] = [name for name in names if name not in elsewhere] or said[CONTROL_PLANE]
    return {role: frozenset(said[role]) for role in GROUPS}
