"""What a host has answered to `probing`, read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from kubexm.common.probing import CLUSTER_UNITS, RESOLVED, RUNTIME_UNITS, SECTIONS
from kubexm.runner import clock, firewall
from kubexm.runner.clock import ClockState
from kubexm.runner.firewall import Firewall
from kubexm.runner.host import Completed
from kubexm.runner.probing import Knock
from kubexm.runner.told import first, told

Heard = Literal["open", "closed", "unroutable", "silent"]
"""What is heard at a port: somebody takes the call, says no, something on the way does, nothing."""
_RUNNING = frozenset(("active", "activating", "reloading", "deactivating"))
_KINDS_OF_ROUTES = frozenset(
    ("unicast", "local", "broadcast", "multicast", "throw", "unreachable", "prohibit", "blackhole")
)
_TOOK = re.compile(r"copied, ([0-9.e+-]+) s")
_HARDWARE = re.compile(r"lladdr ([0-9a-fA-F:]+)")


class Route(msgspec.Struct, frozen=True):
    """A route of a host; `default` for the one that takes all that no other does."""

    to: str
    device: str = ""
    via: str = ""
    """Another machine that knows the way; nothing if the network begins at the device."""
    family: Literal[4, 6] = 4
    """Of which addresses it is; `default` does not say."""


class Probed(msgspec.Struct, frozen=True):
    """What a host has told beyond its facts; None where it could not be found out."""

    uid: int | None
    is_ours: bool
    """Whether the host has been worked on for this cluster before."""
    member: str | None = None
    """The cluster that kubexm has made it a member of; empty if nobody noted which."""
    files: tuple[str, ...] = ()
    """What a cluster would have left."""
    units: tuple[str, ...] = ()
    """Those that run, of `CLUSTER_UNITS` and `RUNTIME_UNITS`."""
    links: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    """Those of pods."""
    rules: tuple[str, ...] = ()
    """Chains and tables of packet filters that a cluster has made."""
    virtual_servers: int = 0
    """Of IPVS."""
    tools: frozenset[str] | None = None
    routes: tuple[Route, ...] | None = None
    resolvers: tuple[str, ...] = ()
    """Whom systemd-resolved asks."""
    firewall: Firewall | None = None
    clock: ClockState | None = None
    knocks: Mapping[Knock, Heard] | None = None
    pinged: frozenset[str] = frozenset()
    """Addresses that answer, though not at a port that was tried."""
    answering: frozenset[str] | None = None
    """Those who answer for names, of whoever was asked."""
    endpoint: Heard = "silent"
    """What was heard at the address that nobody should have."""
    endpoint_hardware: str = ""
    """The hardware address of whoever has it; nothing if nobody answers for it."""
    place: str = ""
    """Where writes were tried."""
    writes: tuple[float, ...] = ()
    """How long each took, in seconds."""


def probed_of(answer: Completed) -> Probed:
    """What the host says; of what it does not say, nothing."""
    lines, sections = told((answer.text,))
    knocks, endpoint = _knocks(lines.get("knock", ()))
    done = lines.get("told", [])
    return Probed(
        uid=_uid(first(lines, "uid")),
        is_ours=bool(first(lines, "ours")),
        member=first(lines, "member") if "member" in lines else None,
        files=tuple(lines.get("file", ())),
        units=_units(sections.get("units", ())),
        links=tuple(lines.get("link", ())),
        mounts=tuple(lines.get("mount", ())),
        rules=tuple(dict.fromkeys(lines.get("rule", ()))),
        virtual_servers=len(lines.get("virtual", ())),
        tools=frozenset(lines.get("tool", ())) if "tools" in done else None,
        routes=_routes(sections) if "routes" in done else None,
        resolvers=_resolvers(lines.get(RESOLVED, ())),
        firewall=_firewall(sections),
        clock=_clock(sections),
        knocks=knocks if "knocks" in done else None,
        pinged=frozenset(lines.get("ping", ())),
        answering=frozenset(lines.get("answers", ())) if "knocks" in done else None,
        endpoint=endpoint,
        endpoint_hardware=_hardware(first(lines, "neighbour")),
        place=first(lines, "place"),
        writes=_writes(sections.get("writes", ())),
    )


def _uid(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _resolvers(lines: Sequence[str]) -> tuple[str, ...]:
    rows = (line.split() for line in lines)
    return tuple(row[1] for row in rows if len(row) > 1)


def _hardware(line: str) -> str:
    found = _HARDWARE.search(line)
    return found[1].lower() if found else ""


def _writes(lines: Sequence[str]) -> tuple[float, ...]:
    return tuple(float(took[1]) for took in map(_TOOK.search, lines) if took)


def _units(states: Sequence[str]) -> tuple[str, ...]:
    named = zip((*CLUSTER_UNITS, *RUNTIME_UNITS), states, strict=False)
    return tuple(unit for unit, state in named if state in _RUNNING)


def _routes(sections: Mapping[str, Sequence[str]]) -> tuple[Route, ...]:
    return (*_of_family(4, sections.get("routes", ())), *_of_family(6, sections.get("routes6", ())))


def _of_family(family: Literal[4, 6], lines: Sequence[str]) -> Iterator[Route]:
    return (_route(words, family) for line in lines if (words := line.split()))


def _route(words: Sequence[str], family: Literal[4, 6]) -> Route:
    if words[0] in _KINDS_OF_ROUTES:
        words = words[1:]
    after = dict(pairwise(words))
    return Route(words[0], after.get("dev", ""), after.get("via", ""), family)


def _firewall(sections: Mapping[str, Sequence[str]]) -> Firewall | None:
    return firewall.active_of([_section(sections, name) for name in SECTIONS[:4]])


def _clock(sections: Mapping[str, Sequence[str]]) -> ClockState | None:
    if not sections.get("clock"):
        return None
    return clock.state_of([_section(sections, name) for name in SECTIONS[4:]])


def _section(sections: Mapping[str, Sequence[str]], name: str) -> Completed:
    return Completed(0, "\n".join(sections.get(name, ())).encode())


_HEARD: Mapping[str, Heard] = {
    "open": "open",
    "closed": "closed",
    "unroutable": "unroutable",
    "silent": "silent",
}
_NOBODY = "-"
"""In place of a host, where the address of the endpoint was tried."""


def _knocks(lines: Sequence[str]) -> tuple[dict[Knock, Heard], Heard]:
    found: dict[Knock, Heard] = {}
    endpoint: Heard = "silent"
    for line in lines:
        host, address, port, word = line.split()
        if host == _NOBODY:
            endpoint = _HEARD[word]
        else:
            found[Knock(host, address, int(port))] = _HEARD[word]
    return found, endpoint
