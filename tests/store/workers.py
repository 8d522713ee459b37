"""Starts processes that work on a run, talks to them, and never leaves one behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Worker:
    """Another process that works on a run; see `worker` for its roles."""

    def __init__(self, path: Path, run: str, role: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.worker", path, run, role],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> list[str]:
        """The next line it says, in words; empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def tell(self) -> None:
        """Have it append a record."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def freeze(self) -> None:
        """Stop it; returns when it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it and leave it as a zombie: its parent has not asked how it ended."""
        self.process.kill()
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)


@contextmanager
def worker(path: Path, run: str, role: str) -> Iterator[Worker]:
    """A worker that is gone when the block ends."""
    started = Worker(path, run, role)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()
