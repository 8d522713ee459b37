"""A file of a host on its way to this machine: in pieces, resumed, checked, put in place whole.

What has arrived lies beside the target until it is whole, as with a file that is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

import msgspec

from kubexm.connector.base import (
    C_LOCALE,
    Command,
    Completed,
    Progress,
    is_missing,
    read_content,
    reading,
    script,
)
from kubexm.connector.scripts import SEEN
from kubexm.connector.source import part_beside
from kubexm.errors import StepFailed

PIECE = 4 << 20
"""Bytes that are asked for at once: two such pieces are under way."""


class Seen(msgspec.Struct, frozen=True):
    """A file of a host, and the digest of its beginning, if that was asked for."""

    mode: int
    size: int
    digest: str
    beginning: str = ""


class Remote(Protocol):
    """How a file of a host is read."""

    async def seen(self, path: str, beginning: int) -> Seen:
        """What is there, with the digest of so many bytes at its beginning."""

    async def piece(self, path: str, number: int) -> bytes:
        """A piece of it; `PIECE` bytes unless it is the last."""


class ByCommands:
    """A file that is read by commands on its host."""

    def __init__(self, run: Callable[[Command], Awaitable[Completed]], *, sudo: bool) -> None:
        """`run` keeps all of the output."""
        self._run = run
        self._sudo = sudo

    async def seen(self, path: str, beginning: int) -> Seen:
        look = script(SEEN, path, str(beginning), env=C_LOCALE, sudo=self._sudo, changes=False)
        answer = await self._run(look)
        if is_missing(answer):
            raise FileNotFoundError(path)
        if not answer.ok:
            raise StepFailed(f"can't read `{path}`: {answer.error_text}")
        about, *digests = answer.text.splitlines()
        mode, size = about.split()
        return Seen(int(mode, 8), int(size), *(line.partition(" ")[0] for line in digests))

    async def piece(self, path: str, number: int) -> bytes:
        argv = reading(path, PIECE, start=number, count=1)
        look = Command(argv, env=C_LOCALE, sudo=self._sudo, changes=False)
        return read_content(await self._run(look), path)


async def download(remote: Remote, path: str, to: Path, progress: Progress | None = None) -> bool:
    """Bring a file here; False if it was here already."""
    part = Path(part_beside(str(to)))
    # Only whole pieces are gone on with: what is left of another may be half written.
    whole = await asyncio.to_thread(_size, part) // PIECE
    seen = await remote.seen(path, whole * PIECE)
    if await asyncio.to_thread(_digest, to, seen.size) == seen.digest:
        return False
    start = whole if await asyncio.to_thread(_begins, part, whole * PIECE, seen) else 0
    try:
        await _received(remote, path, part, seen, start, progress)
        await asyncio.to_thread(_placed, part, to, seen)
    except OSError as error:
        raise StepFailed(f"can't write `{to}` on this machine: {error.strerror}") from error
    return True


async def _received(
    remote: Remote, path: str, part: Path, seen: Seen, start: int, progress: Progress | None
) -> None:
    """Write the pieces from one on to the part, and check all of it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = await asyncio.to_thread(os.open, part, flags, 0o600)
    try:
        os.ftruncate(descriptor, start * PIECE)
        done = start * PIECE
        async with aclosing(_pieces(remote, path, seen.size, start)) as pieces:
            async for piece in pieces:
                await asyncio.to_thread(os.pwrite, descriptor, piece, done)
                done += len(piece)
                if progress is not None:
                    progress(done, seen.size)
        await asyncio.to_thread(os.fsync, descriptor)
    finally:
        os.close(descriptor)
    if await asyncio.to_thread(_digest, part, seen.size) != seen.digest:
        await asyncio.to_thread(part.unlink)
        raise StepFailed(
            f"`{path}` has changed while it was fetched", hint="fetch it when nobody writes to it"
        )


async def _pieces(remote: Remote, path: str, size: int, start: int) -> AsyncGenerator[bytes]:
    """The pieces of a file in order, one being asked for while another is taken."""
    ahead: asyncio.Task[bytes] | None = None
    try:
        for number in range(start, -(-size // PIECE)):
            due = ahead or asyncio.ensure_future(remote.piece(path, number))
            ahead = None
            if (number + 1) * PIECE < size:
                ahead = asyncio.ensure_future(remote.piece(path, number + 1))
            yield await due
    finally:
        if ahead is not None:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)


def _placed(part: Path, to: Path, seen: Seen) -> None:
    # What not everyone on the host may read is not for everyone here.
    part.chmod(0o644 if seen.mode & 0o004 else 0o600)
    part.replace(to)


def _size(path: Path) -> int:
    try:
        return 0 if path.is_symlink() else path.stat().st_size
    except OSError:
        return 0


def _digest(path: Path, size: int) -> str:
    """The sha256 of a file that has this size; nothing if there is none."""
    if not path.is_file() or _size(path) != size:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _begins(path: Path, size: int, seen: Seen) -> bool:
    """Whether so many bytes of what was seen are at the beginning of a file."""
    if not seen.beginning:
        return False
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for _ in range(size // PIECE):
            digest.update(file.read(PIECE))
    return digest.hexdigest() == seen.beginning
