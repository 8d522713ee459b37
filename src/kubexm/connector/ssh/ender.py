"""Commands that are ended before their time, with their whole process groups."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

import asyncssh

from kubexm.connector.ssh import frames
from kubexm.connector.ssh.lane import Lane
from kubexm.errors import ConnectionLost, KubexmError

# The groups after $1 have that many twentieths of a second to go by themselves.
_END = """
left=$1; shift
for one; do kill -s TERM -- "-$one"; done
while [ "$left" -gt 0 ]; do
  there=
  for one; do kill -s 0 -- "-$one" && there=yes; done
  [ -n "$there" ] || exit 0
  sleep 0.05
  left=$((left - 1))
done
for one; do kill -s KILL -- "-$one"; done
"""
_KILL_SECONDS = 1.0


class Starter(Protocol):
    """Where shells come from."""

    async def start(self, root: bool) -> Lane: ...

    def give_up(self) -> None: ...


class Ender:
    """Ends shells of one user; all that come meanwhile are ended together, over one session."""

    def __init__(self, lanes: Starter, root: bool, grace: float) -> None:
        self._lanes = lanes
        self._root = root
        self._steps = str(round(grace * 20))
        self._waiting: list[Lane] = []
        self._task: asyncio.Task[None] | None = None

    async def end(self, shell: Lane) -> None:
        """End a shell and what it runs; if whoever asks is cancelled once more, it is ended too."""
        self._waiting.append(shell)
        while shell in self._waiting or not shell.is_over:
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._work())
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Return when all is ended."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def _work(self) -> None:
        try:
            shell = await self._lanes.start(self._root)
            while self._waiting:
                await self._end_all(shell)
            shell.close()
        except (asyncssh.ChannelOpenError, KubexmError):
            await self._kill_all()

    async def _kill_all(self) -> None:
        """No session is left to end them by, or nothing at all.

        sshd itself kills what the user runs that logged in; the rest is for the next connection.
        """
        killed, self._waiting = self._waiting, []
        for one in killed:
            one.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                await asyncio.gather(*(one.gone() for one in killed))
        self._lanes.give_up()

    async def _end_all(self, shell: Lane) -> None:
        ended = tuple(self._waiting)
        found = await asyncio.gather(*(_located(one) for one in ended))
        groups = (group for group in found if group is not None)
        await shell.ask((frames.request(("sh", "-c", _END, "sh", self._steps, *groups)),))
        del self._waiting[: len(ended)]
        for one in ended:
            one.close()
            await one.gone()


async def _located(lane: Lane) -> str | None:
    try:
        async with asyncio.timeout(_KILL_SECONDS):
            return await lane.located()
    except TimeoutError:
        raise ConnectionLost("a command was sent, and nobody can tell whether it runs") from None
