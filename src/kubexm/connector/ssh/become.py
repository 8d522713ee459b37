"""As whom a shell runs: as the user that logged in, or as another by sudo or su.

A password never stands in a command line, in the environment or in a log: it is written to the
standard input of sudo or su, and only when these have asked for it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Literal

from kubexm.errors import Refused

_SHELL = "/bin/sh"
Way = Literal["sudo", "su"]


@dataclass(frozen=True, slots=True)
class Become:
    """How to become root on a host."""

    way: Way = "sudo"
    password: str | None = field(default=None, repr=False)


NO_PASSWORD = Become()


class Entry:
    """The way to one shell: what is started, and what is said until it is there."""

    def __init__(self, become: Become | None) -> None:
        self._become = become
        self._ready = secrets.token_hex(16)
        self._prompt = secrets.token_hex(16)
        self._answered = False
        self._said = b""
        self.is_open = become is None
        """Whether the shell listens; one of the user that logged in does from the beginning."""

    @property
    def command(self) -> str:
        """What the host is told to start; no word of it comes from outside."""
        if self._become is None:
            return f"exec {_SHELL}"
        shell = f"{_SHELL} -c 'echo {self._ready}; exec {_SHELL}'"
        if self._become.way == "su":
            # Its prompt is in the language of the host, unless it is told otherwise.
            return f"LC_ALL=C exec su root -s {_SHELL} -c 'echo {self._ready}; exec {_SHELL}'"
        if self._become.password is None:
            return f"exec sudo -n -H -- {shell}"
        return f"exec sudo -S -p {self._prompt} -H -- {shell}"

    def hear(self, data: bytes) -> bytes:
        """What to write when this was said on either stream; `Refused` if there is nothing."""
        self._said += data
        if self._ready.encode() + b"\n" in self._said:
            self.is_open = True
        elif self._asks():
            self._said = b""
            return self._password()
        return b""

    def _asks(self) -> bool:
        if self._become is not None and self._become.way == "su":
            return self._said.rstrip().endswith(b"Password:")
        return self._prompt.encode() in self._said

    def _password(self) -> bytes:
        become = self._become
        if become is None or become.password is None:
            raise Refused(f"{self._name} asks for a password", hint=self._give)
        if self._answered:
            raise Refused(f"the password for {self._name} is wrong", hint=self._give)
        self._answered = True
        return become.password.encode() + b"\n"

    def refusal(self, code: int | None) -> Refused:
        """What it means that there is no shell."""
        said = self._said.decode(errors="replace").strip() or f"exit code {code}"
        if self._become is None:
            return Refused(
                f"`{_SHELL}` did not start on the host: {said}",
                hint="give the user a login shell that runs commands, or log in as another",
            )
        if "password is required" in said:
            return Refused(f"{self._name} asks for a password", hint=self._give)
        if self._answered and ("incorrect" in said or "failure" in said.lower()):
            return Refused(f"the password for {self._name} is wrong", hint=self._give)
        return Refused(f"{self._name} gave no shell: {said}", hint=f"let the user use {self._name}")

    @property
    def _name(self) -> str:
        return self._become.way if self._become is not None else _SHELL

    @property
    def _give(self) -> str:
        return "give it as a reference under `become.password`, or let the user do without one"
