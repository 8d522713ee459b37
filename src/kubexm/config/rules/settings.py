"""Rules of certificates and names."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath

_REVERSE = ("in-addr.arpa", "ip6.arpa")
"""The domains of addresses as names; the cluster answers for those of services."""


@rule("certificate-duration", "kubernetes.certificates")
def certificate_duration(cluster: Declared) -> Iterator[Finding]:
    """No certificate outlives its authority."""
    certificates = cluster.spec.kubernetes.certificates
    if certificates.duration > certificates.authority_duration:
        message = "`duration` is longer than `authorityDuration`"
        hint = "no certificate is good for longer than its authority: write less"
        yield Finding(("spec", "kubernetes", "certificates", "duration"), message, hint)


@rule("node-local-address", "dns", "network.podCIDR", "network.serviceCIDR", "hosts")
def node_local_address(cluster: Declared) -> Iterator[Finding]:
    """The cache of names has an address of its own."""
    local = cluster.spec.dns.node_local
    if not local.enabled:
        return
    found, place = ipaddress.ip_address(local.address), ("spec", "dns", "nodeLocal", "address")
    hint = "leave it out, or write one such as `169.254.25.10`"
    for network in (*cluster.pods, *cluster.services):
        if found in network:
            yield Finding(place, f"`{local.address}` is in {network}", hint)
    for member in cluster.members:
        if local.address in (member.address, *member.internal):
            yield Finding(place, f"`{local.address}` is host `{member.name}`", hint)


@rule("dns-zones", "dns")
def dns_zones(cluster: Declared) -> Iterator[Finding]:
    """Each domain is answered for once, and those of the cluster by the cluster."""
    own, seen = cluster.spec.dns.domain, set[str]()
    for number, zone in enumerate(cluster.spec.dns.zones):
        for at, name in enumerate(zone.names):
            place = ("spec", "dns", "zones", number, "names", at)
            if name in seen:
                yield Finding(place, f"`{name}` is there twice", "name all its servers in one zone")
            elif _is_within(own, name) or _is_within(name, own) or name in _REVERSE:
                message = f"the cluster itself answers for `{name}`, or for a part of it"
                hint = "leave it out, or name a domain that has nothing in common with `dns.domain`"
                yield Finding(place, message, hint)
            seen.add(name)


def _is_within(name: str, domain: str) -> bool:
    return name == domain or name.endswith(f".{domain}")


@rule("dns-servers", "dns")
def dns_servers(cluster: Declared) -> Iterator[Finding]:
    """Who is asked for other names is somebody else than a pod of CoreDNS itself."""
    dns = cluster.spec.dns
    yield from _asked(("spec", "dns", "upstream"), dns.upstream or ())
    for number, zone in enumerate(dns.zones):
        yield from _asked(("spec", "dns", "zones", number, "servers"), zone.servers)


def _asked(place: DataPath, servers: Sequence[str]) -> Iterator[Finding]:
    for at, text in enumerate(servers):
        found = ipaddress.ip_address(text)
        if found.is_loopback or found.is_unspecified or found.is_multicast:
            message = f"at `{text}` a pod of CoreDNS would ask itself, or nobody"
            yield Finding((*place, at), message, "give an address that pods reach")


RULES = (certificate_duration, node_local_address, dns_zones, dns_servers)
