"""As whom a shell runs: as the user that logged in, or as another by sudo or su.

A password never stands in a command line, in the environment or in a log: it is written to the
standard input of sudo or su, and only when these have asked for it.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from typing import Literal

import msgspec
from msgspec.structs import replace

from kubexm.common.secrets import Discreet
from kubexm.errors import Refused

_SHELL = "/bin/sh"
LOGIN_HINT = "give the user a login shell that runs commands, or log in as another"
Way = Literal["sudo", "su"]


class Become(Discreet, frozen=True):
    """How to become root on a host."""

    hidden = frozenset({"password"})

    way: Way = "sudo"
    password: str | None = None


NO_PASSWORD = Become()


class Entry:
    """The way to one shell: what is started, and what is said until it is there."""

    def __init__(self, become: Become | None) -> None:
        self._become = become
        self._ready = secrets.token_hex(16)
        self._prompt = secrets.token_hex(16)
        self._answered = False
        self._heard = b""
        self.is_open = become is None
        """Whether the shell listens; one of the user that logged in does from the beginning."""

    @property
    def command(self) -> str:
        """What the host is told to start; no word of it comes from outside."""
        if self._become is None:
            return f"exec {_SHELL}"
        script = f"'echo {self._ready}; exec {_SHELL}'"
        return f"exec {self._entered(self._become, script)}"

    def _entered(self, become: Become, script: str) -> str:
        """A shell of root with a script, which is one word."""
        if become.way == "su":
            # Its prompt is in the language of the host, unless it is told otherwise.
            return f"env LC_ALL=C su root -s {_SHELL} -c {script}"
        manner = "-n" if become.password is None else f"-S -p {self._prompt}"
        return f"sudo {manner} -H -- {_SHELL} -c {script}"

    def hear(self, data: bytes) -> bytes:
        """What to write when this was said on either stream; `Refused` if there is nothing."""
        self._heard += data
        if self._ready.encode() + b"\n" in self._heard:
            self.is_open = True
        elif self._asks():
            self._heard = b""
            return self._password()
        return b""

    def _asks(self) -> bool:
        if self._become is not None and self._become.way == "su":
            return self._heard.rstrip().endswith(b"Password:")
        return self._prompt.encode() in self._heard

    def _password(self) -> bytes:
        become = self._become
        if become is None or become.password is None:
            raise self._unanswered()
        if self._answered:
            raise Refused(f"the password for {self._name} is wrong", hint=_GIVE)
        self._answered = True
        return become.password.encode() + b"\n"

    def said(self, end: str) -> str:
        """What the host said; if it was nothing, how it ended."""
        return self._heard.decode(errors="replace").strip() or end

    def refusal(self, end: str) -> Refused:
        """What it means that there is no shell, by what the host said, or how it ended."""
        said = self.said(end)
        if self._become is None:
            return Refused(f"`{_SHELL}` did not start on the host: {said}", hint=LOGIN_HINT)
        if "password is required" in said:
            return self._unanswered()
        if self._answered and ("incorrect" in said or "failure" in said.lower()):
            return Refused(f"the password for {self._name} is wrong", hint=_GIVE)
        return Refused(f"{self._name} gave no shell: {said}", hint=f"let the user use {self._name}")

    def _unanswered(self) -> Refused:
        return Refused(f"{self._name} asks for a password", hint=_GIVE)

    @property
    def _name(self) -> str:
        return self._become.way if self._become is not None else _SHELL


_GIVE = "give it as a reference under `become.password`, or let the user do without one"


class Form(msgspec.Struct, frozen=True):
    """How a host takes a script that is part of the command it is told to run."""

    is_parsed: bool = True
    """Whether a shell reads the command; if none does, it is only cut at its blanks."""
    has_input: bool = True
    """Whether the command gets what is written to it."""

    def word(self, script: bytes) -> str:
        """The script as one word for `sh -c`, whichever shell reads it first."""
        text = b64encode(script).decode()
        if self.is_parsed:
            return f"""'eval "$(echo {text}|base64 -d)"'"""
        return f'eval${{IFS}}"$(echo${{IFS}}{text}|base64${{IFS}}-d)"'

    def told(self, ready: str, size: int) -> str:
        """A word for `sh -c` that says that it listens, and runs a script of so many bytes."""
        if self.is_parsed:
            return f"""'echo {ready}; eval "$(head -c {size})"'"""
        return f'echo${{IFS}}{ready};eval${{IFS}}"$(head${{IFS}}-c${{IFS}}{size})"'


class ScriptEntry(Entry):
    """The way to a shell that runs one script.

    `told`: the script is told to it once it listens, so that nobody sees it who sees command lines.
    """

    def __init__(
        self, become: Become | None, form: Form, script: bytes, *, told: bool = False
    ) -> None:
        if become is not None and not form.has_input:
            become = replace(become, password=None)
        super().__init__(become)
        self._form = form
        self._script = script
        self._told = told
        self.is_open = self.is_open and not told

    @property
    def command(self) -> str:
        # Neither `exec` nor a path: a restricted shell knows none of these.
        if self._told:
            word = self._form.told(self._ready, len(self._script))
        else:
            word = self._form.word(self._script)
        return f"sh -c {word}" if self._become is None else self._entered(self._become, word)

    def hear(self, data: bytes) -> bytes:
        was_open = self.is_open
        answer = super().hear(data)
        begins = self._told and self.is_open and not was_open
        return self._script if begins else answer

    def _unanswered(self) -> Refused:
        if self._form.has_input:
            return super()._unanswered()
        return Refused(
            f"{self._name} asks for a password, and the host hands no input to its commands",
            hint="let the user do without a password, log in as root, or let sshd hand on input",
        )
