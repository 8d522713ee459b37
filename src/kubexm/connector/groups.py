"""Process groups that run on a host for one holder, recorded where a later holder finds them.

A line per event, its fields divided by tabs. When a command is about to begin: `+`, pid, start
time, boot, `awaited` or `ended`, `sudo` or `self`, task, program; afterwards: `-`, pid, `over`.
Pid, start time and boot tell a group from any other that has its number later. Arguments are left
out, since they may hold a secret.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

_PREFIX = "groups."


class Group(msgspec.Struct, frozen=True):
    """A process group: that of a command in a session of its own."""

    pid: int
    started: int
    boot: str
    awaited: bool
    """Not to be ended, only to be waited for."""
    sudo: bool
    """Started through sudo, and only so to be signalled."""
    task: str
    program: str

    def __str__(self) -> str:
        return f"`{self.program}` (pid {self.pid}) of task {self.task}"


class RecordedGroups:
    """The file of one holder; it only ever grows, and is empty again when nothing runs."""

    def __init__(self, directory: Path, token: int) -> None:
        self._path = directory / f"{_PREFIX}{token}"
        self._file = -1
        self._running: dict[int, Group] = {}

    def open(self) -> None:
        """Make the file, also if somebody has removed it."""
        self._close_file()
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for group in self._running.values():
            self._append(fields(group))

    def add(self, group: Group) -> None:
        """Record a group before it begins."""
        self._running[group.pid] = group
        self._append(fields(group))

    def remove(self, pid: int) -> None:
        """A group has ended, or what is left of it may stay."""
        if self._running.pop(pid, None) is None:
            return
        # Where this can't be written, the start time tells that the group is no more.
        with suppress(OSError):
            if self._running:
                self._append(("-", pid, "over"))
            else:
                os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Leave nothing behind."""
        if self._file >= 0:
            self._close_file()
            self._path.unlink(missing_ok=True)

    def _append(self, fields: Sequence[object]) -> None:
        # The newline in front: a full disk may have cut off the line before.
        data = ("\n" + "\t".join(map(str, fields)) + "\n").encode(errors="replace")
        if os.write(self._file, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def earlier(directory: Path, token: int) -> list[Path]:
    """The files of holders with a lesser token."""
    found = ((path, path.name.removeprefix(_PREFIX)) for path in directory.glob(f"{_PREFIX}*"))
    return [path for path, number in found if number.isdecimal() and int(number) < token]


def recorded(path: Path) -> list[Group]:
    """The groups of a file that had begun and were not over when last heard of."""
    try:
        return read(path.read_text(errors="replace"))
    except FileNotFoundError:
        return []


def read(text: str) -> list[Group]:
    """The same of its text."""
    found: dict[int, Group] = {}
    for sign, *rest in _lines(text):
        match sign, rest:
            case "+", [pid, started, boot, manner, way, task, program]:
                found[int(pid)] = Group(
                    pid=int(pid),
                    started=int(started),
                    boot=boot,
                    awaited=manner == "awaited",
                    sudo=way == "sudo",
                    task=task,
                    program=program,
                )
            case "-", [pid, "over"]:
                found.pop(int(pid), None)
    return list(found.values())


def fields(group: Group) -> Sequence[object]:
    """What is written of a group that is about to begin."""
    manner = "awaited" if group.awaited else "ended"
    way = "sudo" if group.sudo else "self"
    program = "".join(c if c.isprintable() else "?" for c in group.program)
    return ("+", group.pid, group.started, group.boot, manner, way, group.task, program)


def _lines(text: str) -> Iterator[list[str]]:
    # A line without its end is still being written: that group has not begun.
    for line in text.split("\n")[:-1]:
        yield line.split("\t")
