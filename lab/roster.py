"""Which hosts a lab has: data only, and the addresses follow from the names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lab.errors import LabError

LAN = "10.99.0"
CELLAR = "10.99.1"
CONTROL = f"{LAN}.1"
"""The address of the machine that runs kubexm: the lab's own network namespace."""
PREFIX = 24
BASTION = "bastion"
HIDDEN = "hidden"
GATE = "gate"
SPECIAL = (GATE, BASTION, HIDDEN)
MOST_NODES = 90
MOST_TRIXIE = 40


class Suite(StrEnum):
    """A release of Debian."""

    BOOKWORM = "bookworm"
    TRIXIE = "trixie"


class Entry(StrEnum):
    """What sshd of a host takes."""

    KEY = "key"
    PASSWORD = "password"  # noqa: S105 - a word, not a password


@dataclass(frozen=True, slots=True)
class Host:
    """One host of a lab."""

    name: str
    address: str
    suite: Suite = Suite.BOOKWORM
    entry: Entry = Entry.KEY
    behind: str = ""
    """The host that is the only way to this one."""
    inner_address: str = ""
    """A bastion's address on the network of those it hides."""


def plain(number: int) -> Host:
    return Host(f"node{number}", f"{LAN}.{10 + number}")


def trixie(number: int) -> Host:
    return Host(f"trixie{number}", f"{LAN}.{110 + number}", suite=Suite.TRIXIE)


def special(name: str) -> Host:
    """A host that differs from the others in how it is reached."""
    match name:
        case "gate":
            return Host(GATE, f"{LAN}.201", entry=Entry.PASSWORD)
        case "bastion":
            return Host(BASTION, f"{LAN}.202", inner_address=f"{CELLAR}.202")
        case "hidden":
            return Host(HIDDEN, f"{CELLAR}.203", behind=BASTION)
    raise LabError(f"there is no special host `{name}`, only: {', '.join(SPECIAL)}")


def roster(nodes: int, trixies: int = 0, specials: Iterable[str] = ()) -> tuple[Host, ...]:
    """So many hosts of each kind; who asks for the hidden one gets the bastion too."""
    _require_at_most(nodes, MOST_NODES, "nodes")
    _require_at_most(trixies, MOST_TRIXIE, "hosts with trixie")
    wanted = set(specials) | ({BASTION} if HIDDEN in specials else set())
    return (
        *(plain(number) for number in range(1, nodes + 1)),
        *(trixie(number) for number in range(1, trixies + 1)),
        *(special(name) for name in sorted(wanted, key=_place)),
    )


def standard() -> tuple[Host, ...]:
    """What the tests stand on: at least one host of every kind."""
    return roster(3, 1, SPECIAL)


def _place(name: str) -> int:
    return SPECIAL.index(special(name).name)


def _require_at_most(number: int, most: int, what: str) -> None:
    if not 0 <= number <= most:
        raise LabError(f"a lab has 0 to {most} {what}, not {number}")
