"""A simulated host: it answers commands, and can be stopped, revived and rebooted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from posixpath import basename
from typing import Protocol, TypeVar

import msgspec

from kubexm.connector.base import Command, Completed
from kubexm.errors import ConnectionLost, HostUnreachable
from kubexm.sim import kernel, ports, programs, scripted, starting
from kubexm.sim.chance import chance
from kubexm.sim.delivered import boot_id, unit_name
from kubexm.sim.facts import asks_for_facts
from kubexm.sim.filesystem import Blobs, Filesystem
from kubexm.sim.network import Network
from kubexm.sim.pattern import matches
from kubexm.sim.settings import (
    INSTANT,
    Fault,
    Machine,
    PackageSettings,
    Script,
    WorldSettings,
)
from kubexm.sim.shell import Shell
from kubexm.sim.state import HostState, Inode, Service, Socket, Value

R = TypeVar("R")
T = TypeVar("T", Script, Fault)

_DOWN = "switch:down"
_BOOTS = "switch:boots"


class Surrounding(Protocol):
    """The world as its hosts see it."""

    @property
    def network(self) -> Network: ...

    def shared(self, name: str) -> HostState: ...

    def shell_of(self, host: str) -> Shell | None: ...

    def permit(self) -> None: ...

    def commit(self) -> None: ...


class SimHost:
    """One host of a world."""

    def __init__(
        self,
        state: HostState,
        blobs: Blobs,
        settings: WorldSettings,
        machine: Machine,
        world: Surrounding,
    ) -> None:
        self.name = state.name
        self.machine = machine
        self.executed: Counter[str] = Counter()
        """How often each program was asked for since the world was opened."""
        self.state = state
        """What it has become; whoever changes it has to commit it."""
        self._files = Filesystem(state, blobs)
        self._settings = settings
        self._world = world
        self._gone_until = 0.0
        self._scripts = scripted.in_turn(_concerning(self.name, settings.scripts))
        self._faults = _concerning(self.name, settings.faults)
        self._calm = settings.latency == INSTANT

    # What a world's owner does to it and asks of it.

    @property
    def commands(self) -> int:
        """How many commands, reads and writes this host was asked for."""
        return self.state.number

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
        self.state.set(_BOOTS, boots)
        text = f"{boot_id(self._settings.seed, self.name, boots)}\n"
        self._files.write("/proc/sys/kernel/random/boot_id", text.encode())
        for name in self._files.children("/run"):
            self._files.remove_tree(f"/run/{name}")
        shell = self.shell()
        kernel.boot(shell)
        starting.boot(shell)
        self._commit()

    def mutations(self) -> dict[str, int]:
        """How often each resource was changed, in all the world's life."""
        return self.state.mutations()

    def starts(self, unit: str) -> int:
        """How often a unit was started."""
        return self._number(f"starts:{unit_name(unit)}")

    def runs(self, unit: str) -> bool:
        """Whether a unit is active."""
        service = self.state.get(f"service:{unit_name(unit)}")
        return isinstance(service, Service) and service.active

    def read(self, path: str) -> bytes:
        """The content of a file; `FileNotFoundError` if there is none."""
        return self._files.read(path)

    def has(self, path: str) -> bool:
        """Whether something is at a path."""
        return self._files.lookup(path) is not None

    # What programs on it ask.

    @property
    def archive(self) -> Mapping[str, PackageSettings]:
        return self._settings.packages

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._world.network.addresses(self.name)

    @property
    def held(self) -> tuple[str, ...]:
        wanted = ports.addresses_by(self.shell())
        owner = self._world.network.owner
        return tuple(address for address in wanted if owner(address) is self)

    @property
    def outside(self) -> bool:
        return self._settings.outside

    @property
    def hesitates(self) -> bool:
        return self._settings.hesitates

    def run(self, shell: Shell, argv: Sequence[str]) -> Completed:
        return programs.run(shell, argv)

    def resolved(self, name: str) -> tuple[str, ...]:
        return self._world.network.resolved(self, name)

    def listens(self, where: str, port: int) -> bool:
        return self._world.network.listens(self, where, port)

    def reached(self, where: str, port: int) -> tuple[str, ...]:
        return self._world.network.reached(self, where, port)

    def holder(self, socket: Socket) -> str:
        return ports.holder(self.shell(), socket)

    def candidate(self, address: str) -> None:
        self._world.network.candidate(self.name, address)

    def shared(self, name: str) -> HostState:
        return self._world.shared(name)

    def shell_of(self, host: str) -> Shell | None:
        return self.shell() if host == self.name else self._world.shell_of(host)

    def shell(self, command: Command = Command(("true",))) -> Shell:  # noqa: B008
        """What programs work with."""
        return Shell(command, self.state, self._files, self)

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
        self.state.number += 1
        self.executed[program] += 1
        return self.state.number

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
                    self.state.set(key, used + 1)
                    return script
        return None

    def begins(self, command: Command) -> bool:
        """Let a program that takes long say that it has begun; others may come in between."""
        begin = programs.BEGINS.get(basename(command.argv[0]))
        if begin is None:
            return False
        self._world.permit()
        begin(self.shell(command), command.argv[1:])
        self._commit()
        return True

    def duration(self, number: int, argv: Sequence[str], script: Script | None) -> float:
        """How long the command itself takes."""
        if script is not None:
            return script.duration.at(self._chance(number, "duration"))
        return float(argv[1]) if argv[0] == "sleep" and len(argv) == 2 else 0.0

    def answer(self, command: Command, script: Script | None, *, full: bool) -> Completed:
        """Carry out a command; what it changes is on disk afterwards."""
        self._world.permit()
        shell = self.shell(command)
        self._files.full = full
        try:
            if script is None:
                return programs.run(shell, command.argv)
            scripted.leave(shell, script.effects)
            return Completed(script.exit, script.stdout.encode(), script.stderr.encode())
        finally:
            self._commit()

    def transfer(self, work: Callable[[Filesystem], R], *, full: bool) -> R:
        """Read or write a file; what changes is on disk afterwards."""
        self._world.permit()
        self._files.full = full
        try:
            return work(self._files)
        finally:
            self._commit()

    def difference(self) -> dict[str, object]:
        """All that is not as it was delivered, in a form that can be compared."""
        return {key: _plain(value) for key, value in self.state.difference().items()}

    def _chance(self, number: int, about: str) -> float:
        return chance(self._settings.seed, self.name, number, about)

    def _number(self, key: str) -> int:
        found = self.state.get(key)
        return found if isinstance(found, int) else 0

    def _switch(self, key: str, value: int) -> None:
        self.state.set(key, value)
        self.state.commit()

    def _commit(self) -> None:
        self._files.full = False
        self._world.commit()
        self.state.commit()


def lost(host: str) -> ConnectionLost:
    """The error of a channel that broke."""
    return ConnectionLost(f"the connection to simulated host `{host}` is lost")


def _plain(value: Value | None) -> object:
    if isinstance(value, Inode | Service):
        return {name: item for name, item in msgspec.structs.asdict(value).items() if item}
    return value


def _concerning(host: str, settings: Sequence[T]) -> tuple[T, ...]:
    return tuple(one for one in settings if fnmatchcase(host, one.hosts))
