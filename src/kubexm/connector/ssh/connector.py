"""A host that is reached by SSH."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path, PurePath

import asyncssh
from msgspec.structs import replace

from kubexm.connector.base import (
    BOOT,
    C_LOCALE,
    STAT,
    Claim,
    Command,
    Completed,
    FileStat,
    LineSink,
    Progress,
    read_content,
    read_stat,
    reading,
)
from kubexm.connector.download import ByCommands, download
from kubexm.connector.scripts import WRITE
from kubexm.connector.source import PIECE, Source
from kubexm.connector.ssh import frames, fusing
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.lane import Lane, NotObeyed
from kubexm.connector.ssh.lanes import Lanes
from kubexm.connector.ssh.lock import RemoteLock
from kubexm.connector.ssh.target import Target
from kubexm.connector.ssh.transfer import SMALL, Upload
from kubexm.errors import ConnectionLost, KubexmError, StepFailed, TimedOut

OUTPUT_LIMIT = 1 << 20
"""Bytes kept of the beginning, and as many of the end, of what a command writes."""
INLINE = 48 << 10
"""Input up to this size travels with its request; more of it gets a channel of its own."""


class SshConnector:
    """Commands and files of a host, over one connection."""

    def __init__(
        self,
        target: Target,
        dialer: Dialer,
        *,
        name: str = "",
        sudo: bool = False,
        claim: Claim | None = None,
        state_dir: str = "/var/lib/kubexm",
        output_limit: int = OUTPUT_LIMIT,
        grace: float = 2.0,
    ) -> None:
        """`sudo`: who logs in may become root, and all that changes the host is done by root."""
        self._target = target
        self._dialer = dialer
        self._name = name or target.address
        self._wants_root = sudo
        self._user = ""
        self._lock = RemoteLock(state_dir, claim, name) if claim is not None else None
        self._output_limit = output_limit
        self._grace = grace
        self._connection: asyncssh.SSHClientConnection | None = None
        self._lanes: Lanes | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Connect, unless there is a connection."""
        async with self._opening:
            if self._connection is not None and not self._connection.is_closed():
                return
            if self._lock is not None:
                self._lock.lose()
            self._connection = await self._dialer.connect(self._target)
            self._user = self._connection.get_extra_info("username")
            become = None if self._user == "root" else self._target.become
            self._lanes = Lanes(self._connection, become, self._grace, self._name)

    async def close(self) -> None:
        """Let go of the host."""
        if self._connection is None or self._lanes is None:
            return
        if self._lock is not None and self._lock.is_taken and not self._connection.is_closed():
            # What is not released is found to be over by whoever comes next.
            with suppress(KubexmError):
                async with self._lanes.taken(root=self._wants_root) as shell:
                    await self._lock.release(shell)
        await self._lanes.close()
        self._connection.close()
        await self._connection.wait_closed()

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        """Run a command to its end."""
        try:
            async with self._shells.taken(root=self._as_root(command)) as shell:
                async with asyncio.timeout(command.timeout):
                    return await self._run(shell, command, sink)
        except TimeoutError:
            raise TimedOut(
                f"`{shlex.join(command.argv)}` did not end within {command.timeout:g} s"
            ) from None

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        """Run commands in one round trip."""
        looks = [replace(command, changes=False) for command in commands]
        answers: dict[int, Completed] = {}
        for root in (False, True):
            chosen = [n for n, look in enumerate(looks) if self._as_root(look) is root]
            if chosen:
                async with self._shells.taken(root=root) as shell:
                    found = await self._fused(shell, [looks[n] for n in chosen])
                answers.update(zip(chosen, found, strict=True))
        return [answers[n] for n in range(len(looks))]

    async def _fused(self, shell: Lane, commands: Sequence[Command]) -> list[Completed]:
        looks = fusing.fused(commands)
        known = fusing.answers(looks, await self._asked(shell, [look.command for look in looks]))
        if left := [n for n in range(len(commands)) if n not in known]:
            singly = await self._asked(shell, [commands[n] for n in left])
            known.update(zip(left, singly, strict=True))
        return [known[n] for n in range(len(commands))]

    async def _asked(self, shell: Lane, commands: Sequence[Command]) -> list[Completed]:
        requests = [frames.request(*self._launched(command)) for command in commands]
        return await shell.ask(requests, None, self._output_limit)

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
        wanted = ("" if mode is None else f"{mode:04o}", owner or "", group or "")
        argv = ("sh", "-c", WRITE, "sh", path, *wanted)
        done = await self.exec(Command(argv, stdin=data or b"", env=C_LOCALE, sudo=sudo))
        if not done.ok:
            raise StepFailed(f"can't write `{path}`: {done.error_text}")

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
        """Write a file atomically that is sent in a stream; False if it was there already."""
        upload = Upload(self, source, path, sudo=sudo, progress=progress)
        async with self._dialer.bulk if source.size > SMALL else nullcontext():
            return await upload.run("" if mode is None else f"{mode:04o}", owner or "", group or "")

    async def download(
        self, path: str, to: Path, *, sudo: bool = False, progress: Progress | None = None
    ) -> bool:
        """Bring a file to this machine in pieces; False if it was there already."""
        async with self._dialer.bulk:
            return await download(ByCommands(self._looked, sudo=sudo), path, to, progress)

    async def feed(self, command: Command, data: AsyncIterable[bytes]) -> Completed:
        """Run a command to its end that reads all of this data."""
        async with self._shells.taken(root=self._as_root(command)) as shell:
            return await self._poured(shell, command, data)

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        """The content of a file."""
        argv = reading(path, PIECE)
        command = Command(argv, env=C_LOCALE, sudo=sudo, changes=False)
        return read_content(await self._looked(command), path)

    def here(self, path: Path) -> Path:
        """A real host has files for a real machine."""
        return path

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        """What is at a path."""
        command = Command((*STAT, path), env=C_LOCALE, sudo=sudo, changes=False)
        return read_stat(await self.exec(command))

    async def _looked(self, command: Command) -> Completed:
        """The answer to a command that only looks, all of it."""
        async with self._shells.taken(root=self._as_root(command)) as shell:
            (answer,) = await shell.ask((frames.request(*self._launched(command)),))
        return answer

    @property
    def _shells(self) -> Lanes:
        if self._lanes is None or self._connection is None or self._connection.is_closed():
            raise ConnectionLost(f"there is no connection to {self._target}")
        return self._lanes

    def _as_root(self, command: Command) -> bool:
        """Whether the shell is root's; where there is one, only that sees the lock."""
        other = command.user not in (None, self._user)
        return command.sudo or other or (command.changes and self._wants_root)

    def _launched(self, command: Command) -> tuple[Sequence[str], Mapping[str, str], str | None]:
        """Argument list, environment and directory, for the shell that will run it."""
        wanted = command.user or ("root" if command.sudo else self._user)
        if wanted == ("root" if self._as_root(command) else self._user):
            return command.argv, command.env, command.cwd
        return (*self._becoming(wanted, command.env), *command.argv), command.env, command.cwd

    def _becoming(self, user: str, env: Mapping[str, str]) -> Sequence[str]:
        """What root puts before a command to run it as somebody else."""
        if self._target.become.way == "su":
            return ("runuser", "-u", user, "--")
        keep = (f"--preserve-env={','.join(env)}",) if env else ()
        return ("sudo", "-n", "-H", "-u", user, *keep, "--")

    async def _poured(
        self,
        shell: Lane,
        command: Command,
        data: AsyncIterable[bytes],
        sink: LineSink | None = None,
    ) -> Completed:
        lock = self._lock if command.changes else None
        if lock is not None:
            await lock.ready(shell)
        request = frames.poured(*self._launched(command), asks=lock is not None)
        try:
            return await shell.pour(request, data, sink, self._output_limit)
        except NotObeyed:
            assert lock is not None, "nobody else asks whom the host obeys"
            raise await lock.refusal(shell) from None

    async def _run(self, shell: Lane, command: Command, sink: LineSink | None) -> Completed:
        if command.argv == BOOT and shell.group:
            return Completed(0, f"{shell.group[-1].partition(' ')[0]}\n".encode())
        if len(command.stdin) > INLINE:
            return await self._poured(shell, command, _pieces(command.stdin), sink)
        lock = self._lock if command.changes else None
        if lock is not None:
            await lock.ready(shell)
        try:
            work = frames.body(*self._launched(command), command.stdin)
            request = frames.change(work, awaited=_awaited(command)) if lock else frames.plain(work)
            (answer,) = await shell.ask((request,), sink, self._output_limit)
        except NotObeyed:
            assert lock is not None, "nobody else asks whom the host obeys"
            raise await lock.refusal(shell) from None
        return answer


def _awaited(command: Command) -> str | None:
    return PurePath(command.argv[0]).name if command.uninterruptible else None


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
