"""Names in the cluster."""

from __future__ import annotations

import msgspec

from kubexm.templates.context import Context, Template


class Zone(msgspec.Struct, frozen=True, kw_only=True):
    """Names that somebody else answers for."""

    names: tuple[str, ...]
    """The domains."""
    servers: tuple[str, ...]
    """Who is asked."""


class CoreDnsManifest(Context, frozen=True, kw_only=True):
    """CoreDNS, which answers for services and asks others for the rest."""

    image: str
    """The image of CoreDNS."""
    addresses: tuple[str, ...]
    """The addresses of its service; one of each family at most."""
    domain: str = "cluster.local"
    """The domain of services."""
    replicas: int = 2
    """How many there are."""
    upstream: tuple[str, ...] = ()
    """Who is asked for other names: addresses, or `/etc/resolv.conf` for those whom the host asks.
    If there is nobody, as on an air-gapped site, other names don't exist."""
    zones: tuple[Zone, ...] = ()
    """Domains for which somebody else is asked."""


class NodeLocalDnsManifest(Context, frozen=True, kw_only=True):
    """A cache of names on every kube node."""

    image: str
    """The image of the cache."""
    upstream: tuple[str, ...]
    """Who is asked for what it does not know: the addresses of the service of CoreDNS."""
    address: str = "169.254.25.10"
    """Where pods ask it, which is the same on every host."""


_COREDNS = "registry.k8s.io/coredns/coredns:v1.14.2"
_NODE_CACHE = "registry.k8s.io/dns/k8s-dns-node-cache:1.26.7"

TEMPLATES: tuple[Template, ...] = (
    Template(
        "coredns/manifest",
        CoreDnsManifest,
        "manifests",
        "names in the cluster",
        "the cluster",
        (
            CoreDnsManifest(
                image=_COREDNS, addresses=("10.233.0.10",), upstream=("/etc/resolv.conf",)
            ),
            CoreDnsManifest(
                image=_COREDNS,
                addresses=("10.233.0.10", "fd00:233::a"),
                domain="k8s.example.com",
                replicas=3,
                upstream=("10.0.0.53", "fd00::53"),
                zones=(
                    Zone(names=("corp.example.com", "lan"), servers=("10.0.0.5", "10.0.0.6")),
                    Zone(names=("partner.example.org",), servers=("fd00::5",)),
                ),
            ),
            CoreDnsManifest(image=_COREDNS, addresses=("fd00:233::a",)),
        ),
    ),
    Template(
        "nodelocaldns/manifest",
        NodeLocalDnsManifest,
        "manifests",
        "a cache of names on every kube node",
        "the cluster",
        (
            NodeLocalDnsManifest(image=_NODE_CACHE, upstream=("10.233.0.10",)),
            NodeLocalDnsManifest(
                image=_NODE_CACHE, upstream=("fd00:233::a",), address="fd00::25:10"
            ),
        ),
    ),
)
