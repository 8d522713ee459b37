"""The names and addresses that the certificates of a host are valid for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import msgspec

from kubexm.errors import InvalidInput, Problem

LOCAL = ("localhost", "127.0.0.1", "::1")
_KUBERNETES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_DOTTED = re.compile(r"[0-9.]+")
"""An address, or what was meant to be one: `10.0.0.300` would pass for a name."""
_LONGEST = 253
_BARE = "write a DNS name or an address alone: no port, no brackets, no `https://`"
_RANGE = "write a range of addresses, such as `10.96.0.0/12`"
_Address = IPv4Address | IPv6Address


class Names(msgspec.Struct, frozen=True):
    """How a host is called, and where the cluster's API is found."""

    host: str
    """Its name as a node of the cluster."""
    addresses: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    """The ranges of service addresses, one of each family; the API has the first of each."""
    domain: str = "cluster.local"
    endpoints: tuple[str, ...] = ()
    """Names and addresses in front of the API servers."""
    extra: tuple[str, ...] = ()
    """What else people call the API by, or the registry if the host has one."""


class AlternativeNames(msgspec.Struct, frozen=True):
    """What a certificate is valid for, sorted, each once."""

    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def apiserver(names: Names) -> AlternativeNames:
    """What the API is reached by, from pods, through the endpoint, and on the host itself.

    kubeadm leaves the local names out; a proxy on each node is reached by them.
    """
    service = f"kubernetes.default.svc.{names.domain}"
    known = (names.host, *names.addresses, *names.endpoints, *names.extra)
    return settled((*_KUBERNETES, service, *known, *LOCAL), names.services)


def etcd(names: Names) -> AlternativeNames:
    """What a member of etcd is reached by, from other hosts and on its own."""
    return settled((names.host, *names.addresses, *LOCAL))


def registry(names: Names) -> AlternativeNames:
    """What a registry on the host is reached by."""
    return settled((names.host, *names.addresses, *names.extra, *LOCAL))


def settled(texts: Iterable[str], services: Iterable[str] = ()) -> AlternativeNames:
    """Names and addresses told apart, and the first address of each range of services."""
    found = (*map(_name, texts), *map(_first_of, services))
    if problems := [one for one in found if isinstance(one, Problem)]:
        raise InvalidInput("a certificate can't have these names", problems=problems)
    dns = {one for one in found if isinstance(one, str)}
    addresses = {one for one in found if isinstance(one, _Address)}
    order = sorted(addresses, key=lambda one: (one.version, int(one)))
    return AlternativeNames(tuple(sorted(dns)), tuple(map(str, order)))


def _name(text: str) -> str | _Address | Problem:
    name = text.lower().removesuffix(".")
    if len(name) <= _LONGEST and _DNS.fullmatch(name) and not _DOTTED.fullmatch(name):
        return name
    # What is behind `%` is known on one machine only.
    with suppress(ValueError):
        if "%" not in text:
            return ip_address(text)
    return Problem(f"found `{text}`, want a DNS name or an address", hint=_BARE)


def _first_of(text: str) -> _Address | Problem:
    with suppress(ValueError, IndexError):
        return ip_network(text, strict=False)[1]
    return Problem(f"found `{text}`, want a range with two addresses or more", hint=_RANGE)
