"""A host that is reached by SSH."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Sequence,
)
from contextlib import suppress
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
    Script,
    read_content,
    read_stat,
    reading,
)
from kubexm.connector.download import ByCommands, download
from kubexm.connector.scripts import HANDED, INLINE, KEEP, reason, wanted, writing
from kubexm.connector.source import PIECE, Source
from kubexm.connector.ssh import frames, fusing
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.lane import Lane, NotObeyed
from kubexm.connector.ssh.lanes import Lanes
from kubexm.connector.ssh.lock import RemoteLock
from kubexm.connector.ssh.target import Target
from kubexm.connector.ssh.transfer import SMALL, Upload
from kubexm.errors import ConnectionLost, KubexmError, Refused, StepFailed, TimedOut

OUTPUT_LIMIT = 1 << 20
"""Bytes kept of the beginning, and as many of the end, of what a command writes."""


_HAND_ON = (
    "let what stands in front of commands there, such as `ForceCommand` of sshd, leave them their"
    " standard input; or log in as a user with a shell"
)
_PLAIN = re.compile(rb"[\t\n\x20-\x7e]*")
"""What every shell takes for what it is."""


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
        holds_secret: Callable[[str], bool] | None = None,
    ) -> None:
        """`sudo`: who logs in may become root, and all that changes the host is done by root.

        `holds_secret`: whether a text has a secret in it, which never stands in a command line.
        """
        self._target = target
        self._dialer = dialer
        self._name = name or target.address
        self._wants_root = sudo
        self._user = ""
        self._lock = RemoteLock(state_dir, claim, name) if claim is not None else None
        self._state_dir = state_dir
        self._holds_secret = holds_secret
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
                if command.timeout is None:
                    return await self._run(shell, command, sink)
                async with asyncio.timeout(command.timeout):
                    return await self._run(shell, command, sink)
        except TimeoutError:
            raise TimedOut(
                f"`{shlex.join(command.argv)}` did not end within {command.timeout:g} s"
            ) from None

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        """Run commands in one round trip."""
        looks = [one if not one.changes else replace(one, changes=False) for one in commands]
        answers: dict[int, Completed] = {}
        ways = [self._as_root(look) for look in looks]
        for root in sorted(set(ways)):
            chosen = [number for number, way in enumerate(ways) if way is root]
            async with self._shells.taken(root=root) as shell:
                found = await self._fused(shell, [looks[number] for number in chosen])
            answers.update(zip(chosen, found, strict=True))
        return [answers[number] for number in range(len(looks))]

    async def _fused(self, shell: Lane, commands: Sequence[Command]) -> list[Completed]:
        looks = fusing.fused(commands)
        known = fusing.answers(looks, await self._asked(shell, [look.command for look in looks]))
        if left := [n for n in range(len(commands)) if n not in known]:
            singly = await self._asked(shell, [commands[n] for n in left])
            known.update(zip(left, singly, strict=True))
        return [known[n] for n in range(len(commands))]

    async def _asked(self, shell: Lane, commands: Sequence[Command]) -> list[Completed]:
        for command in commands:
            self._require_no_secret(shell, command)
        requests = [self._looked_at(command) for command in commands]
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
        if not self._shells.holds and (self._is_private(path, mode) or self._is_secret(data)):
            await self._require_a_private_way(path, sudo=sudo)
        looks = wanted(mode, owner, group)
        command = writing(path, data, looks, sudo=sudo)
        if not self.is_own(command):
            done = await self.exec(replace(command, stdin=data))
        elif len(data) > INLINE:
            command = writing(path, data, looks, HANDED, sudo=sudo)
            done = await self.hand(command, _pieces(data), len(data))
        elif _PLAIN.fullmatch(data):
            # No process is needed to read it, and none has it in its argument list.
            done = await self.exec(replace(command, argv=(*command.argv, data.decode())))
        else:
            done = await self.exec(replace(command, stdin=data))
        if not done.ok:
            raise StepFailed(f"can't write `{path}`: {reason(done.error_text)}")

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
        if source.size <= SMALL:
            async with source.content() as data:
                await self.put(path, data, mode=mode, owner=owner, group=group, sudo=sudo)
            if progress is not None:
                progress(source.size, source.size)
            return True
        if not self._shells.holds and self._is_private(path, mode):
            await self._require_a_private_way(path, sudo=sudo)
        upload = Upload(self, source, path, sudo=sudo, progress=progress)
        async with self._dialer.bulk:
            return await upload.run(wanted(mode, owner, group))

    async def download(
        self, path: str, to: Path, *, sudo: bool = False, progress: Progress | None = None
    ) -> bool:
        """Bring a file to this machine in pieces; False if it was there already."""
        async with self._dialer.bulk:
            return await download(ByCommands(self._looked, sudo=sudo), path, to, progress)

    async def hand(self, command: Command, data: AsyncIterable[bytes], size: int) -> Completed:
        """Run a command to its end that reads as many bytes as these."""
        async with self._shells.taken(root=self._as_root(command)) as shell:
            self._require_no_secret(shell, command)
            inner = self._inner(command) if self.is_own(command) else self._keeping(command, size)
            return await self._obeyed(
                shell, command, lambda asks: self._handed(shell, inner, data, None, asks=asks)
            )

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
            (answer,) = await shell.ask((self._looked_at(command),))
        return answer

    def _is_private(self, path: str, mode: int | None) -> bool:
        """Whether not everyone may read a file; what we keep there ourselves tells no secret."""
        is_public = mode is None or mode & 0o004
        return not is_public and not path.startswith(f"{self._state_dir}/")

    def _is_secret(self, data: bytes) -> bool:
        return self._holds_secret is not None and self._holds_secret(data.decode(errors="replace"))

    async def _require_a_private_way(self, path: str, *, sudo: bool) -> None:
        """What is not for everyone gets to the host by a way that nobody sees."""
        async with self._shells.taken(root=sudo or self._wants_root) as shell:
            if not shell.has_input:
                message = f"`{path}` is not for everyone to read, and the host hands on no input"
                raise Refused(f"{message}: it would stand in a command line", hint=_HAND_ON)

    def _require_no_secret(self, shell: Lane, command: Command) -> None:
        if shell.has_input:
            return
        words = (*command.argv, *command.env.values())
        if self._is_secret(command.stdin) or any(self._is_secret(one.encode()) for one in words):
            message = f"`{command.argv[0]}` is given a secret, and the host hands on no input"
            raise Refused(f"{message}: it would stand in a command line", hint=_HAND_ON)

    @property
    def _shells(self) -> Lanes:
        if self._lanes is None or self._connection is None or self._connection.is_closed():
            raise ConnectionLost(f"there is no connection to {self._target}")
        return self._lanes

    def _as_root(self, command: Command) -> bool:
        """Whether the shell is root's; where there is one, only that sees the lock."""
        other = command.user not in (None, self._user)
        return command.sudo or other or (command.changes and self._wants_root)

    def is_own(self, command: Command) -> bool:
        """Whether it runs as the user whose shell runs it, and so as a part of that."""
        wanted = command.user or ("root" if command.sudo else self._user)
        return wanted == ("root" if self._as_root(command) else self._user)

    def _looked_at(self, command: Command) -> str:
        """The request for one that only looks."""
        if command.stdin or not fusing.only_reads(command):
            return frames.plain(self._work(command))
        is_stat = command.argv[0] == STAT[0]
        look = self._inner(command) if is_stat else self._work(command)
        if self.is_own(command) and (path := fusing.place_of(command)) is not None:
            look = frames.if_there(path, look)
        return frames.seen(look) if is_stat else frames.quiet(look)

    def _work(self, command: Command) -> str:
        """What the shell does to run it, with its input."""
        if command.stdin or (isinstance(command, Script) and self.is_own(command)):
            return frames.body(self._inner(command), command.stdin)
        return frames.work_of(self._argv(command), command.env, command.cwd)

    def _inner(self, command: Command) -> str:
        """What the subshell is told that runs it."""
        if isinstance(command, Script) and self.is_own(command):
            return frames.inside(command.text, command.words, command.env, command.cwd)
        return frames.alone(self._argv(command), command.env, command.cwd)

    def _argv(self, command: Command) -> tuple[str, ...]:
        """Its argument list, for the shell that runs it."""
        if self.is_own(command):
            return command.argv
        user = command.user or self._user
        if self._target.become.way == "su":
            return ("runuser", "-u", user, "--", *command.argv)
        keep = (f"--preserve-env={','.join(command.env)}",) if command.env else ()
        return ("sudo", "-n", "-H", "-u", user, *keep, "--", *command.argv)

    def _keeping(self, command: Command, size: int) -> str:
        """The same for one that begins when so much input is there.

        What stands between us and a command of somebody else, as sudo does, may read ahead.
        """
        words = (str(size), *self._argv(command))
        return frames.inside(KEEP, words, command.env, command.cwd)

    async def _run(self, shell: Lane, command: Command, sink: LineSink | None) -> Completed:
        if command.argv == BOOT and shell.group:
            return Completed(0, f"{shell.group[-1].partition(' ')[0]}\n".encode())
        self._require_no_secret(shell, command)
        tell = self._kept if len(command.stdin) > INLINE else self._told
        return await self._obeyed(
            shell, command, lambda asks: tell(shell, command, sink, asks=asks)
        )

    async def _obeyed(
        self, shell: Lane, command: Command, tell: Callable[[bool], Awaitable[Completed]]
    ) -> Completed:
        """What comes of a command if the host obeys us; `tell` has to ask whether it does."""
        if self._lock is None or not command.changes:
            return await tell(False)
        await self._lock.ready(shell)
        try:
            return await tell(True)
        except NotObeyed:
            raise await self._lock.refusal(shell) from None

    async def _told(
        self, shell: Lane, command: Command, sink: LineSink | None, *, asks: bool
    ) -> Completed:
        if asks:
            request = frames.change(self._work(command), awaited=_awaited(command))
        else:
            request = self._looked_at(command)
        (answer,) = await shell.ask((request,), sink, self._output_limit)
        return answer

    async def _kept(
        self, shell: Lane, command: Command, sink: LineSink | None, *, asks: bool
    ) -> Completed:
        """A command with much input."""
        inner = self._keeping(command, len(command.stdin))
        return await self._handed(shell, inner, _pieces(command.stdin), sink, asks=asks)

    async def _handed(
        self,
        shell: Lane,
        inner: str,
        data: AsyncIterable[bytes],
        sink: LineSink | None,
        *,
        asks: bool,
    ) -> Completed:
        request = frames.handed(inner, asks=asks)
        return await shell.hand(request, data, sink, self._output_limit)


def _awaited(command: Command) -> str | None:
    return PurePath(command.argv[0]).name if command.uninterruptible else None


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
