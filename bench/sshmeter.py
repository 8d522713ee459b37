"""What a command costs this machine: all its processes together, also those that stay behind.

A command is run in control groups of its own, which count its CPU exactly and are emptied after
it. What runs on the hosts is not in them.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import sshbed  # noqa: F401 - finds the lab

from lab import cgroups
from lab.cgroups import Groups

SECONDS = 900.0
_PEAKS = ("memory.peak", "memory.max_usage_in_bytes")


@dataclass(frozen=True, slots=True)
class Figures:
    """One run of a command."""

    wall: float
    cpu: float
    """Seconds, of all its processes."""
    peak: float | None
    """MiB that all its processes had together, if this machine counts them."""
    rss: float
    """MiB of its largest process."""
    printed: str


class RunFailed(RuntimeError):
    """A command that was to be measured did not do its work."""


def measure(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Figures:
    """Run a command to its end; `RunFailed` unless it succeeds."""
    with _groups() as groups, TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        with out.open("wb") as stdout:
            began = perf_counter()
            process = _start(command, env, cwd, groups, stdout.fileno())
            code, rss = _ended(process)
            wall = perf_counter() - began
        printed = out.read_text(errors="replace")
        if code is None:
            raise RunFailed(f"`{command[0]}` ran longer than {SECONDS:g} s")
        if code:
            raise RunFailed(f"{' '.join(command)} exited with {code}:\n{_said(printed)}")
        return Figures(wall, _cpu(groups), _peak(groups), rss, printed)


@contextmanager
def started(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Iterator[None]:
    """A command under way; afterwards it is awaited, whatever its exit code."""
    with _groups() as groups:
        process = _start(command, env, cwd, groups, subprocess.DEVNULL)
        yield
        _ended(process)


@contextmanager
def alone() -> Iterator[None]:
    """One measurement at a time: two would only measure each other."""
    handle = os.open(Path(__file__).parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFailed("another measurement is under way: wait for its end") from None
        yield
    finally:
        os.close(handle)


def _start(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, groups: Groups, output: int
) -> subprocess.Popen[bytes]:
    """Start a command inside groups."""
    return subprocess.Popen(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        # Safe here: there is one thread.
        preexec_fn=lambda: cgroups.join(groups),  # noqa: PLW1509
    )


@contextmanager
def _groups() -> Iterator[Groups]:
    """Groups that count from zero; nothing in them outlives them."""
    own = cgroups.own_now()
    memory = tuple(path for path in own.controllers if "memory" in path.parts)
    groups = Groups(own.unified, memory).below(f"kxm-bench-{os.getpid()}")
    cgroups.make(groups)
    try:
        yield groups
    finally:
        cgroups.kill(groups.unified)
        cgroups.remove(groups)


def _ended(process: subprocess.Popen[bytes]) -> tuple[int | None, float]:
    """The exit code of a process, at the instant of its end, and the MiB it had at most."""
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(SECONDS * 1000):
            process.kill()
            process.wait()
            return None, 0.0
    finally:
        os.close(handle)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss / 1024


def _said(printed: str) -> str:
    """The end of what a command printed, without the imports that it may have told of."""
    lines = (line for line in printed.splitlines() if not line.startswith("import time:"))
    return "\n".join(lines)[-1500:]


def _cpu(groups: Groups) -> float:
    lines = (groups.unified / "cpu.stat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("usage_usec")) / 1e6


def _peak(groups: Groups) -> float | None:
    for group in (groups.unified, *groups.controllers):
        for name in _PEAKS:
            if (group / name).exists():
                return int((group / name).read_text()) / 2**20
    return None
