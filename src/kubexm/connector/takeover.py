"""What earlier holders of a host left running there: ended, or awaited, before any change.

Only a group whose first process is the recorded one is ever signalled: same boot, same pid, same
start time. Where that one is gone but others of its session are left, the number could be in new
hands, so they are only waited for; usually the watch of the kubexm that died is about to end them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kubexm import logger
from kubexm.common import processes
from kubexm.connector.groups import Group
from kubexm.errors import TimedOut

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5


@dataclass(frozen=True, slots=True)
class Patience:
    """How long, in seconds, to wait for what an earlier holder runs."""

    grace: float = 5.0
    """For a command to end when it is told to; after that it is killed."""
    awaited: float = 600.0
    """For a command that must not be interrupted."""


async def settle(groups: Sequence[Group], patience: Patience) -> None:
    """Return when none of these runs any more; `TimedOut` with those that do."""
    here = [group for group in groups if group.boot == processes.boot()]
    found = _remaining(here)
    if not found:
        return
    logger.get().warning("an earlier run left commands", commands=", ".join(map(str, found)))
    _require_none(await _ended([one for one in found if not one.awaited], patience.grace))
    _require_none(await _gone([one for one in found if one.awaited], patience.awaited))


async def _ended(groups: Sequence[Group], grace: float) -> list[Group]:
    """End groups; those that are there all the same."""
    certain = {group for group in groups if _is_certain(group)}
    _signal(certain, signal.SIGTERM)
    rest = await _gone(groups, grace)
    # Some process of the group has been there all the while, so the number is still its own.
    _signal(certain.intersection(rest), signal.SIGKILL)
    return await _gone(rest, grace)


async def _gone(groups: Sequence[Group], seconds: float) -> list[Group]:
    """Wait until all are gone; those that are not in time."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + seconds, _FIRST_PAUSE
    while (groups := _remaining(groups)) and (left := until - loop.time()) > 0:
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)
    return list(groups)


def _remaining(groups: Sequence[Group]) -> list[Group]:
    if not groups:
        return []
    everyone = tuple(processes.everyone())
    return [group for group in groups if _lives(group, everyone)]


def _lives(group: Group, everyone: Sequence[processes.Seen]) -> bool:
    first = next((one for one in everyone if one.pid == group.pid), None)
    if first is not None and first.started != group.started:
        return False  # the pid is in new hands
    members = [one for one in everyone if one.group == group.pid]
    if not members:
        return _is_hidden(group)
    # Those that are over may stay for long: a parent that is frozen does not ask how they ended.
    return any(one.session == group.pid and not one.is_over for one in members)


def _is_hidden(group: Group) -> bool:
    """Whether there is one that this user may not even see."""
    try:
        os.killpg(group.pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        pass
    return False


def _is_certain(group: Group) -> bool:
    first = processes.look(group.pid)
    return first is not None and first.started == group.started


def _signal(groups: Iterable[Group], number: signal.Signals) -> None:
    for group in groups:
        if group.sudo and os.geteuid():
            _signal_through_sudo(group, number)
            continue
        # Whom we may not signal is there afterwards, and is named.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group.pid, number)


def _signal_through_sudo(group: Group, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    kill = ("sudo", "-n", "kill", "-s", name, "--", f"-{group.pid}")
    with suppress(FileNotFoundError):
        subprocess.run(kill, check=False, capture_output=True)


def _require_none(groups: Sequence[Group]) -> None:
    if groups:
        raise TimedOut(
            f"waited in vain for what an earlier run does here: {', '.join(map(str, groups))}",
            hint="wait until it has ended, or end it yourself; then go on with this run",
        )
