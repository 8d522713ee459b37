"""Names inside the cluster."""

from __future__ import annotations

from typing import Annotated

from kubexm.config.fields import DomainName, IpAddress, NameServers, Version
from kubexm.document.forms import Filled, Form, Range


class NodeLocalSpec(Form):
    """A cache of names on every host."""

    enabled: bool = False
    """Whether there is one."""
    address: IpAddress = "169.254.25.10"
    """Where pods ask it."""


class ZoneSpec(Form):
    """Names that somebody else answers for."""

    names: Annotated[tuple[DomainName, ...], Filled()]
    """The domains."""
    servers: Annotated[NameServers, Filled()]
    """Who is asked."""


class DnsSpec(Form):
    """Names inside the cluster."""

    domain: DomainName = "cluster.local"
    """The domain of services."""
    version: Version | None = None
    """Which CoreDNS; the one that goes with this Kubernetes if nothing is said."""
    replicas: Annotated[int, Range(1, 100)] | None = None
    """How many CoreDNS there are; two, or one if there is but one kube node, if nothing is said."""
    upstream: NameServers | None = None
    """Who is asked for other names; those whom the host itself asks if nothing is said, and nobody
    if the list is empty, or the host asks nobody, as on an air-gapped site."""
    zones: tuple[ZoneSpec, ...] = ()
    """Domains for which somebody else is asked."""
    node_local: NodeLocalSpec = NodeLocalSpec()
    """A cache of names on every host."""
