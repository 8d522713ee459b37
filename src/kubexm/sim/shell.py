"""What a simulated program works with: its host, its input, its arguments."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from posixpath import join
from typing import Protocol

import msgspec

from kubexm.connector.base import Command, Completed
from kubexm.errors import Refused
from kubexm.sim.filesystem import Filesystem
from kubexm.sim.settings import Machine, PackageSettings
from kubexm.sim.state import HostState, Service, Socket

OK = Completed(0)


class Surroundings(Protocol):
    """What a host knows beside its own state; what is changed there is kept with the command."""

    @property
    def name(self) -> str: ...

    @property
    def machine(self) -> Machine: ...

    @property
    def archive(self) -> Mapping[str, PackageSettings]:
        """What packages bring along, as the settings of the world say."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The host's own, the main one first."""

    @property
    def held(self) -> tuple[str, ...]:
        """Virtual ones that it has at the moment."""

    @property
    def outside(self) -> bool:
        """Whether sites outside of the world answer."""

    @property
    def hesitates(self) -> bool:
        """Whether what begins in a cluster takes time."""

    def run(self, shell: Shell, argv: Sequence[str]) -> Completed:
        """Carry out another command on the host."""

    def resolved(self, name: str) -> tuple[str, ...]:
        """The addresses of a name, as this host finds them; none if nobody knows it."""

    def listens(self, where: str, port: int) -> bool:
        """Whether somebody accepts connections at a port, here or anywhere else."""

    def reached(self, where: str, port: int) -> tuple[str, ...]:
        """The hosts of the world that answer there, behind load balancers too, in turn."""

    def holder(self, socket: Socket) -> str:
        """Who on this host has a port already; nothing if it is free."""

    def candidate(self, address: str) -> None:
        """Have it known that this host may come to hold an address."""

    def shared(self, name: str) -> HostState:
        """State that belongs to no host; its name begins with `@`."""

    def shell_of(self, host: str) -> Shell | None:
        """Another host of the world; None if there is none of this name, or it is down."""


class Shell(msgspec.Struct, frozen=True):
    """One command on one host."""

    command: Command
    state: HostState
    files: Filesystem
    around: Surroundings

    @property
    def user(self) -> str:
        return self.command.user or "root"

    def run(self, argv: Sequence[str]) -> Completed:
        """Carry out another command on the same host, as root."""
        command = Command(tuple(argv))
        return self.around.run(msgspec.structs.replace(self, command=command), argv)

    def path(self, text: str) -> str:
        """An absolute path, from where the command runs."""
        return join(self.command.cwd or "/", text)

    def service(self, unit: str) -> Service | None:
        """A unit by its whole name."""
        found = self.state.get(f"service:{unit}")
        return found if isinstance(found, Service) else None

    def version(self, package: str) -> str | None:
        """The version of a package that is installed."""
        found = self.state.get(f"package:{package}")
        return found if isinstance(found, str) else None

    def user_id(self, user: str) -> int | None:
        return self._number(f"user:{user}")

    def group_id(self, group: str) -> int | None:
        return self._number(f"group:{group}")

    def _number(self, key: str) -> int | None:
        found = self.state.get(key)
        return found if isinstance(found, int) else None

    def unexpected(self, argv: Sequence[str] = ()) -> Refused:
        """The error for a command that nobody taught the simulation."""
        argv = argv or self.command.argv
        shown = ", ".join(f'"{part}"' for part in argv)
        return Refused(
            f"simulated host `{self.state.name}` does not know `{shlex.join(argv)}`",
            hint=f"say how it answers in `simulate.scripts`: - {{argv: [{shown}], exit: 0}}",
        )


Program = Callable[[Shell, Sequence[str]], Completed]
"""Takes the arguments after its own name."""


def said(text: str) -> Completed:
    """Success, with this on standard output."""
    return Completed(0, text.encode())


def failed(text: str, code: int = 1) -> Completed:
    """Failure, with this on standard error."""
    return Completed(code, stderr=f"{text}\n".encode())


def options(
    shell: Shell, args: Sequence[str], flags: str = "", valued: str = ""
) -> tuple[dict[str, str], list[str]]:
    """One-letter options and operands; an option that is not listed is unexpected."""
    found: dict[str, str] = {}
    rest = list(args)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        for place, letter in enumerate(word[1:], 1):
            if letter in valued:
                found[letter] = word[place + 1 :] or (rest.pop(0) if rest else "")
                break
            if letter not in flags:
                raise shell.unexpected()
            found[letter] = ""
    return found, rest
