"""Rules of the way to the API server."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from kubexm.common.counting import few
from kubexm.common.roles import CONTROL_PLANE, LOADBALANCER
from kubexm.config.members import Member
from kubexm.config.rules.listeners import API_SERVER
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding

_ENDPOINT = ("spec", "endpoint")
_ADDRESS = ("keepalived", "kube-vip")
"""Kinds with an address that moves."""
_SECTIONS = {"keepalived": "keepalived", "kube_vip": "kube-vip"}
_DIRECT = {
    "single": "nothing stands in front of the API servers",
    "kube-vip": "nothing stands in front of the API servers",
    "haproxy": "control planes have no balancer",
    "nginx": "control planes have no balancer",
}
"""Kinds with which somebody asks the API servers themselves, and why."""


@rule("endpoint-single", "endpoint", "roleGroups", "hosts")
def single(cluster: Declared) -> Iterator[Finding]:
    """Several control planes have something in front of them."""
    planes = [member.name for member in cluster.having(CONTROL_PLANE)]
    if cluster.endpoint_kind == "single" and len(planes) > 1:
        message = f"`single` with {len(planes)} control planes: {few(planes)}"
        yield Finding((*_ENDPOINT, "kind"), message, "write `haproxy`, or leave it out")


@rule("endpoint-address", "endpoint", "roleGroups", "hosts")
def address(cluster: Declared) -> Iterator[Finding]:
    """Kinds that need an address have one, and others that can't use one have none."""
    endpoint, kind = cluster.spec.endpoint, cluster.endpoint_kind
    if kind in _ADDRESS and endpoint.address is None:
        message = f"`address` is missing for `kind: {kind}`"
        yield Finding(_ENDPOINT, message, "add `address: …`, one that nobody has on this network")
    if kind == "external" and endpoint.address is None and endpoint.domain is None:
        message = "neither `address` nor `domain` for `kind: external`"
        yield Finding(_ENDPOINT, message, "add where your load balancer is")
    if kind in ("haproxy", "nginx", "single") and endpoint.address is not None:
        message = f"`address` has no meaning for `kind: {kind}`"
        hint = "leave it out, or write `kind: external`, `keepalived` or `kube-vip`"
        yield Finding((*_ENDPOINT, "address"), message, hint, at_key=True)


@rule("endpoint-address-free", "endpoint", "hosts")
def address_free(cluster: Declared) -> Iterator[Finding]:
    """An address that moves is nobody's."""
    wanted = cluster.spec.endpoint.address
    if cluster.endpoint_kind not in _ADDRESS or wanted is None:
        return
    for member in cluster.members:
        if wanted in (member.address, *member.internal):
            message = f"`{wanted}` is the address of host `{member.name}`"
            hint = "give one that nobody has: it moves from host to host"
            yield Finding((*_ENDPOINT, "address"), message, hint)


@rule("endpoint-balancer", "endpoint", "roleGroups", "hosts")
def balancer(cluster: Declared) -> Iterator[Finding]:
    """A load balancer is no API server: that one leads to itself alone."""
    wanted, planes = cluster.spec.endpoint.address, cluster.having(CONTROL_PLANE)
    is_direct = cluster.spec.endpoint.port == API_SERVER and len(planes) > 1
    if cluster.endpoint_kind != "external" or not is_direct:
        return
    for member in planes:
        if wanted in (member.address, *member.internal):
            message = f"at `{wanted}` is the API server of `{member.name}`, and no load balancer"
            hint = "give the address of your load balancer, or write `kind: haproxy`"
            yield Finding((*_ENDPOINT, "address"), message, hint)


@rule("endpoint-address-outside", "endpoint.address", "network.podCIDR", "network.serviceCIDR")
def address_outside(cluster: Declared) -> Iterator[Finding]:
    """The address is neither that of a pod nor of a service."""
    if (wanted := cluster.spec.endpoint.address) is None:
        return
    found = ipaddress.ip_address(wanted)
    for name, networks in (("pods", cluster.pods), ("services", cluster.services)):
        if any(found in network for network in networks):
            message = f"`{wanted}` is among the addresses of {name}"
            yield Finding((*_ENDPOINT, "address"), message, "give one of the network of the hosts")


@rule("endpoint-address-usable", "endpoint", "roleGroups", "hosts")
def address_usable(cluster: Declared) -> Iterator[Finding]:
    """An address that moves is one that the hosts which hold it can have."""
    wanted = cluster.spec.endpoint.address
    if cluster.endpoint_kind not in _ADDRESS or wanted is None:
        return
    found, place = ipaddress.ip_address(wanted), (*_ENDPOINT, "address")
    if found.is_loopback or found.is_unspecified or found.is_multicast:
        message = f"`{wanted}` is no address that a host can be reached by"
        yield Finding(place, message, "give one of the network of the hosts")
    elif lacking := [one.name for one in _holders(cluster) if not _has_family(one, found.version)]:
        message = f"`{wanted}` is IPv{found.version}, of which {few(lacking)} has no address"
        hint = "give one of the family of the hosts, or them `internalAddresses` of both"
        yield Finding(place, message, hint)


def _holders(cluster: Declared) -> tuple[Member, ...]:
    is_vip = cluster.endpoint_kind == "kube-vip"
    return cluster.having(CONTROL_PLANE if is_vip else LOADBALANCER)


def _has_family(member: Member, version: int) -> bool:
    return version in (6 if ":" in text else 4 for text in member.internal)


@rule("load-balancer-hosts", "endpoint", "roleGroups", "hosts")
def load_balancer_hosts(cluster: Declared) -> Iterator[Finding]:
    """keepalived has hosts to run on."""
    if cluster.endpoint_kind == "keepalived" and not cluster.having(LOADBALANCER):
        message = "`kind: keepalived`, and the role `loadbalancer` has no host"
        hint = "add `roleGroups: {loadbalancer: [HOST, HOST]}`, or write `kind: kube-vip`"
        yield Finding((*_ENDPOINT, "kind"), message, hint)


@rule("endpoint-port", "endpoint", "roleGroups", "hosts")
def port(cluster: Declared) -> Iterator[Finding]:
    """Where hosts ask the API servers themselves, they ask at the port of these."""
    number, kind = cluster.spec.endpoint.port, cluster.endpoint_kind
    if kind in _DIRECT and number != API_SERVER:
        why = f"{_DIRECT[kind]}, and API servers listen at that"
        message = f"found {number}, want {API_SERVER}: {why}"
        hint = "leave it out; another port needs `kind: external` or `keepalived`, and an address"
        yield Finding((*_ENDPOINT, "port"), message, hint)


@rule("endpoint-settings", "endpoint", "roleGroups", "hosts")
def settings(cluster: Declared) -> Iterator[Finding]:
    """Settings of a kind are there for that kind alone."""
    endpoint = cluster.spec.endpoint
    for name, kind in _SECTIONS.items():
        if endpoint.says(name) and cluster.endpoint_kind != kind:
            alias = endpoint.fields()[name].alias
            message = f"`{alias}` has no meaning for `kind: {cluster.endpoint_kind}`"
            hint = f"leave it out, or write `kind: {kind}`"
            yield Finding((*_ENDPOINT, alias), message, hint, at_key=True)


RULES = (
    single,
    address,
    address_free,
    balancer,
    address_outside,
    address_usable,
    load_balancer_hosts,
    port,
    settings,
)
