"""A file of the control machine that goes to hosts: opened once for all, read as it is sent."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from typing import IO

from kubexm.common.digests import Digests, signature
from kubexm.connector.athand import AtHand
from kubexm.errors import KubexmError, StepFailed

PIECE = 64 << 10
"""Bytes that are written at once: what is encrypted soon after it was read is still near."""
STRETCH = 1 << 20
"""Bytes that are read at once off the loop; after as many on it, others are served."""
_LEAVE = "leave it alone until the run is over"


class Source:
    """One file; whoever sends it to many hosts shares one of these.

    It is read, not mapped: a mapped file that somebody cuts off ends the whole process.
    """

    def __init__(
        self, path: Path, digest: str | None = None, digests: Digests | None = None
    ) -> None:
        """`digest`: the sha256 that it has to have; `digests`: those that are known already."""
        self.descriptor = _opened(path)
        self._signature = signature(os.fstat(self.descriptor))
        self.size = os.fstat(self.descriptor).st_size
        self.path = path
        self._wanted = digest
        self._known = digests or Digests()
        self._digests: dict[int, asyncio.Task[str]] = {}
        self._content: asyncio.Task[bytes] | None = None
        self._readers = 0

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.descriptor)

    async def digest(self, size: int | None = None) -> str:
        """The sha256 of the file, or of its beginning; each is computed once, off the loop."""
        if size is None and self._wanted is not None:
            return self._wanted
        return await self._hashed(self.size if size is None else size)

    @asynccontextmanager
    async def content(self) -> AsyncIterator[bytes]:
        """All of a file that is not large, read once for all who use it at the same time."""
        self._readers += 1
        if self._content is None:
            self._content = asyncio.ensure_future(asyncio.to_thread(self._all))
        try:
            yield await asyncio.shield(self._content)
        finally:
            self._readers -= 1
            if not self._readers:
                self._content = None

    async def pieces(self, start: int = 0) -> AsyncIterator[bytes]:
        """The content from an offset on; raises at its end if the file is not as wanted."""
        whole = asyncio.ensure_future(self._hashed(self.size))
        try:
            for place in range(start, self.size, STRETCH):
                if whole.done():
                    self._require_wanted(whole.result())
                async for piece in self._stretch(place, min(place + STRETCH, self.size)):
                    yield piece
            found = await whole
            self._require_wanted(found)
        finally:
            whole.cancel()
        if signature(os.fstat(self.descriptor)) != self._signature:
            await self._require_same(found)

    async def _stretch(self, place: int, end: int) -> AsyncIterator[bytes]:
        """A part of it, off the loop unless it is at hand: to go there and back takes long."""
        while place < end and (piece := self._at_hand.read(place, min(PIECE, end - place))):
            yield piece
            place += len(piece)
        for piece in await asyncio.to_thread(self._several, place, end) if place < end else ():
            yield piece
        await asyncio.sleep(0)

    @cached_property
    def _at_hand(self) -> AtHand:
        return AtHand(self.descriptor, PIECE)

    def all_pieces(self) -> Iterator[bytes]:
        """The content for whoever is off the loop; raises at its end if it is not as wanted."""
        digest = hashlib.sha256()
        for place in range(0, self.size, PIECE):
            piece = self._read(place)
            digest.update(piece)
            yield piece
        self._require_wanted(digest.hexdigest())

    async def refusal(self, path: str, arrived: str) -> KubexmError:
        """Why the file has another digest at a path of a host than it has to have."""
        found = await self._hashed(self.size)
        if self._wanted not in (None, found):
            return self._changed(found)
        return StepFailed(
            f"`{path}` did not arrive as it was sent: sha256 {arrived}, want {found}",
            hint="try again; if it happens once more, look at the disk of the host",
        )

    async def _hashed(self, size: int) -> str:
        if (task := self._digests.get(size)) is None:
            task = asyncio.ensure_future(asyncio.to_thread(self._hash, size))
            self._digests[size] = task
        return await asyncio.shield(task)

    async def _require_same(self, before: str) -> None:
        """It was touched; what is in it may be the same as before."""
        if await asyncio.to_thread(self._known.of, self.descriptor) != before:
            raise StepFailed(f"`{self.path}` was changed while it was sent", hint=_LEAVE)

    def _require_wanted(self, found: str) -> None:
        if self._wanted not in (None, found):
            raise self._changed(found)

    def _hash(self, size: int) -> str:
        if size == self.size:
            return self._known.of(self.descriptor)
        digest = hashlib.sha256()
        for place in range(0, size, PIECE):
            digest.update(self._read(place, min(PIECE, size - place)))
        return digest.hexdigest()

    def _all(self) -> bytes:
        return b"".join(self.all_pieces())

    def _several(self, place: int, end: int) -> list[bytes]:
        return [self._read(start, min(PIECE, end - start)) for start in range(place, end, PIECE)]

    def _read(self, place: int, count: int = PIECE) -> bytes:
        count = min(count, self.size - place)
        data = os.pread(self.descriptor, count, place)
        if len(data) < count:
            raise StepFailed(
                f"`{self.path}` became shorter while it was read",
                hint=_LEAVE,
            )
        return data

    def _changed(self, found: str) -> KubexmError:
        return StepFailed(
            f"`{self.path}` has changed since it was planned: sha256 {found}, want {self._wanted}",
            hint="run the pipeline anew, or bring the file back and resume",
        )


class Sources:
    """The files that the hosts of a run share, each opened once and closed with the run."""

    def __init__(self, digests: Digests | None = None) -> None:
        self._digests = digests or Digests()
        self._open: dict[tuple[Path, str | None], Source] = {}
        self._made: dict[object, asyncio.Task[Source]] = {}

    def of(self, path: Path, digest: str | None = None) -> Source:
        """The file at a path, which has to have this digest."""
        if (source := self._open.get((path, digest))) is None:
            source = self._open[path, digest] = Source(path, digest, self._digests)
        return source

    async def made(self, key: object, make: Callable[[IO[bytes]], None]) -> Source:
        """A file that is made, off the loop, for all who ask by the same key."""
        if (task := self._made.get(key)) is None:
            task = self._made[key] = asyncio.ensure_future(asyncio.to_thread(_made, make))
        try:
            return await asyncio.shield(task)
        except Exception:
            self._made.pop(key, None)  # the next attempt makes it anew
            raise

    def close(self) -> None:
        """Let go of all files."""
        for task in self._made.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().close()
        while self._open:
            self._open.popitem()[1].close()


def part_beside(path: str) -> str:
    """Where what has arrived of a file lies until it is whole: always the same name."""
    directory, _, name = path.rpartition("/")
    return f"{directory}/.{name}.kubexm-part"


def _made(make: Callable[[IO[bytes]], None]) -> Source:
    from tempfile import NamedTemporaryFile  # noqa: PLC0415 it takes long to load, for this alone

    with NamedTemporaryFile(prefix="kubexm-") as file:
        make(file.file)
        file.flush()
        source = Source(Path(file.name))
    # It is gone from its directory, and from the disk when it is closed, however we end.
    source.path = Path(f"/proc/{os.getpid()}/fd/{source.descriptor}")
    return source


def _opened(path: Path) -> int:
    try:
        # A pipe would keep us waiting for whoever writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise StepFailed(f"can't read `{path}`: {error.strerror}") from error
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StepFailed(f"`{path}` is no file", hint="name a plain file of this machine")
    return descriptor
