"""What is behind a unit: what a program needs to start, and what it does while it runs.

A daemon belongs to a program, not to a host: all that it knows is in the state of the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import dirname
from typing import Literal

import msgspec

from kubexm.sim.shell import Shell
from kubexm.sim.state import Socket

Condition = Literal["active", "activating", "failed"]
"""How a unit that was started is, in the words of systemd."""


class Ended(Exception):
    """The program ends at once; the message is its last word."""


class Start(msgspec.Struct, frozen=True):
    """One start of a program by a unit."""

    shell: Shell
    unit: str
    """The whole name of the unit."""
    program: str
    """The name of the program, without its directory."""
    args: tuple[str, ...] = ()
    """What it is given, variables filled in."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    version: str = ""
    """Of the program's file; nothing if that does not tell."""
    mounts: Mapping[str, str] = msgspec.field(default_factory=dict)
    """In a container: paths of the host by those inside."""

    def option(self, *names: str) -> str:
        """The value of the first of these options that is given: `--config F` or `--config=F`."""
        for place, word in enumerate(self.args):
            name, sign, value = word.partition("=")
            if name in names and sign:
                return value
            if word in names:
                return "".join(self.args[place + 1 : place + 2])
        return ""

    def has(self, flag: str) -> bool:
        """Whether an option is given that takes no value."""
        return flag in self.args

    def place(self, path: str) -> str:
        """Where a path of the program lies on the host."""
        above = path
        while above not in self.mounts and above not in ("/", ""):
            above = dirname(above)
        if above in self.mounts:
            return self.mounts[above] + path[len(above) :]
        if self.mounts:
            raise Ended(f"open {path}: no such file or directory")
        return path

    def read(self, path: str) -> bytes:
        """A file that it can't go without."""
        try:
            return self.shell.files.read(self.place(path))
        except OSError as error:
            raise Ended(f"open {path}: {(error.strerror or '').lower()}") from error

    def require(self, path: str) -> None:
        """Raise unless something is at a path."""
        files = self.shell.files
        if files.lookup(files.resolve(self.place(path))) is None:
            raise Ended(f"open {path}: no such file or directory")


class Daemon:
    """A program that runs on; what it does not say is as with any other."""

    def starts(self, start: Start) -> Sequence[Socket]:
        """What it opens for as long as it runs; `Ended` if it can't start."""
        return ()

    def stops(self, shell: Shell, unit: str) -> None:
        """Take back what its start did beside opening ports."""

    def condition(self, shell: Shell) -> Condition:
        """How it is by now, once it was started."""
        return "active"

    def says(self, shell: Shell) -> str:
        """What it wrote into its log last."""
        return ""

    def sockets(self, shell: Shell) -> Sequence[Socket]:
        """What it has open at the moment, beside what it opened when it started."""
        return ()

    def addresses(self, shell: Shell) -> Mapping[str, int]:
        """What it has the host answer at beside its own addresses, with how much it wants to.

        Of several hosts that want an address, the one with the highest number has it.
        """
        return {}
