"""This machine as a host: real processes, each in a session of its own, and real files.

Nothing outlives kubexm that it did not mean to leave: a command that is cancelled or runs out
of time is ended with its whole process group, and when kubexm itself is killed, a small shell
that waits at the end of a pipe does the same for all that was running. With a claim, the lock of
the host sees to it that only the latest run of a name changes anything.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kubexm.common.threads import in_thread
from kubexm.connector import localfiles
from kubexm.connector.base import (
    C_LOCALE,
    STAT,
    Command,
    Completed,
    FileStat,
    LineSink,
    Progress,
    read_content,
    read_stat,
    reading,
)
from kubexm.connector.download import PIECE, ByCommands, Remote, Seen, download
from kubexm.connector.hostlock import HostLock
from kubexm.connector.process import Process
from kubexm.connector.scripts import DIFFERS, TAKE, check_of, reason, wanted, writing
from kubexm.connector.source import Source, part_beside
from kubexm.connector.watch import Watch
from kubexm.errors import StepFailed, TimedOut

OUTPUT_LIMIT = 1 << 20
"""Bytes kept of the beginning, and as many of the end, of what a command writes."""


_COPY = 'exec <"$9"' + TAKE
# The first line of standard input says go: until then this kubexm may die and nothing has
# happened, from then on the watch knows the group. `read` takes no byte beyond its line.
_GATE = 'read -r _ && cd -- "$1" && shift && exec "$@"'
_GATE_WITHOUT_INPUT = f"{_GATE} </dev/null"


class LocalConnector:
    """Commands and files of this machine."""

    def __init__(
        self,
        *,
        lock: HostLock | None = None,
        output_limit: int = OUTPUT_LIMIT,
        grace: float = 2.0,
        side_by_side: int = 4,
    ) -> None:
        self._lock = lock
        self._output_limit = output_limit
        self._grace = grace
        self._side_by_side = side_by_side
        self._watch = Watch()
        self._running: set[Process] = set()
        self._writing: dict[str, asyncio.Lock] = {}

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """End what still runs, and the watch over it, and let go of the host."""
        async with asyncio.TaskGroup() as group:
            for process in tuple(self._running):
                group.create_task(process.end(self._grace))
        await self._watch.close()
        if self._lock is not None:
            self._lock.release()

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        """Run a command to its end."""
        lock = self._lock if command.changes else None
        return await self._run(command, sink, self._output_limit, lock)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        """Run commands a few at a time."""
        slots = asyncio.Semaphore(self._side_by_side)

        async def one(command: Command) -> Completed:
            async with slots:
                return await self._run(command, None, self._output_limit)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(command)) for command in commands]
        except BaseExceptionGroup as errors:
            # The first says enough: the others were cancelled for it, and have ended.
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

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
        """Write a file atomically."""
        async with self._alone(path):
            if sudo and not _is_root():
                await self._put_as_root(path, data, mode, owner, group)
            else:
                await self._put_as_ourselves(path, (data,), mode, owner, group)

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        """The content of a file."""
        if not sudo or _is_root():
            return await in_thread(localfiles.read, path)
        command = Command(reading(path, PIECE), env=C_LOCALE, sudo=True, changes=False)
        return read_content(await self._looked(command), path)

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
        """Copy a file atomically; False if it was there already."""
        async with self._alone(path):
            if await self._has(path, source, sudo=sudo):
                return False
            if sudo and not _is_root():
                await self._copy_as_root(source, path, wanted(mode, owner, group))
            else:
                await self._put_as_ourselves(path, _reported(source, progress), mode, owner, group)
        return True

    async def download(
        self, path: str, to: Path, *, sudo: bool = False, progress: Progress | None = None
    ) -> bool:
        """Copy a file to another place of this machine; False if it was there already."""
        return await download(self._remote(sudo=sudo), path, to, progress)

    def here(self, path: Path) -> Path:
        """A real host has files for a real machine."""
        return path

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        """What is at a path."""
        if not sudo or _is_root():
            return localfiles.stat(path)
        command = Command((*STAT, path), env=C_LOCALE, sudo=True, changes=False)
        return read_stat(await self.exec(command))

    @asynccontextmanager
    async def _alone(self, path: str) -> AsyncIterator[None]:
        """Two writers of one path share its temporary file: one after the other."""
        lock = self._writing.setdefault(path, asyncio.Lock())
        async with lock:
            yield
        if not lock.locked():
            self._writing.pop(path, None)

    async def _has(self, path: str, source: Source, *, sudo: bool) -> bool:
        found = await self.stat(path, sudo=sudo)
        if found is None or found.kind != "file" or found.size != source.size:
            return False
        seen = await self._remote(sudo=sudo).seen(path, 0)
        return seen.digest == await source.digest()

    def _remote(self, *, sudo: bool) -> Remote:
        return ByCommands(self._looked, sudo=True) if sudo and not _is_root() else _Here()

    async def _looked(self, command: Command) -> Completed:
        """The answer to a command that only looks, all of it."""
        return await self._run(command, None, limit=None)

    async def _run(
        self,
        command: Command,
        sink: LineSink | None,
        limit: int | None,
        lock: HostLock | None = None,
    ) -> Completed:
        if lock is not None:
            await lock.ready()
        process = await self._start(command, sink, limit, lock)
        self._running.add(process)
        try:
            async with asyncio.timeout(command.timeout):
                return await process.completed()
        except TimeoutError:
            raise TimedOut(
                f"`{shlex.join(command.argv)}` did not end within {command.timeout:g} s"
            ) from None
        finally:
            await process.end(self._grace)
            self._running.discard(process)

    async def _start(
        self, command: Command, sink: LineSink | None, limit: int | None, lock: HostLock | None
    ) -> Process:
        launched, user = _launched(command), _other_user(command)
        gate = _GATE if command.stdin else _GATE_WITHOUT_INPUT
        sudo = launched is not command
        try:
            return await Process.start(
                ("sh", "-c", gate, "sh", launched.cwd or ".", *launched.argv),
                stdin=b"\n" + command.stdin,
                env={**os.environ, **_home(user), **command.env},
                sink=sink,
                limit=limit,
                oversight=_Oversight(self._watch, lock, command, sudo),
                sudo=sudo,
                identity=_identity(user),
            )
        except OSError as error:
            raise StepFailed(f"can't start `{command.argv[0]}`: {error.strerror}") from error

    async def _put_as_ourselves(
        self,
        path: str,
        data: Iterable[bytes],
        mode: int | None,
        owner: str | None,
        group: str | None,
    ) -> None:
        permit: localfiles.Permit = nullcontext
        if self._lock is not None:
            await self._lock.ready()
            permit = self._lock.writing
        await in_thread(localfiles.write, path, data, mode, owner, group, permit)

    async def _put_as_root(
        self, path: str, data: bytes, mode: int | None, owner: str | None, group: str | None
    ) -> None:
        command = writing(path, data, wanted(mode, owner, group), check_of(data), sudo=True)
        done = await self.exec(replace(command, stdin=data))
        if not done.ok:
            raise StepFailed(f"can't write `{path}`: {reason(done.error_text)}")

    async def _copy_as_root(self, source: Source, path: str, looks: tuple[str, str, str]) -> None:
        size, digest = str(source.size), await source.digest()
        words = (path, part_beside(path), size, digest, *looks, "0", str(source.path))
        done = await self.exec(Command(("sh", "-c", _COPY, "sh", *words), env=C_LOCALE, sudo=True))
        if done.exit == DIFFERS:
            raise await source.refusal(path, done.text)
        if not done.ok:
            raise StepFailed(f"can't write `{path}`: {done.error_text}")


class _Here:
    """Files of this machine that we may read ourselves."""

    async def seen(self, path: str, beginning: int) -> Seen:
        digest = await in_thread(localfiles.digest, path)
        found = await in_thread(os.stat, path)
        begun = await in_thread(localfiles.digest, path, beginning) if beginning else ""
        return Seen(found.st_mode & 0o7777, found.st_size, digest, begun)

    async def piece(self, path: str, number: int) -> bytes:
        return await in_thread(localfiles.read_piece, path, PIECE, number)


class _Oversight(msgspec.Struct, frozen=True):
    """Who has to know of a command: the watch, and the lock of the host if it changes something."""

    watch: Watch
    lock: HostLock | None
    command: Command
    sudo: bool

    def begins(self, group: int) -> None:
        self.watch.add(group, sudo=self.sudo)
        if self.lock is not None:
            self.lock.enter(group, self.command, sudo=self.sudo)

    def ends(self, group: int) -> None:
        self.watch.remove(group)
        if self.lock is not None:
            self.lock.leave(group)


def _reported(source: Source, progress: Progress | None) -> Iterator[bytes]:
    """The content for a thread that takes it, told to the loop as it goes."""
    loop, done = asyncio.get_running_loop(), 0

    def pieces() -> Iterator[bytes]:
        nonlocal done
        for piece in source.all_pieces():
            yield piece
            done += len(piece)
            if progress is not None:
                loop.call_soon_threadsafe(progress, done, source.size)

    return pieces()


def _is_root() -> bool:
    return os.geteuid() == 0


def _target(command: Command) -> str | None:
    """The user to become; None to stay who we are."""
    wanted = command.user or ("root" if command.sudo else None)
    return None if wanted == _me() else wanted


def _me() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's made-up user
        return str(os.geteuid())


def _launched(command: Command) -> Command:
    """The command as it is started: through sudo unless we are root."""
    user = _target(command)
    if user is None or _is_root():
        return command
    argv = command.argv if command.cwd is None else ("env", "-C", command.cwd, *command.argv)
    keep = (f"--preserve-env={','.join(command.env)}",) if command.env else ()
    return replace(command, argv=("sudo", "-n", "-H", "-u", user, *keep, "--", *argv), cwd=None)


def _other_user(command: Command) -> pwd.struct_passwd | None:
    """Whom the process is given to when we are root."""
    user = _target(command)
    if user is None or not _is_root():
        return None
    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise StepFailed(f"there is no user `{user}` on this machine") from None


def _identity(user: pwd.struct_passwd | None) -> Mapping[str, Any]:
    if user is None:
        return {}
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}


def _home(user: pwd.struct_passwd | None) -> Mapping[str, str]:
    if user is None:
        return {}
    return {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
