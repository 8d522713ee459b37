"""What a simulated host is like now: cells by name, kept in a journal that survives a kill.

A line of the journal holds all that one command changed, written in one call before the command
is answered. A process that is killed loses nothing of it; a last line cut short is as if the
command had never run.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote, unquote

import msgspec

from kubexm.errors import UnsupportedFormat
from kubexm.sim import private


class Inode(msgspec.Struct, frozen=True, tag="path", omit_defaults=True, gc=False):
    """What is at a path; content is short text, or a blob by its sha256."""

    kind: Literal["file", "directory", "link"]
    mode: int
    owner: str = "root"
    group: str = "root"
    text: str = ""
    blob: str = ""
    size: int = 0
    target: str = ""


EVERY_IPV4 = "0.0.0.0"  # noqa: S104  # nobody binds it
"""All addresses of a host that are no IPv6."""


class Socket(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where somebody accepts TCP connections; without an address, at all of them."""

    port: int
    address: str = ""
    forwards: tuple[str, ...] = ()
    """Where a load balancer hands a connection on to, such as `10.0.0.1:6443`."""


class Service(msgspec.Struct, frozen=True, tag="service", omit_defaults=True):
    """A unit of systemd; `loaded` is the digest of the unit files it was read from."""

    active: bool = False
    enabled: bool = False
    masked: bool = False
    ports: tuple[int, ...] = ()
    """Open while it runs, as the settings of the world say."""
    loaded: str = ""
    program: str = ""
    """What it was started with, if a unit file says so."""
    sockets: tuple[Socket, ...] = ()
    """What that has opened."""
    failed: str = ""
    """Why it does not run."""
    retrying: bool = False
    """Whether systemd starts it again and again."""


Value = Inode | Service | str | int
T = TypeVar("T")


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A cell's new value, and how many changes that stands for."""

    key: str
    value: Value | None
    times: int = 1


class Line(msgspec.Struct, frozen=True, array_like=True):
    """What changed up to a command of this number."""

    number: int
    changes: list[Change]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode
_VOLATILE = ("script:", "starts:", "switch:", "candidate:", "token:", "seen:", "/proc/")
"""How often something happened and whether a host is on are not what a run leaves behind."""


class HostState:
    """The cells of one host over what it was delivered with."""

    __slots__ = ("_base", "_cells", "_changed", "_followed", "_journals", "name", "number")

    def __init__(self, name: str, base: Mapping[str, Value], journals: Journals) -> None:
        self.name = name
        self.number = 0
        """How many commands this host was given, as far as they were kept."""
        self._base = base
        self._journals = journals
        self._cells: dict[str, Change] = {}
        self._changed: dict[str, Value | None] = {}
        self._followed: dict[str, Any] = {}
        self._load()

    def get(self, key: str) -> Value | None:
        """What a cell holds."""
        cell = self._cells.get(key)
        return self._base.get(key) if cell is None else cell.value

    def set(self, key: str, value: Value | None) -> None:
        """Change a cell; it counts even if the value stays the same."""
        cell = self._cells.get(key)
        self._cells[key] = Change(key, value, 1 if cell is None else cell.times + 1)
        self._changed[key] = value
        self._followed.clear()

    def follows(self, key: str, find: Callable[[], T]) -> T:
        """What follows from the cells of this host alone: found once, until one of them changes."""
        if key not in self._followed:
            self._followed[key] = find()
        found: T = self._followed[key]
        return found

    def was_delivered(self, key: str) -> bool:
        """Whether the host came with something in this cell."""
        return key in self._base

    def commit(self) -> None:
        """Write down what was changed since the last time."""
        if self._changed:
            changes = [Change(key, value) for key, value in self._changed.items()]
            self._journals.append(self.name, _encode(Line(self.number, changes)) + b"\n")
            self._changed.clear()

    def keys(self, prefix: str | tuple[str, ...]) -> Iterator[str]:
        """The names of all cells that hold something and begin like this, or like one of these."""
        # Most cells are as they were delivered, and begin in another way.
        found = {key for key in self._base if key.startswith(prefix)}
        found.update(key for key in self._cells if key.startswith(prefix))
        yield from (key for key in found if self.get(key) is not None)

    def mutations(self) -> dict[str, int]:
        """How often each cell was changed."""
        return {key: cell.times for key, cell in sorted(self._cells.items())}

    def difference(self) -> dict[str, Value | None]:
        """What is not as it was delivered."""
        return {
            key: cell.value
            for key, cell in sorted(self._cells.items())
            if not key.startswith(_VOLATILE) and cell.value != self._base.get(key)
        }

    def _load(self) -> None:
        *lines, torn = self._journals.read(self.name).split(b"\n")
        for number, text in enumerate(lines, 1):
            self._replay(number, text)
        if torn or len(lines) > 2 * len(self._cells) + 64:
            whole = Line(self.number, list(self._cells.values()))
            self._journals.rewrite(self.name, _encode(whole) + b"\n" if lines else b"")

    def _replay(self, number: int, text: bytes) -> None:
        try:
            line = _decode(text)
        except msgspec.DecodeError as error:
            where = f"{self._journals.path(self.name)}:{number}"
            raise UnsupportedFormat(
                f"not the state of a simulated host: {error}",
                where=where,
                hint="remove the world's directory and simulate anew",
            ) from error
        self.number = line.number
        for change in line.changes:
            known = self._cells.get(change.key)
            times = change.times + (known.times if known else 0)
            self._cells[change.key] = Change(change.key, change.value, times)


class Journals:
    """One file of lines per host; the last few that were used are kept open."""

    def __init__(self, directory: Path, keep_open: int = 64) -> None:
        self._directory = directory
        self._keep_open = keep_open
        self._open: OrderedDict[str, int] = OrderedDict()

    def path(self, name: str) -> Path:
        return self._directory / f"{quote(name, safe='')}.jsonl"

    def names(self) -> list[str]:
        """Every host that was ever changed."""
        return sorted(unquote(path.stem) for path in self._directory.glob("*.jsonl"))

    def read(self, name: str) -> bytes:
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError:
            return b""

    def append(self, name: str, line: bytes) -> None:
        # One call, so that a kill leaves a whole line, or a last one that can be told.
        if os.write(self._descriptor(name), line) != len(line):
            raise OSError(f"could not write all of `{self.path(name)}`")

    def rewrite(self, name: str, data: bytes) -> None:
        with private.written(self.path(name)) as file:
            file.write(data)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def _descriptor(self, name: str) -> int:
        if (found := self._open.get(name)) is not None:
            self._open.move_to_end(name)
            return found
        if len(self._open) >= self._keep_open:
            os.close(self._open.popitem(last=False)[1])
        made = os.open(self.path(name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._open[name] = made
        return made
