"""A file on its way to a host in a stream: resumed, checked, put in place whole.

What has arrived lies beside the target until it is whole, under a name that is always the same: a
transfer that was cut off goes on from there, also after kubexm was killed.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol

from kubexm.connector.base import C_LOCALE, Command, Completed, Progress, script
from kubexm.connector.scripts import ARRIVED, DIFFERS, HANDED, TAKE, reason
from kubexm.connector.source import Source, part_beside
from kubexm.errors import StepFailed

SMALL = 1 << 20
"""Files up to this size are sent without a look: whoever sends one has looked, or can afford it."""


class Runs(Protocol):
    """Who runs commands on the host."""

    async def exec(self, command: Command) -> Completed: ...

    async def hand(self, command: Command, data: AsyncIterable[bytes], size: int) -> Completed: ...

    def is_own(self, command: Command) -> bool: ...


class Upload:
    """One file on its way to one host: a look, and a stream that ends with the file in place."""

    def __init__(
        self, host: Runs, source: Source, path: str, *, sudo: bool, progress: Progress | None
    ) -> None:
        self._host = host
        self._source = source
        self._path = path
        self._part = part_beside(path)
        self._sudo = sudo
        self._progress = progress or (lambda done, total: None)

    async def run(self, looks: tuple[str, str, str]) -> bool:
        """Bring the file there, with this mode, owner and group; False if it was there already."""
        wanted = await self._source.digest()
        is_there, start = await self._found(wanted)
        if not is_there:
            size = self._source.size
            check = HANDED if self._host.is_own(self._command(TAKE)) else wanted
            words = (self._path, self._part, str(size), check, *looks, str(start))
            command = self._command(TAKE, *words)
            done = await self._host.hand(command, self._counted(start), size - start)
            await self._require(done)
        return not is_there

    async def _require(self, done: Completed) -> None:
        """See that it is in its place."""
        if done.exit == DIFFERS:
            raise await self._source.refusal(self._path, done.text)
        if not done.ok:
            raise StepFailed(f"can't write `{self._path}`: {reason(done.error_text)}")

    async def _found(self, wanted: str) -> tuple[bool, int]:
        """Whether the file is there, and if not, from where on the rest has to be sent."""
        size = self._source.size
        command = self._command(ARRIVED, self._path, self._part, str(size), changes=False)
        answer = await self._host.exec(command)
        if not answer.ok:
            raise StepFailed(f"can't look at `{self._path}`: {answer.error_text}")
        there, part = (line.split() for line in answer.text.splitlines())
        if there[1:2] == [wanted]:
            return True, 0
        arrived = int(part[0]) if len(part) > 1 else 0
        is_ours = arrived and part[1] == await self._source.digest(arrived)
        return False, arrived if is_ours else 0

    async def _counted(self, start: int) -> AsyncIterator[bytes]:
        done = start
        async for piece in self._source.pieces(start):
            yield piece
            done += len(piece)
            self._progress(done, self._source.size)

    def _command(self, text: str, *words: str, changes: bool = True) -> Command:
        return script(text, *words, env=C_LOCALE, sudo=self._sudo, changes=changes)
