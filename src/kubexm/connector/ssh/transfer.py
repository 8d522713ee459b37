"""Files that go to a host or come from it in a stream: resumed, checked, put in place whole.

What has arrived lies beside the target until it is whole, under a name that is always the same: a
transfer that was cut off goes on from there, also after kubexm was killed.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from pathlib import PurePosixPath
from typing import Protocol

from kubexm.connector.base import C_LOCALE, Command, Completed
from kubexm.connector.source import Source
from kubexm.errors import StepFailed

_NONE = "none"
Progress = Callable[[int, int], None]
"""Takes the bytes so far, and all of them."""

# Of the target $1 the digest, or `none`; of the part $2 size and digest, or nothing.
_LOOK = """
if [ -f "$1" ] && [ ! -L "$1" ]; then sha256sum <"$1"; else echo none; fi
if [ -f "$2" ] && [ ! -L "$2" ]; then stat -c %s -- "$2" && sha256sum <"$2"; fi
"""
# Appends input to the part $1, or makes it anew; prints the digest of all of it.
_TAKE = {
    True: '{ cat -- "$1" && exec tee -a -- "$1"; } | sha256sum',
    False: 'rm -f -- "$1" && umask 077 && tee -- "$1" | sha256sum',
}
# The part $2, which has the size $3, becomes $1; empty $4, $5, $6 leave mode, owner, group alone.
_PLACE = """
size=$(stat -c %s -- "$2") || exit 1
if [ "$size" != "$3" ]; then echo "$size bytes of $3" >&2; exit 1; fi
if [ -f "$1" ] && [ ! -L "$1" ]; then
  chown --reference="$1" -- "$2" && chmod --reference="$1" -- "$2" || exit 1
else
  chmod 0644 -- "$2" || exit 1
fi
{ [ -z "$5" ] || chown -- "$5" "$2"; } && { [ -z "$6" ] || chgrp -- "$6" "$2"; } &&
{ [ -z "$4" ] || chmod -- "$4" "$2"; } && sync -- "$2" && mv -fT -- "$2" "$1"
"""


class Runs(Protocol):
    """Who runs commands on the host."""

    async def exec(self, command: Command) -> Completed: ...

    async def feed(self, command: Command, data: AsyncIterable[bytes]) -> Completed: ...


class Upload:
    """One file on its way to one host."""

    def __init__(
        self, host: Runs, source: Source, path: str, *, sudo: bool, progress: Progress | None
    ) -> None:
        self._host = host
        self._source = source
        self._path = path
        place = PurePosixPath(path)
        self._part = str(place.with_name(f".{place.name}.kubexm-part"))
        self._sudo = sudo
        self._progress = progress or (lambda done, total: None)

    async def run(self, mode: str, owner: str, group: str) -> bool:
        """Bring the file there; False if it was there already."""
        there, start = await self._found()
        if there != _NONE and there == await self._source.digest():
            return False
        await self._send(start)
        wanted = (self._path, self._part, str(self._source.size), mode, owner, group)
        self._require(await self._host.exec(self._command(_PLACE, *wanted)))
        return True

    async def _found(self) -> tuple[str, int]:
        """The digest of what is there, and from where on the rest has to be sent."""
        command = self._command(_LOOK, self._path, self._part, changes=False)
        answer = await self._host.exec(command)
        whole, *part = answer.text.splitlines()
        there = whole.partition(" ")[0]
        if len(part) < 2 or int(part[0]) > self._source.size:
            return there, 0
        size = int(part[0])
        same = part[1].partition(" ")[0] == await self._source.digest(size)
        return there, size if same else 0

    async def _send(self, start: int) -> None:
        command = self._command(_TAKE[start > 0], self._part)
        # The host reckons while it writes, and so do we: it takes no time of its own.
        done = await self._host.feed(command, self._counted(start))
        self._require(done)
        found, wanted = done.text.partition(" ")[0], await self._source.digest()
        if found != wanted and not done.stderr:
            await self._host.exec(self._command('rm -f -- "$1"', self._part))
            raise StepFailed(
                f"`{self._path}` did not arrive as it was sent: sha256 {found}, want {wanted}",
                hint="try again; if it happens once more, look at the disk of the host",
            )
        if done.stderr:
            raise StepFailed(f"can't write `{self._path}`: {done.error_text}")

    async def _counted(self, start: int) -> AsyncIterator[bytes]:
        done = start
        async for piece in self._source.pieces(start):
            yield piece
            done += len(piece)
            self._progress(done, self._source.size)

    def _command(self, script: str, *words: str, changes: bool = True) -> Command:
        argv = ("sh", "-c", script, "sh", *words)
        return Command(argv, env=C_LOCALE, sudo=self._sudo, changes=changes)

    def _require(self, done: Completed) -> None:
        if not done.ok:
            raise StepFailed(f"can't write `{self._path}`: {done.error_text}")
