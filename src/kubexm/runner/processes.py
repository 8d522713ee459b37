"""Processes of a host: which run, and how one is ended."""

from __future__ import annotations

import asyncio
import re

from kubexm.connector.base import C_LOCALE, is_missing
from kubexm.errors import StepFailed
from kubexm.runner import files
from kubexm.runner.host import Command, Completed, Host

_LONGEST_NAME = 15
"""The kernel keeps no more letters of a name."""
_GONE = frozenset("ZX")
_LOOK_AGAIN = 0.2


def named_command(host: Host, name: str) -> Command:
    """Ask for processes of this name; `pids_of` reads the answer."""
    pattern = re.escape(name[:_LONGEST_NAME])
    return host.command("pgrep", "-x", "--", pattern, sudo=False, env=C_LOCALE)


def pids_of(answer: Completed) -> tuple[int, ...]:
    """The numbers of the processes."""
    if answer.exit != 1:
        Host.checked(("pgrep",), answer)
    return tuple(int(line) for line in answer.text.split())


def process_command(host: Host, pid: int) -> Command:
    """Ask for a process; `runs` reads the answer."""
    return host.command("cat", f"/proc/{pid}/stat", sudo=False, env=C_LOCALE)


def runs(answer: Completed) -> bool:
    """Whether a process runs: one that has ended and waits for its parent does not."""
    state = answer.text.rpartition(")")[2].split()
    return answer.ok and bool(state) and state[0] not in _GONE


async def named(host: Host, name: str) -> tuple[int, ...]:
    """The numbers of all processes of a name; of a long one the first letters count."""
    (answer,) = await host.batch((named_command(host, name),))
    return pids_of(answer)


async def is_running(host: Host, pid: int) -> bool:
    """Whether a process of this number runs."""
    (answer,) = await host.batch((process_command(host, pid),))
    return runs(answer)


async def of_file(host: Host, path: str, *, sudo: bool | None = None) -> int | None:
    """The process that a file names, if it runs; None if it does not, or there is no file."""
    (answer,) = await host.batch((files.content_command(host, path, 32, sudo=sudo),))
    told = files.content(answer, path).decode(errors="replace").strip()
    if is_missing(answer) or not told.isdecimal():
        return None
    return int(told) if await is_running(host, int(told)) else None


async def end(host: Host, pid: int, *, seconds: float = 10.0, sudo: bool | None = None) -> None:
    """Have a process end: it is asked first, and killed if it has not ended in this time."""
    if pid < 2:
        raise StepFailed(
            f"`{pid}` is no process that may be ended", hint="give the number of one process"
        )
    for signal, patience in (("TERM", seconds), ("KILL", seconds)):
        if not await is_running(host, pid):
            return
        await _send(host, signal, pid, sudo)
        if await _ended(host, pid, patience):
            return
    raise StepFailed(
        f"process {pid} was killed and is still there after {seconds:g} s",
        hint="it waits for a disk or a mount that does not answer: see `dmesg` on the host",
    )


async def _send(host: Host, signal: str, pid: int, sudo: bool | None) -> None:
    argv = ("kill", "-s", signal, "--", str(pid))
    done = await host.execute(host.command(*argv, sudo=sudo, env=C_LOCALE))
    if not done.ok and await is_running(host, pid):  # else it has ended by itself
        Host.checked(argv, done)


async def _ended(host: Host, pid: int, seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while await is_running(host, pid):
        if loop.time() >= deadline:
            return False
        await asyncio.sleep(_LOOK_AGAIN)
    return True
