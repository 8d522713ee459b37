"""A file of the control machine that goes to hosts: mapped into memory and hashed once for all."""

from __future__ import annotations

import asyncio
import hashlib
import mmap
import os
from collections.abc import AsyncIterator
from pathlib import Path

from kubexm.errors import StepFailed

PIECE = 128 << 10
"""Bytes that are written at once: larger ones keep the loop from serving others."""


class Source:
    """One file; whoever sends it to many hosts shares one of these."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                # An empty file can't be mapped.
                self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) if self.size else None
        except OSError as error:
            raise StepFailed(f"can't read `{path}`: {error.strerror}") from error
        self.path = path
        self._digests: dict[int, asyncio.Task[str]] = {}

    def close(self) -> None:
        """Unmap the file."""
        if self._map is not None:
            self._map.close()

    async def digest(self, size: int | None = None) -> str:
        """The sha256 of the file, or of its beginning; each is computed once, off the loop."""
        size = self.size if size is None else size
        if (task := self._digests.get(size)) is None:
            task = asyncio.ensure_future(asyncio.to_thread(self._hash, size))
            self._digests[size] = task
        return await asyncio.shield(task)

    async def pieces(self, start: int = 0) -> AsyncIterator[bytes]:
        """The content from an offset on."""
        for place in range(start, self.size, PIECE):
            assert self._map is not None, "there is nothing in an empty file"
            yield self._map[place : place + PIECE]

    def _hash(self, size: int) -> str:
        if self._map is None:
            return hashlib.sha256().hexdigest()
        with memoryview(self._map) as whole, whole[:size] as part:
            return hashlib.sha256(part).hexdigest()
