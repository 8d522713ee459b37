"""What a rule is, and what it judges."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping

import msgspec

from kubexm.common.roles import CONTROL_PLANE, ETCD
from kubexm.config.members import Member
from kubexm.config.model.cluster import ClusterSpec
from kubexm.config.model.endpoint import EndpointKind
from kubexm.config.model.etcd import EtcdKind
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Declared(msgspec.Struct, frozen=True):
    """A cluster as its file declares it, with what follows from what is not said."""

    name: str
    spec: ClusterSpec
    members: tuple[Member, ...]
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Words about it."""

    def having(self, role: str) -> tuple[Member, ...]:
        """The hosts of a role."""
        return tuple(member for member in self.members if role in member.roles)

    @property
    def endpoint_kind(self) -> EndpointKind:
        if self.spec.endpoint.kind is not None:
            return self.spec.endpoint.kind
        return "haproxy" if len(self.having(CONTROL_PLANE)) > 1 else "single"

    @property
    def endpoint_host(self) -> str:
        """The name or address at which the API server is reached."""
        endpoint = self.spec.endpoint
        if given := endpoint.domain or endpoint.address:
            return given
        if self.endpoint_kind in ("haproxy", "nginx"):
            return f"api.{self.name}.kubexm.internal"
        return self.having(CONTROL_PLANE)[0].internal[0]

    @property
    def etcd_kind(self) -> EtcdKind:
        if self.spec.etcd.kind is not None:
            return self.spec.etcd.kind
        if self.spec.etcd.external is not None:
            return "external"
        return "systemd" if self.having(ETCD) else "stacked"

    @property
    def etcd_members(self) -> tuple[Member, ...]:
        """The hosts on which etcd is; none if it is external."""
        if self.etcd_kind == "external":
            return ()
        own = self.having(ETCD) if self.etcd_kind == "systemd" else ()
        return own or self.having(CONTROL_PLANE)

    @property
    def pods(self) -> tuple[Network, ...]:
        return tuple(map(ipaddress.ip_network, self.spec.network.pod_cidr))

    @property
    def services(self) -> tuple[Network, ...]:
        return tuple(map(ipaddress.ip_network, self.spec.network.service_cidr))


Judge = Callable[[Declared], Iterator[Finding]]


class Rule(msgspec.Struct, frozen=True):
    """Something that must hold between fields."""

    name: str
    """What it is called."""
    reads: tuple[DataPath, ...]
    """Where the fields are that it goes by."""
    judge: Judge

    def applies(self, gaps: frozenset[DataPath]) -> bool:
        """Whether all that it goes by could be read."""
        return not any(_meet(path, gap) for path in self.reads for gap in gaps)


def rule(name: str, *reads: str) -> Callable[[Judge], Rule]:
    """The function is a rule that goes by these keys of `spec`, written with dots."""
    paths = tuple(("spec", *text.split(".")) for text in reads)
    return lambda judge: Rule(name, paths, judge)


def _meet(one: DataPath, other: DataPath) -> bool:
    """Whether one of them is a part of the other."""
    return all(mine == theirs for mine, theirs in zip(one, other, strict=False))
