"""The channel to a simulated host: delays, faults, and answers from its state."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from kubexm.connector.base import (
    STAT,
    Command,
    Completed,
    FileStat,
    LineSink,
    Progress,
    read_stat,
)
from kubexm.connector.download import PIECE, Seen, download
from kubexm.connector.source import Source
from kubexm.errors import StepFailed, TimedOut
from kubexm.sim.filesystem import Filesystem
from kubexm.sim.host import SimHost, lost
from kubexm.sim.settings import Fault

_FOR_EVER = 1e9
_LONG = 0.001
"""Seconds that a program takes that does not end at once."""
R = TypeVar("R")


class SimConnector:
    """One connection to one simulated host."""

    def __init__(self, host: SimHost, control: Path) -> None:
        """`control`: the directory for files that come from the host."""
        self._host = host
        self._control = control
        self._broken = False

    async def open(self) -> None:
        """Connect, or connect again."""
        await _pause(self._host.latency(0))
        self._host.require_up()
        self._broken = False

    async def close(self) -> None:
        """There is nothing to release."""

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        """Run a command."""
        done = await self._exec(command, first=True)
        if sink is not None:
            _report(done, sink)
        return done

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        """Run commands one after the other, for the latency of one."""
        first = True
        answers = []
        for command in commands:
            answers.append(await self._exec(command, first=first))
            first = False
        return answers

    async def put(
        self,
        path: str,
        data: bytes,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
        sudo: bool = False,
    ) -> None:
        """Write a file."""

        def write(files: Filesystem) -> None:
            files.write(path, data, mode=mode, owner=owner, group=group)

        await self._transfer("write", path, write)

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        """The content of a file."""
        return await self._transfer("read", path, lambda files: files.read(path))

    async def upload(
        self,
        source: Source,
        path: str,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
        sudo: bool = False,
        progress: Progress | None = None,
    ) -> bool:
        """Write a file; False if it was there already."""
        digest = await source.digest()

        def write(files: Filesystem) -> bool:
            found = files.lookup(path)
            if found is not None and found.kind == "file" and files.digest(path) == digest:
                return False
            files.adopt(path, source, digest, mode=mode, owner=owner, group=group)
            return True

        written = await self._transfer("write", path, write)
        if written and progress is not None:
            progress(source.size, source.size)
        return written

    async def download(
        self, path: str, to: Path, *, sudo: bool = False, progress: Progress | None = None
    ) -> bool:
        """Bring a file to this machine; False if it was there already."""
        return await download(self, path, to, progress)

    async def seen(self, path: str, beginning: int) -> Seen:
        """A file, and the digest of so many bytes at its beginning."""

        def look(files: Filesystem) -> Seen:
            found, data = files.find(files.resolve(path)), files.read(path)
            begun = sha256(data[:beginning]).hexdigest() if beginning else ""
            return Seen(found.mode, len(data), files.digest(path), begun)

        return await self._transfer("read", path, look)

    async def piece(self, path: str, number: int) -> bytes:
        """A piece of a file."""
        start = number * PIECE
        part = slice(start, start + PIECE)
        return await self._transfer("read", path, lambda files: files.read(path)[part])

    def here(self, path: Path) -> Path:
        """In the world: nothing that was simulated lands on the real machine."""
        return self._control / path.relative_to(path.anchor)

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        """What is at a path."""
        return read_stat(await self.exec(Command((*STAT, path))))

    async def _exec(self, command: Command, *, first: bool) -> Completed:
        if command.timeout is None:
            return await self._answer(command, first)
        try:
            async with asyncio.timeout(command.timeout):
                return await self._answer(command, first)
        except TimeoutError:
            text = shlex.join(command.argv)
            raise TimedOut(f"`{text}` did not end within {command.timeout:g} s") from None

    async def _answer(self, command: Command, first: bool) -> Completed:
        host, argv = self._host, command.argv
        self._require_up()
        number = host.count(argv[0])
        script = host.script(argv)
        fault = host.fault(number, argv)
        if script is None and host.begins(command):
            await asyncio.sleep(_LONG)
        await _pause((host.latency(number) if first else 0.0) + host.duration(number, argv, script))

        full = fault is not None and fault.kind == "disk-full"

        def act() -> Completed:
            return host.answer(command, script, full=full)

        if fault is None:
            self._require_up()
            return act()
        if fault.kind == "fail":
            return Completed(1, stderr=b"simulated fault\n")
        return await self._despite(fault, number, act)

    async def _transfer(self, verb: str, path: str, work: Callable[[Filesystem], R]) -> R:
        host = self._host
        self._require_up()
        number = host.count(verb)
        fault = host.fault(number, (verb, path))
        await _pause(host.latency(number))
        full = fault is not None and fault.kind == "disk-full"

        def act() -> R:
            try:
                return host.transfer(work, full=full)
            except OSError as error:
                if verb == "read" and isinstance(error, FileNotFoundError):
                    raise
                raise StepFailed(f"can't {verb} `{path}`: {error.strerror}") from error

        if fault is None:
            self._require_up()
            return act()
        if fault.kind == "fail":
            raise StepFailed(f"can't {verb} `{path}`: simulated fault")
        return await self._despite(fault, number, act)

    async def _despite(self, fault: Fault, number: int, act: Callable[[], R]) -> R:
        """What comes of a command with which something goes wrong."""
        if fault.kind in ("slow", "hang"):
            await asyncio.sleep(_FOR_EVER if fault.seconds is None else fault.seconds)
        self._require_up()
        if fault.kind == "unreachable":
            self._host.vanish(fault.seconds)
        if fault.kind in ("connection-lost", "unreachable"):
            self._broken = True
            if self._host.is_applied(number, fault):
                act()
            raise lost(self._host.name)
        return act()

    def _require_up(self) -> None:
        if self._broken or not self._host.is_up:
            self._broken = True
            raise lost(self._host.name)


async def _pause(seconds: float) -> None:
    if seconds > 0.0:
        await asyncio.sleep(seconds)


def _report(done: Completed, sink: LineSink) -> None:
    for stream, text in (("stdout", done.text), ("stderr", done.error_text)):
        for line in text.split("\n") if text else ():
            sink(stream, line)
