"""Rules of the way to the API server."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from kubexm.common.counting import few
from kubexm.common.roles import CONTROL_PLANE, LOADBALANCER
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding

_ENDPOINT = ("spec", "endpoint")
_API_SERVER = 6443
_ADDRESS = ("keepalived", "kube-vip")
"""Kinds with an address that moves."""
_SECTIONS = {"keepalived": "keepalived", "kube_vip": "kube-vip"}
_TAKEN = {2379: "etcd", 2380: "etcd", 10250: "the kubelet", 10256: "kube-proxy"}


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


@rule("load-balancer-hosts", "endpoint", "roleGroups", "hosts")
def load_balancer_hosts(cluster: Declared) -> Iterator[Finding]:
    """keepalived has hosts to run on."""
    if cluster.endpoint_kind == "keepalived" and not cluster.having(LOADBALANCER):
        message = "`kind: keepalived`, and the role `loadbalancer` has no host"
        hint = "add `roleGroups: {loadbalancer: [HOST, HOST]}`, or write `kind: kube-vip`"
        yield Finding((*_ENDPOINT, "kind"), message, hint)


@rule("endpoint-port", "endpoint", "roleGroups", "hosts")
def port(cluster: Declared) -> Iterator[Finding]:
    """Nobody else listens where the load balancer does."""
    number, kind = cluster.spec.endpoint.port, cluster.endpoint_kind
    place = (*_ENDPOINT, "port")
    if number in _TAKEN and kind != "external":
        hint = "write another, such as 6443 or 8443"
        yield Finding(place, f"{_TAKEN[number]} listens at {number}", hint)
    both = [member.name for member in cluster.having(LOADBALANCER) if _is_plane(member.roles)]
    if kind == "keepalived" and number == _API_SERVER and both:
        message = f"the API server of {few(both)} listens at {number} as well"
        hint = "write another port, such as 8443, or name other hosts for `loadbalancer`"
        yield Finding(place, message, hint)
    if kind in ("single", "kube-vip") and number != _API_SERVER:
        message = f"the API server listens at {_API_SERVER}, and nothing stands in front of it"
        yield Finding(place, message, f"leave it out, or write {_API_SERVER}")


def _is_plane(roles: tuple[str, ...]) -> bool:
    return CONTROL_PLANE in roles


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


RULES = (single, address, address_free, address_outside, load_balancer_hosts, port, settings)
