"""Processes of this machine as tests see them, and waiting for what must come."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Runs commands until it is killed, or for ever.
PROGRAM = """
import asyncio, sys
from kubexm.connector.base import Command
from kubexm.connector.local import LocalConnector

async def main():
    connector = LocalConnector()
    commands = [Command(("sh", "-c", script), sudo=%(sudo)s) for script in sys.argv[1:]]
    await asyncio.gather(*(connector.exec(command, lambda *line: print(*line, flush=True))
                           for command in commands))

asyncio.run(main())
"""


def eventually(condition: Callable[[], bool]) -> None:
    """Return when it holds; the test's own timeout ends a wait in vain."""
    while not condition():
        time.sleep(0.01)


def with_mark(mark: str) -> set[int]:
    """The processes that have this in their command line."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            text = (place / "cmdline").read_bytes()
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if mark.encode() in text and state != "Z":
            found.add(int(place.name))
    return found


@contextmanager
def running(
    *scripts: str, sudo: bool = False, ready: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs these, when all or so many have said that they are ready."""
    command = [sys.executable, "-c", PROGRAM % {"sudo": sudo}, *scripts]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in scripts[:ready]:
            assert "ready" in process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()
