"""Hosts of a cluster held against each other, and against this machine, by what each has told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubexm.common.checks import CHECKS, Finding
from kubexm.common.roles import CONTROL_NODE
from kubexm.config.rules.rule import Declared
from kubexm.errors import Refused

Facts = Mapping[str, Mapping[str, Any]]
"""What hosts told, by their names."""
Clock = Mapping[str, float]
"""How far a clock is ahead of ours, and how far from the truth that may be."""
_OURS: Clock = {"offset_s": 0.0, "within_s": 0.0}


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
    """Clocks agree with each other and with ours, as far as that can be measured on the way."""
    most = declared.spec.preflight.clock_offset
    told = {host: each["clock"] for host, each in facts.items() if "clock" in each}
    if not _are_apart(most, *told.values(), _OURS):
        return
    off = [host for host, clock in told.items() if _are_apart(most, clock, _OURS)]
    if len(off) == len(told) > 1 and not _are_apart(most, *told.values()):
        yield from _this_machine(told, most)
        return
    what = f"clocks are more than {most:g} s apart"
    figure = f"{_span(*told.values(), _OURS):,.1f} s ({_furthest(told)})"
    yield _found("clock-skew", off or _ends(told), what, figure)


def _this_machine(told: Mapping[str, Clock], most: float) -> Iterator[Finding]:
    """Where all hosts agree, it is we who are wrong, and so would be their certificates."""
    what = f"the clock of this machine is more than {most:g} s away from those of all hosts"
    found = _found("clock-skew", (CONTROL_NODE,), what, _furthest(told))
    yield replace(found, remedy="set it right: certificates are valid from its time on")


def _ends(told: Mapping[str, Clock]) -> tuple[str, str]:
    """The hosts whose clocks are the furthest apart."""
    late = sorted(told, key=lambda name: told[name]["offset_s"])
    return late[0], late[-1]


def _furthest(told: Mapping[str, Clock]) -> str:
    """Which host's clock is the furthest from ours, and by how much."""
    host = max(told, key=lambda name: abs(told[name]["offset_s"]))
    offset = told[host]["offset_s"]
    way = "ahead of" if offset > 0 else "behind"
    return f"{host} is {abs(offset):,.1f} s {way} this machine"


def _span(*clocks: Clock) -> float:
    offsets = [clock["offset_s"] for clock in clocks]
    return max(offsets) - min(offsets)


def _are_apart(most: float, *clocks: Clock) -> bool:
    """Whether clocks are further apart than that, however they were measured."""
    latest = max(clock["offset_s"] - clock["within_s"] for clock in clocks)
    earliest = min(clock["offset_s"] + clock["within_s"] for clock in clocks)
    return latest - earliest > most


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
OF_ONE = frozenset(("clock-skew",))
"""Those that hold a host against this machine too, and so are made of a single one."""
