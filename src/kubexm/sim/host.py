"""A simulated host: it answers commands, and can be stopped, revived and rebooted."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from posixpath import dirname
from typing import TypeVar

import msgspec

from kubexm.connector.base import Command, Completed
from kubexm.errors import ConnectionLost, HostUnreachable
from kubexm.sim import kernel, programs
from kubexm.sim.chance import chance, identity
from kubexm.sim.delivered import boot_id, unit_name
from kubexm.sim.facts import asks_for_facts
from kubexm.sim.filesystem import Blobs, Filesystem
from kubexm.sim.pattern import matches
from kubexm.sim.settings import (
    INSTANT,
    Effects,
    Fault,
    Machine,
    PackageSettings,
    Script,
    WorldSettings,
)
from kubexm.sim.shell import Shell
from kubexm.sim.state import HostState, Inode, Service, Value
from kubexm.sim.systemd import set_service

R = TypeVar("R")
T = TypeVar("T", Script, Fault)

_DOWN = "switch:down"
_BOOTS = "switch:boots"
_HERE = frozenset(("127.0.0.1", "localhost", "::1", "0.0.0.0"))  # noqa: S104  # asked, not bound


class SimHost:
    """One host of a world."""

    def __init__(
        self,
        state: HostState,
        blobs: Blobs,
        settings: WorldSettings,
        machine: Machine,
        neighbour: Callable[[str], SimHost | None],
        permit: Callable[[], None],
    ) -> None:
        self.name = state.name
        self.machine = machine
        self.executed: Counter[str] = Counter()
        """How often each program was asked for since the world was opened."""
        self._state = state
        self._files = Filesystem(state, blobs)
        self._settings = settings
        self._neighbour = neighbour
        self._permit = permit
        self._gone_until = 0.0
        self._scripts = _in_turn(_concerning(self.name, settings.scripts))
        self._faults = _concerning(self.name, settings.faults)
        self._calm = settings.latency == INSTANT

    # What a world's owner does to it and asks of it.

    @property
    def commands(self) -> int:
        """How many commands, reads and writes this host was asked for."""
        return self._state.number

    def stop(self) -> None:
        """Make the host unreachable until it is revived."""
        self._switch(_DOWN, 1)

    def revive(self) -> None:
        """Make the host reachable again."""
        self._gone_until = 0.0
        self._switch(_DOWN, 0)

    def reboot(self) -> None:
        """Start the host anew: another boot id, only enabled services run, /run is empty.

        Settings and modules of the kernel, and swap, are what files say.
        """
        boots = (self._number(_BOOTS) or 1) + 1
        self._state.set(_BOOTS, boots)
        text = f"{boot_id(self._settings.seed, self.name, boots)}\n"
        self._files.write("/proc/sys/kernel/random/boot_id", text.encode())
        for name in self._files.children("/run"):
            self._files.remove_tree(f"/run/{name}")
        shell = self._shell(Command(("reboot",)))
        kernel.boot(shell)
        for key in sorted(self._state.keys("service:")):
            _booted(shell, key.removeprefix("service:"))
        self._state.commit()

    def mutations(self) -> dict[str, int]:
        """How often each resource was changed, in all the world's life."""
        return self._state.mutations()

    def starts(self, unit: str) -> int:
        """How often a unit was started."""
        return self._number(f"starts:{unit_name(unit)}")

    def runs(self, unit: str) -> bool:
        """Whether a unit is active."""
        service = self._state.get(f"service:{unit_name(unit)}")
        return isinstance(service, Service) and service.active

    def read(self, path: str) -> bytes:
        """The content of a file; `FileNotFoundError` if there is none."""
        return self._files.read(path)

    # What programs on it ask.

    @property
    def archive(self) -> Mapping[str, PackageSettings]:
        return self._settings.packages

    @property
    def address(self) -> str:
        """An address made of the host's name."""
        digits = identity(self._settings.seed, self.name, "address")
        return f"10.{int(digits[:2], 16)}.{int(digits[2:4], 16)}.{int(digits[4:6], 16)}"

    def listens(self, where: str, port: int) -> bool:
        """Whether somebody answers at a port of this host, or of another one by its name."""
        if where in _HERE or where in (self.name, self.address):
            return self._has_open(port)
        other = self._neighbour(where)
        return other is not None and other.is_up and other._has_open(port)

    # What its connector asks.

    @property
    def is_up(self) -> bool:
        return not self._number(_DOWN) and (
            not self._gone_until or asyncio.get_running_loop().time() >= self._gone_until
        )

    def require_up(self) -> None:
        """Raise unless the host can be reached."""
        if not self.is_up:
            raise HostUnreachable(f"simulated host `{self.name}` does not answer")

    def count(self, program: str) -> int:
        """Note one more command; its number."""
        self._state.number += 1
        self.executed[program] += 1
        return self._state.number

    def latency(self, number: int) -> float:
        """How long the round trip of this command takes."""
        if self._calm:
            return 0.0
        return self._settings.latency.at(self._chance(number, "latency"))

    def fault(self, number: int, argv: Sequence[str]) -> Fault | None:
        """What goes wrong with this command; mostly nothing."""
        for place, fault in enumerate(self._faults):
            struck = (
                number == fault.at
                if fault.at is not None
                else self._chance(number, f"fault {place}") < fault.probability
            )
            if struck and matches(fault.argv, argv):
                return fault
        return None

    def is_applied(self, number: int, fault: Fault) -> bool:
        """Whether a command whose connection broke was carried out."""
        if fault.applied is not None:
            return fault.applied
        return self._chance(number, "applied") < 0.5

    def vanish(self, seconds: float | None) -> None:
        """Be unreachable for a time, or until revived."""
        if seconds is None:
            self.stop()
        else:
            self._gone_until = asyncio.get_running_loop().time() + seconds

    def script(self, argv: Sequence[str]) -> Script | None:
        """The script that answers this command; it counts as used."""
        if asks_for_facts(argv):
            return None  # a script for any `sh -c` is not meant for it
        for script, last in self._scripts:
            if matches(script.argv, argv):
                key = f"script:{' '.join(script.argv)}"
                used = self._number(key)
                if used < last:
                    self._state.set(key, used + 1)
                    return script
        return None

    def duration(self, number: int, argv: Sequence[str], script: Script | None) -> float:
        """How long the command itself takes."""
        if script is not None:
            return script.duration.at(self._chance(number, "duration"))
        return float(argv[1]) if argv[0] == "sleep" and len(argv) == 2 else 0.0

    def answer(self, command: Command, script: Script | None, *, full: bool) -> Completed:
        """Carry out a command; what it changes is on disk afterwards."""
        self._permit()
        shell = self._shell(command)
        self._files.full = full
        try:
            if script is None:
                return programs.run(shell, command.argv)
            self._leave(shell, script.effects)
            return Completed(script.exit, script.stdout.encode(), script.stderr.encode())
        finally:
            self._state.commit()

    def transfer(self, work: Callable[[Filesystem], R], *, full: bool) -> R:
        """Read or write a file; what changes is on disk afterwards."""
        self._permit()
        self._files.full = full
        try:
            return work(self._files)
        finally:
            self._state.commit()

    def difference(self) -> dict[str, object]:
        """All that is not as it was delivered, in a form that can be compared."""
        return {key: _plain(value) for key, value in self._state.difference().items()}

    def _chance(self, number: int, about: str) -> float:
        return chance(self._settings.seed, self.name, number, about)

    def _number(self, key: str) -> int:
        found = self._state.get(key)
        return found if isinstance(found, int) else 0

    def _switch(self, key: str, value: int) -> None:
        self._state.set(key, value)
        self._state.commit()

    def _shell(self, command: Command) -> Shell:
        return Shell(command, self._state, self._files, self)

    def _has_open(self, port: int) -> bool:
        if self._number(f"port:{port}"):
            return True
        services = map(self._state.get, self._state.keys("service:"))
        return any(
            isinstance(service, Service) and service.active and port in service.ports
            for service in services
        )

    def _leave(self, shell: Shell, effects: Effects) -> None:
        for path, text in effects.files.items():
            self._files.make_directory(dirname(path), parents=True)
            self._files.write(path, text.encode())
        for path in effects.absent:
            if self._files.lookup(path) is not None:
                self._files.remove_tree(path)
        for name, active in effects.services.items():
            service = shell.service(unit_name(name)) or Service()
            changed = msgspec.structs.replace(service, active=active)
            set_service(shell, unit_name(name), changed, starts=active and not service.active)
        for package, version in effects.packages.items():
            self._state.set(f"package:{package}", version)
        for port in effects.opens:
            self._state.set(f"port:{port}", 1)
        for port in effects.closes:
            self._state.set(f"port:{port}", None)


def _in_turn(scripts: Sequence[Script]) -> list[tuple[Script, float]]:
    """Each script with the number of the last use of its pattern that it answers."""
    answered: dict[tuple[str, ...], float] = {}
    turns = []
    for script in scripts:
        times = math.inf if script.times is None else script.times
        answered[script.argv] = answered.get(script.argv, 0) + times
        turns.append((script, answered[script.argv]))
    return turns


def lost(host: str) -> ConnectionLost:
    """The error of a channel that broke."""
    return ConnectionLost(f"the connection to simulated host `{host}` is lost")


def _plain(value: Value | None) -> object:
    if isinstance(value, Inode | Service):
        return {name: item for name, item in msgspec.structs.asdict(value).items() if item}
    return value


def _booted(shell: Shell, unit: str) -> None:
    service = shell.service(unit)
    if service is not None and (service.active or service.enabled):
        changed = msgspec.structs.replace(service, active=service.enabled)
        set_service(shell, unit, changed, starts=service.enabled)


def _concerning(host: str, settings: Sequence[T]) -> tuple[T, ...]:
    return tuple(one for one in settings if fnmatchcase(host, one.hosts))
