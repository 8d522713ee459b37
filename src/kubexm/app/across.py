"""Hosts of a cluster held against each other, by what each has told of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from kubexm.common.checks import CHECKS, Finding
from kubexm.config.rules.rule import Declared
from kubexm.errors import Refused

Facts = Mapping[str, Mapping[str, Any]]
"""What hosts told, by their names."""


def across(facts: Facts, declared: Declared) -> list[Finding]:
    """What is wrong between hosts, as far as they have told; not what the file leaves out."""
    known = {one.name: facts[one.name] for one in declared.members if one.name in facts}
    left_out = declared.spec.preflight.skip
    return [
        finding
        for name, judge in JUDGES.items()
        if name not in left_out
        for finding in judge(known, declared)
    ]


def refuse(found: Sequence[Finding]) -> None:
    """Raise `Refused`, with all of it, if something was found that no cluster can be made with."""
    refusals = [each for each in found if each.kind == "refusal"]
    if refusals:
        names = dict.fromkeys(f"`{each.check}`" for each in refusals)
        lines = (
            f"{each.check}: {each.message} [{' '.join(each.hosts)}] (hint: {each.remedy})"
            for each in refusals
        )
        raise Refused("\n  ".join((f"hosts are not fit, by {', '.join(names)}", *lines)))


def _found(check: str, hosts: Sequence[str], what: str, figure: str) -> Finding:
    row = CHECKS[check]
    return Finding(check, tuple(hosts), what, figure, row.remedy, row.severity)


def _unique(check: str, what: str, of: Callable[[Mapping[str, Any]], Any]) -> Judge:
    """A check that no two hosts tell the same of themselves."""

    def judge(facts: Facts, _: Declared) -> Iterator[Finding]:
        groups: dict[Any, list[str]] = {}
        for host, told in facts.items():
            if value := of(told):
                groups.setdefault(value, []).append(host)
        for value, hosts in groups.items():
            if len(hosts) > 1:
                yield _found(check, hosts, f"hosts with the same {what}", f"`{value}`")

    return judge


def _addresses(facts: Facts, declared: Declared) -> Iterator[Finding]:
    """Nobody has an address by which others know another host."""
    owners = {address: member.name for member in declared.members for address in member.internal}
    for host, told in facts.items():
        for address in told.get("addresses", ()):
            if (owner := owners.get(address, host)) != host:
                what = "an address of one host is another's too"
                yield _found("unique-addresses", (owner, host), what, f"`{address}`")


def _clocks(facts: Facts, declared: Declared) -> Iterator[Finding]:
    """Clocks agree, as far as the way to the hosts lets that be measured."""
    most = declared.spec.preflight.clock_offset
    told = {host: each["clock"] for host, each in facts.items() if "clock" in each}
    offsets = {host: clock["offset_s"] for host, clock in told.items()}
    if len(offsets) < 2:
        return
    first, last = min(offsets, key=offsets.__getitem__), max(offsets, key=offsets.__getitem__)
    apart = offsets[last] - offsets[first]
    if apart - told[first]["within_s"] - told[last]["within_s"] <= most:
        return
    middle = median(offsets.values())
    off = [host for host, offset in offsets.items() if abs(offset - middle) > most]
    what = f"clocks are more than {most:g} s apart"
    yield _found("clock-skew", off or (first, last), what, f"{apart:,.1f} s")


def _mtu(facts: Facts, declared: Declared) -> Iterator[Finding]:
    """Packets are of one size, unless the file says which."""
    groups: dict[int, list[str]] = {}
    for host, told in facts.items():
        if size := told.get("network", {}).get("mtu"):
            groups.setdefault(size, []).append(host)
    if len(groups) < 2 or declared.spec.network.mtu is not None:
        return
    usual = max(groups, key=lambda size: len(groups[size]))
    others = [host for size, hosts in groups.items() if size != usual for host in hosts]
    figure = ", ".join(f"{size} on {len(groups[size])}" for size in sorted(groups))
    yield _found("mtu", others, "hosts send packets of another size than the others", figure)


Judge = Callable[[Facts, Declared], Iterator[Finding]]
JUDGES: Mapping[str, Judge] = {
    "unique-hostnames": _unique("unique-hostnames", "name", lambda told: told.get("hostname")),
    "unique-machine-ids": _unique(
        "unique-machine-ids", "machine id", lambda told: told.get("machine_id")
    ),
    "unique-product-uuids": _unique(
        "unique-product-uuids", "product uuid", lambda told: told.get("product_uuid")
    ),
    "unique-addresses": _addresses,
    "unique-macs": _unique(
        "unique-macs", "hardware address", lambda told: told.get("network", {}).get("mac")
    ),
    "clock-skew": _clocks,
    "mtu": _mtu,
}
"""How each check between hosts is made."""
