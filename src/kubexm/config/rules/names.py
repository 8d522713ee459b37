"""Rules of names: those in the hosts file of every host, and those that the cluster answers."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from kubexm.common.roles import CONTROL_PLANE
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath

_REVERSE = ("in-addr.arpa", "ip6.arpa")
"""The domains of addresses as names; the cluster answers for those of services."""
_LOCALHOST = "localhost"
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
_BESIDE = ("haproxy", "nginx")
_LOCAL = ("spec", "dns", "nodeLocal", "address")


@rule("endpoint-domain", "endpoint", "roleGroups", "hosts", "dns.domain")
def endpoint_domain(cluster: Declared) -> Iterator[Finding]:
    """The name of the endpoint is nobody else's."""
    if (domain := cluster.spec.endpoint.domain) is not None and (whose := _whose(cluster, domain)):
        hint = "write a name of its own, such as `api.example.com`, or leave it out"
        yield Finding(("spec", "endpoint", "domain"), f"`{domain}` is {whose}", hint)


def _whose(cluster: Declared, domain: str) -> str:
    """Who has a name that the endpoint is to have; the only control plane may share its own."""
    planes = cluster.having(CONTROL_PLANE)
    own = [one.name for one in planes] if cluster.endpoint_kind == "single" else []
    if _is_within(domain, _LOCALHOST):
        return "every host itself"
    if any(member.name == domain for member in cluster.members) and domain not in own:
        return "the name of a host"
    if _is_within(domain, cluster.spec.dns.domain):
        return "in the domain of services, for which the cluster itself answers"
    return ""


@rule("hosts-file", "system.hosts", "hosts", "roleGroups", "endpoint")
def hosts_file(cluster: Declared) -> Iterator[Finding]:
    """No line of the hosts file contradicts another."""
    known = _known(cluster)
    for number, entry in enumerate(cluster.spec.system.hosts):
        for at, name in enumerate(entry.names):
            if entry.address not in known.get(name.lower(), {entry.address}):
                place = ("spec", "system", "hosts", number, "names", at)
                message = f"hosts know `{name}` by another address than `{entry.address}` already"
                yield Finding(place, message, "leave it out, or write another name")


def _known(cluster: Declared) -> dict[str, frozenset[str]]:
    """The names that kubexm itself writes there, and what they stand for."""
    found = {_LOCALHOST: _LOOPBACK}
    found |= {member.name: frozenset(member.internal) for member in cluster.members}
    endpoint, kind = cluster.spec.endpoint, cluster.endpoint_kind
    if kind in _BESIDE:
        # It stands for something else on each host.
        found[cluster.endpoint_host] = frozenset()
    elif endpoint.domain and endpoint.address:
        found[endpoint.domain] = frozenset({endpoint.address})
    elif endpoint.domain and kind == "single":
        found[endpoint.domain] = frozenset(cluster.having(CONTROL_PLANE)[0].internal)
    return found


@rule("node-local-address", "dns", "network.podCIDR", "network.serviceCIDR", "hosts")
def node_local_address(cluster: Declared) -> Iterator[Finding]:
    """The cache of names has an address of its own, which pods reach."""
    local = cluster.spec.dns.node_local
    if not local.enabled:
        return
    is_v6 = ":" in local.address
    hint = f"leave it out, or write one such as `{'fd00:253::1' if is_v6 else '169.254.25.10'}`"
    for message in _taken(cluster, local.address):
        yield Finding(_LOCAL, message, hint)
    first = cluster.pods[0].version
    if (6 if is_v6 else 4) != first:
        wanted = "169.254.25.10" if first == 4 else "fd00:253::1"
        message = f"`{local.address}` is not of IPv{first}, which pods have first"
        yield Finding(_LOCAL, message, f"write one such as `{wanted}`")


def _taken(cluster: Declared, text: str) -> Iterator[str]:
    found = ipaddress.ip_address(text)
    if found.is_loopback or found.is_unspecified or found.is_multicast:
        yield f"`{text}` leads a pod to itself, or to nobody"
    for network in (*cluster.pods, *cluster.services):
        if found in network:
            yield f"`{text}` is in {network}"
    for member in cluster.members:
        if text in (member.address, *member.internal):
            yield f"`{text}` is host `{member.name}`"


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
    own = dns.node_local.address if dns.node_local.enabled else ""
    yield from _asked(("spec", "dns", "upstream"), dns.upstream or (), own)
    for number, zone in enumerate(dns.zones):
        yield from _asked(("spec", "dns", "zones", number, "servers"), zone.servers, own)


def _asked(place: DataPath, servers: Sequence[str], own: str) -> Iterator[Finding]:
    for at, text in enumerate(servers):
        found = ipaddress.ip_address(text)
        if found.is_loopback or found.is_unspecified or found.is_multicast:
            message = f"at `{text}` a pod of CoreDNS would ask itself, or nobody"
            yield Finding((*place, at), message, "give an address that pods reach")
        elif text == own:
            message = f"`{text}` is the cache of names, which asks CoreDNS in turn"
            yield Finding((*place, at), message, "give somebody who knows other names")


@rule("dns-upstream", "dns.upstream", "network.serviceCIDR", "network.podCIDR")
def dns_upstream(cluster: Declared) -> Iterator[Finding]:
    """Nothing within the cluster is asked for the names of the world: it would ask in turn."""
    own = [(network, "services") for network in cluster.services]
    own += [(network, "pods") for network in cluster.pods]
    for at, text in enumerate(cluster.spec.dns.upstream or ()):
        for network, whose in own:
            if ipaddress.ip_address(text) in network:
                message = f"`{text}` is in {network}, the addresses of {whose}"
                hint = "give a server outside of the cluster"
                yield Finding(("spec", "dns", "upstream", at), message, hint)


RULES = (
    endpoint_domain,
    hosts_file,
    node_local_address,
    dns_zones,
    dns_servers,
    dns_upstream,
)
