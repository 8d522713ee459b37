"""The network of a world: names, addresses, and who is reached at them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from kubexm.sim import ports
from kubexm.sim.chance import identity
from kubexm.sim.settings import WorldSettings
from kubexm.sim.shell import Shell
from kubexm.sim.state import HostState

OUTSIDE = "outside"
"""What stands for the address of a site that is not in the world."""
_HOSTS_FILE = "/etc/hosts"
_CANDIDATE = "candidate:"
_OUTSIDE_PORTS = frozenset((80, 443))
_PRIVATE = frozenset(
    (
        *("corp", "example", "home", "internal", "invalid", "lan", "local"),
        *("localdomain", "localhost", "test"),
    )
)
"""Last parts of names that nobody outside knows."""
_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+([a-z][a-z0-9-]*)", re.IGNORECASE)
_HERE = ports.LOOPBACK | {"0.0.0.0", "::"}  # noqa: S104  # asked, not bound
_MOST_HOPS = 4
"""A connection that goes through more load balancers than this goes in a circle."""


class Member(Protocol):
    """A host as the network sees it."""

    @property
    def name(self) -> str: ...

    @property
    def is_up(self) -> bool: ...

    def shell(self) -> Shell:
        """To look at it."""


class Network:
    """Finds hosts by name and address; by an index, since a world may be large."""

    def __init__(
        self,
        settings: WorldSettings,
        member: Callable[[str], Member | None],
        names: Callable[[], Sequence[str]],
        state: Callable[[], HostState],
    ) -> None:
        """`member` gives a host of the world, `names` those that it has had so far."""
        self._settings = settings
        self._member = member
        self._names = names
        self._state = state
        self._owners = {
            address: name for name, own in settings.addresses.items() for address in own
        }
        places = (*settings.balancers, *settings.site)
        self._site = {place.rpartition(":")[0].strip("[]") for place in places}
        self._all_known = False

    def addresses(self, name: str) -> tuple[str, ...]:
        """A host's own addresses; one that is made of its name unless the settings say more."""
        if own := self._settings.addresses.get(name):
            return own
        digits = identity(self._settings.seed, name, "address")
        numbers = (int(digits[place : place + 2], 16) for place in (0, 2, 4))
        return (".".join(map(str, (10, *numbers))),)

    def joined(self, name: str) -> None:
        """Know a host that the settings do not name."""
        self._owners.setdefault(self.addresses(name)[0], name)

    def candidate(self, name: str, address: str) -> None:
        """Know that a host may come to hold an address."""
        known = self._candidates(address)
        if name not in known:
            self._state().set(f"{_CANDIDATE}{address}", " ".join((*known, name)))

    def owner(self, address: str) -> Member | None:
        """The host that has an address, or holds it at the moment."""
        self._require_known(address)
        if address in self._owners:
            return self._member(self._owners[address])
        wanting: dict[str, int] = {}
        for name in self._candidates(address):
            member = self._member(name)
            if member is not None and member.is_up:
                held = ports.addresses_by(member.shell())
                wanting |= {name: held[address]} if address in held else {}
        return self._member(max(wanting, key=wanting.__getitem__)) if wanting else None

    def resolved(self, at: Member, name: str) -> tuple[str, ...]:
        """The addresses of a name: by the hosts file, of a host of the world, or outside."""
        if _is_address(name) or name in self._site:
            return (name,)
        if found := _hosts_file(at.shell()).get(name.lower()):
            return found
        if name == "localhost":
            return ("127.0.0.1",)
        if self._knows(at, name):
            return self.addresses(name)
        return (OUTSIDE,) if self._settings.outside and _is_public(name) else ()

    def _knows(self, at: Member, name: str) -> bool:
        """Whether a host knows one of the world without its hosts file, and be it itself."""
        if not self._settings.names and name != at.name:
            return False
        return name in self._settings.addresses or self._member(name) is not None

    def listens(self, at: Member, where: str, port: int) -> bool:
        """Whether somebody accepts connections there."""
        return any(self._accepts(at, address, port) for address in self.resolved(at, where))

    def reached(self, at: Member, where: str, port: int) -> tuple[str, ...]:
        """The hosts that answer there, load balancers passed, in the order they are tried."""
        return tuple(dict.fromkeys(self._ends(at, where, port, _MOST_HOPS)))

    def _accepts(self, at: Member, address: str, port: int) -> bool:
        place = _place(address, port)
        if place in self._settings.balancers or place in self._settings.site:
            return True
        if address == OUTSIDE or (self._settings.outside and self._is_outside(address)):
            return port in _OUTSIDE_PORTS
        member = self._at(at, address)
        return member is not None and ports.answering(member.shell(), address, port) is not None

    def _ends(self, at: Member, where: str, port: int, hops: int) -> Iterator[str]:
        for address in self.resolved(at, where) if hops else ():
            behind = self._settings.balancers.get(_place(address, port))
            if behind is not None:
                yield from self._each(at, behind, hops - 1)
                continue
            member = self._at(at, address)
            socket = ports.answering(member.shell(), address, port) if member else None
            if member is None or socket is None:
                continue
            if socket.forwards:
                yield from self._each(member, socket.forwards, hops - 1)
            else:
                yield member.name

    def _each(self, at: Member, places: Sequence[str], hops: int) -> Iterator[str]:
        for place in places:
            where, _, port = place.rpartition(":")
            yield from self._ends(at, where.strip("[]"), int(port), hops)

    def _at(self, at: Member, address: str) -> Member | None:
        """The host that is there, seen from another one, if it is up."""
        member = at if address in _HERE else self.owner(address)
        return member if member is not None and (member is at or member.is_up) else None

    def _is_outside(self, address: str) -> bool:
        return (
            _is_address(address)
            and ipaddress.ip_address(address).is_global
            and self.owner(address) is None
        )

    def _candidates(self, address: str) -> list[str]:
        found = self._state().get(f"{_CANDIDATE}{address}")
        return found.split() if isinstance(found, str) else []

    def _require_known(self, address: str) -> None:
        """Have the hosts of an earlier life in the index, before an address is nobody's."""
        if address not in self._owners and not self._all_known:
            self._all_known = True
            for name in self._names():
                self.joined(name)


def _place(address: str, port: int) -> str:
    """An address and a port as settings have them: IPv6 in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_public(name: str) -> bool:
    found = _NAME.fullmatch(name)
    return found is not None and found[1].lower() not in _PRIVATE


def _hosts_file(shell: Shell) -> dict[str, tuple[str, ...]]:
    try:
        return _names(shell.files.read(_HOSTS_FILE))
    except OSError:
        return {}


@lru_cache(maxsize=64)
def _names(text: bytes) -> dict[str, tuple[str, ...]]:
    """Addresses by name; hosts of a world have the same few files."""
    found: dict[str, list[str]] = {}
    for line in text.decode(errors="replace").splitlines():
        address, *names = line.partition("#")[0].split() or ("",)
        for name in names:
            found.setdefault(name.lower(), []).append(address)
    return {name: tuple(addresses) for name, addresses in found.items()}
