"""This machine set apart: names, users, network and settings of its own, so that all may be tried.

A process holds the namespaces; commands enter them, and files are reached through it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from kubexm.connector.base import Command, Completed, FileStat, LineSink
from kubexm.connector.local import LocalConnector
from kubexm.runner.host import Host

T = TypeVar("T")
HOME = "/home"
"""A directory that is empty at first."""
_HOLD = """
mount --make-rprivate / && mount --bind "$1/etc" /etc && mount --bind "$1/home" /home || exit
ip link set lo up
echo ready
exec sleep 600
"""


class Apart(LocalConnector):
    """Commands and files of a machine that a process holds apart."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._enter = ("nsenter", "-t", str(pid), "-m", "-u", "-n", "--")
        self._root = f"/proc/{pid}/root"

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        return await super().exec(self._entered(command), sink)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        return await super().batch([self._entered(command) for command in commands])

    async def put(self, path: str, data: bytes, **settings: Any) -> None:
        await super().put(self._root + path, data, **settings)

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        return await super().get(self._root + path, sudo=sudo)

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        return await super().stat(self._root + path, sudo=sudo)

    def _entered(self, command: Command) -> Command:
        return replace(command, argv=(*self._enter, *command.argv))


def missing() -> str:
    """Why this machine can't be set apart; nothing if it can."""
    if os.geteuid() != 0:
        return "only root can set this machine apart"
    probe = ["unshare", "-m", "-u", "-n", "true"]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False).returncode:
        return "this machine has no namespaces to set apart"
    return ""


@contextmanager
def set_apart(directory: Path) -> Iterator[int]:
    """The process that holds a machine apart."""
    directory.mkdir()
    shutil.copytree("/etc", directory / "etc", symlinks=True, ignore_dangling_symlinks=True)
    (directory / "home").mkdir()
    argv = ["unshare", "-m", "-u", "-n", "sh", "-c", _HOLD, "sh", str(directory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


def work_apart(pid: int, work: Callable[[Host], Awaitable[T]], **settings: Any) -> T:
    """What comes of some work on the machine that is held apart."""

    async def scenario() -> T:
        connector = Apart(pid)
        try:
            return await work(Host("apart", connector, **settings))
        finally:
            await connector.close()

    return asyncio.run(scenario())
