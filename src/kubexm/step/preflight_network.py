"""Checks of the network of a host: its addresses and routes, names, and who is reached from it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from kubexm.runner.probed import Heard, Probed, Route
from kubexm.runner.probing import Knock
from kubexm.step.preflight_look import Found, Judge, Look, Peer, unknown

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_THERE: frozenset[Heard] = frozenset(("open", "closed"))
_WORDS: Mapping[Heard, str] = {"unroutable": "turned away", "silent": "no answer"}
_DEFAULT = "default"
_MOST_SERVERS = 3
_HALF = 1
"""The prefix of half of all addresses: two such routes stand for a default one."""
_TOLD_TO_RESOLVED = ("127.0.0.53", "127.0.0.54")
"""Where systemd-resolved listens; the kubelet is given those that it asks itself."""


def firewall(look: Look) -> Iterator[Found]:
    """No firewall is in the way."""
    if (active := look.probed.firewall) is not None:
        yield Found(f"`{active}` is active")


def node_address(look: Look) -> Iterator[Found]:
    """The host has the addresses that others know it by."""
    own, found = look.facts.get("addresses", ()), look.place.addresses
    wanted = [address for address in found if _is_address(address)]
    if wanted and not own:
        yield unknown("the host does not tell its addresses")
        return
    known = {ipaddress.ip_address(address) for address in own if _is_address(address)}
    for address in wanted:
        if ipaddress.ip_address(address) not in known:
            yield Found("an address of the cluster file is not the host's", _among(address, own))


def _among(address: str, own: Sequence[str]) -> str:
    return f"`{address}`, it has {', '.join(own)}"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:  # it is a name
        return False
    return True


def default_route(look: Look) -> Iterator[Found]:
    """There is a default route of each family that services have."""
    if look.probed.routes is None:
        # Facts tell that of IPv4 alone.
        if "interface" not in look.facts.get("network", {}) or 6 in _families(look):
            yield unknown("the host has no `ip` to ask for its routes")
        return
    found = {route.family for route in look.probed.routes if _is_default(route)}
    for family in _families(look):
        if family not in found:
            yield Found(f"there is no default route of IPv{family}")


def _families(look: Look) -> list[int]:
    """Those of the cluster's networks; IPv4 if it has none."""
    networks = map(ipaddress.ip_network, look.wanted.networks)
    return sorted({network.version for network in networks}) or [4]


def _is_default(route: Route) -> bool:
    """Whether it takes packets; the kernel may have one of IPv6 that turns all of them down."""
    return route.to == _DEFAULT and route.device not in ("", "lo")


def networks_apart(look: Look) -> Iterator[Found]:
    """The networks of the cluster are none of the host's."""
    taken = [*_taken(look)]
    for text, what in look.wanted.networks.items():
        network = ipaddress.ip_network(text)
        for other, route in taken:
            if network.overlaps(other):
                figure = f"{other} by `{route.device}`" if route.device else f"{other}"
                kind = _of_overlap(network, other, route)
                yield Found(f"{network} of {what} overlaps a way of the host", figure, kind=kind)


def _of_overlap(network: Network, other: Network, route: Route) -> Literal["warning"] | None:
    """A way to far more than the network, such as to all private addresses, may be meant so."""
    is_wide = other.prefixlen < network.prefixlen and route.via != ""
    return "warning" if is_wide else None


def _taken(look: Look) -> Iterator[tuple[Network, Route]]:
    """The networks that a host has a way to, each once; else its own addresses."""
    own = [Route(address) for address in look.facts.get("addresses", ())]
    for route in look.probed.routes or own:
        try:
            network = ipaddress.ip_network(route.to, strict=False)
        except ValueError:  # the default route, which is about everything else
            continue
        if network.prefixlen > _HALF and not (
            network.is_link_local or network.is_multicast or network.is_loopback
        ):
            yield network, route


def asked_for_names(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Whom programs of a host ask for names: no more of them than they would."""
    servers = facts.get("network", {}).get("nameservers", ())
    return tuple(filter(_is_address, servers))[:_MOST_SERVERS]


def nameserver(look: Look) -> Iterator[Found]:
    """Somebody is asked for names, and answers."""
    servers = look.facts.get("network", {}).get("nameservers")
    if servers is None:
        yield unknown("the host does not tell whom it asks for names")
    elif not servers:
        yield Found("/etc/resolv.conf names nobody: pods know names of the cluster alone")
    elif look.probed.answering is None:
        yield _no_way_to_ask()
    elif look.probed.answering.isdisjoint(asked := asked_for_names(look.facts)):
        remedy = "see that one is up and lets the host ask, or write `dns: {upstream: […]}`"
        yield Found("nobody answers for names", ", ".join(asked), remedy)


def nameserver_loop(look: Look) -> Iterator[Found]:
    """Pods are not sent to themselves."""
    servers = look.facts.get("network", {}).get("nameservers", ())
    looped = [server for server in servers if _is_loopback(server)]
    if set(looped) <= set(_TOLD_TO_RESOLVED) and _beyond(look.probed.resolvers):
        return
    if looped:
        what = "/etc/resolv.conf names the host itself, which to a pod is the pod"
        yield Found(what, ", ".join(looped))


def _is_loopback(text: str) -> bool:
    return _is_address(text) and ipaddress.ip_address(text).is_loopback


def _beyond(servers: Iterable[str]) -> bool:
    return any(not _is_loopback(server) for server in servers)


def hosts_reach_each_other(look: Look) -> Iterator[Found]:
    """Others of the cluster answer, at whichever port."""
    if look.probed.knocks is None:
        yield _no_way_to_ask()
        return
    for needed, peers in _by_need(look):
        lost = [peer for peer in peers if not _is_there(look.probed, peer)]
        if lost:
            names = ", ".join(f"{peer.host} {peer.address}" for peer in lost)
            yield Found("no answer from others of the cluster", names, kind=_kind(look, needed))


def ports_reachable(look: Look) -> Iterator[Found]:
    """Those that are there answer at the ports that the host will need."""
    if look.probed.knocks is None:
        yield _no_way_to_ask()
        return
    for needed, peers in _by_need(look):
        there = [peer for peer in peers if _is_there(look.probed, peer)]
        if closed := [text for peer in there for text in _kept_from(look.probed, peer)]:
            what = "no answer at ports of others"
            yield Found(what, ", ".join(closed), kind=_kind(look, needed))


def _no_way_to_ask() -> Found:
    return unknown("the host has no `bash` and `timeout` to try it with")


def _by_need(look: Look) -> Iterator[tuple[bool, Sequence[Peer]]]:
    for needed in (True, False):
        yield needed, [peer for peer in look.place.peers if peer.needed is needed]


def _kind(look: Look, needed: bool) -> Literal["warning"] | None:
    """A host of a cluster that is there goes on without another one that is gone."""
    return None if needed and not look.probed.is_ours else "warning"


def _heard(probed: Probed, peer: Peer) -> dict[int, Heard]:
    knocks = probed.knocks or {}
    return {port: knocks.get(Knock(peer.host, peer.address, port), "silent") for port in peer.ports}


def _is_there(probed: Probed, peer: Peer) -> bool:
    heard = _heard(probed, peer).values()
    return peer.address in probed.pinged or not _THERE.isdisjoint(heard)


def _kept_from(probed: Probed, peer: Peer) -> Iterator[str]:
    for port, heard in _heard(probed, peer).items():
        if heard not in _THERE:
            yield f"{peer.host} {peer.address} {port} ({_WORDS[heard]})"


def site_reachable(look: Look) -> Iterator[Found]:
    """What the site has answers at its ports."""
    if look.probed.knocks is None:
        yield _no_way_to_ask()
        return
    if silent := [text for peer in look.wanted.site for text in _kept_from(look.probed, peer)]:
        what = "no answer from what the site has"
        yield Found(what, ", ".join(silent), kind=_kind(look, needed=True))


def endpoint_address_free(look: Look) -> Iterator[Found]:
    """Nobody has the address that one of the hosts will get."""
    address, probed = look.wanted.endpoint, look.probed
    if address in look.facts.get("addresses", ()):
        yield Found(f"`{address}` is an address of the host already")
    elif probed.endpoint in _THERE or probed.endpoint_hardware:
        yield Found(f"somebody has `{address}` already", probed.endpoint_hardware)


def endpoint_address_network(look: Look) -> Iterator[Found]:
    """The address is one of a network that the host is in."""
    address = look.wanted.endpoint
    if look.probed.routes is None:
        yield unknown("the host has no `ip` to ask for its networks")
    elif not any(_is_in(address, *each) for each in _taken(look)):
        yield Found(f"`{address}` is in no network of the host")


def _is_in(address: str, network: Network, route: Route) -> bool:
    return not route.via and ipaddress.ip_address(address) in network


JUDGES: Mapping[str, Judge] = {
    "firewall": firewall,
    "node-address": node_address,
    "default-route": default_route,
    "networks-apart": networks_apart,
    "nameserver": nameserver,
    "nameserver-loop": nameserver_loop,
    "hosts-reach-each-other": hosts_reach_each_other,
    "ports-reachable": ports_reachable,
    "site-reachable": site_reachable,
    "endpoint-address-free": endpoint_address_free,
    "endpoint-address-network": endpoint_address_network,
}
