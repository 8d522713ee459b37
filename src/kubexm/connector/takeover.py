"""What earlier holders of a host left running there: ended, or awaited, before any change.

Only a group whose first process is the recorded one is ever signalled: same boot, same pid, same
start time. Where that one is gone but others of its session are left, the number could be in new
hands, so they are only waited for; usually the watch of the kubexm that died is about to end them.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from kubexm import logger
from kubexm.common.processes import Seen
from kubexm.connector.groups import Group
from kubexm.errors import TimedOut

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5


class Patience(msgspec.Struct, frozen=True):
    """How long, in seconds, to wait for what an earlier holder runs."""

    grace: float = 5.0
    """For a command to end when it is told to; after that it is killed."""
    awaited: float = 600.0
    """For a command that must not be interrupted."""


class Machine(Protocol):
    """Where the groups are."""

    async def boot(self) -> str:
        """While and where a pid means something."""

    async def everyone(self) -> Sequence[Seen]:
        """Every process that can be seen."""

    def hides(self, group: Group) -> bool:
        """Whether there is a group of which we may not see a single process."""

    async def signal(self, groups: Collection[Group], number: signal.Signals) -> None:
        """Signal groups; whom we may not signal is there afterwards, and is named."""


async def settle(groups: Sequence[Group], patience: Patience, machine: Machine) -> None:
    """Return when none of these runs any more; `TimedOut` with those that do."""
    if groups:
        await _Takeover(machine).settle(groups, patience)


class _Takeover:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def settle(self, groups: Sequence[Group], patience: Patience) -> None:
        boot = await self._machine.boot()
        found = await self._remaining([group for group in groups if group.boot == boot])
        if not found:
            return
        logger.get().warning("an earlier run left commands", commands=", ".join(map(str, found)))
        _require_none(await self._ended([one for one in found if not one.awaited], patience.grace))
        _require_none(await self._gone([one for one in found if one.awaited], patience.awaited))

    async def _ended(self, groups: Sequence[Group], grace: float) -> list[Group]:
        """End groups; those that are there all the same."""
        first = {(one.pid, one.started) for one in await self._machine.everyone()}
        certain = {group for group in groups if (group.pid, group.started) in first}
        await self._machine.signal(certain, signal.SIGTERM)
        rest = await self._gone(groups, grace)
        # Some process of the group has been there all the while, so the number is still its own.
        await self._machine.signal(certain.intersection(rest), signal.SIGKILL)
        return await self._gone(rest, grace)

    async def _gone(self, groups: Sequence[Group], seconds: float) -> list[Group]:
        """Wait until all are gone; those that are not in time."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + seconds, _FIRST_PAUSE
        while (groups := await self._remaining(groups)) and (left := until - loop.time()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return list(groups)

    async def _remaining(self, groups: Sequence[Group]) -> list[Group]:
        if not groups:
            return []
        everyone = await self._machine.everyone()
        return [group for group in groups if self._lives(group, everyone)]

    def _lives(self, group: Group, everyone: Sequence[Seen]) -> bool:
        first = next((one for one in everyone if one.pid == group.pid), None)
        if first is not None and first.started != group.started:
            return False  # the pid is in new hands
        members = [one for one in everyone if one.group == group.pid]
        if not members:
            return self._machine.hides(group)
        # Those that are over may stay for long: a parent that is frozen does not ask how they
        # ended.
        return any(one.session == group.pid and not one.is_over for one in members)


def _require_none(groups: Sequence[Group]) -> None:
    if groups:
        raise TimedOut(
            f"waited in vain for what an earlier run does here: {', '.join(map(str, groups))}",
            hint="wait until it has ended, or end it yourself; then go on with this run",
        )
