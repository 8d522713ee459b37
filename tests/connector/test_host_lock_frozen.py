"""A kubexm that stands still for too long changes nothing any more when it wakes up."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubexm.connector.base import Claim, Command
from kubexm.connector.hostlock import HostLock
from kubexm.connector.local import LocalConnector

# Changes the host again and again, in several ways at once, until it is refused.
PROGRAM = """
import asyncio, itertools, sys
from pathlib import Path
from kubexm.connector.base import Claim, Command
from kubexm.connector.hostlock import HostLock
from kubexm.connector.local import LocalConnector
from kubexm.errors import Refused

place = Path(sys.argv[1])
connector = LocalConnector(lock=HostLock(place, Claim("site", 1, "t1", "somebody")))

async def run():
    while True:
        await connector.exec(Command(("sh", "-c", f"sleep 0.01; echo beat >>{place}/beats")))

async def write():
    for number in itertools.count():
        await connector.put(f"{place}/number", str(number).encode())

async def main():
    works = await asyncio.gather(run(), run(), run(), write(), return_exceptions=True)
    await connector.close()
    for work in works:
        print(type(work).__name__, flush=True)

asyncio.run(main())
"""
EFFECTS = ("beats", "number")


@contextmanager
def working(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that changes the host."""
    command = [sys.executable, "-c", PROGRAM, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            while not all((place / name).exists() for name in EFFECTS):
                assert process.poll() is None
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


def freeze(process: subprocess.Popen[str], place: Path) -> None:
    """Stop it, but not in the instant in which a file is moved: that one nobody may interrupt."""
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        descriptor = os.open(place / "locks/site", os.O_RDONLY)
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process.send_signal(signal.SIGCONT)
        finally:
            os.close(descriptor)


def take_over(place: Path) -> dict[str, str]:
    """The first change of a later run, and what the host looked like to it."""

    async def first_change() -> None:
        connector = LocalConnector(lock=HostLock(place, Claim("site", 2, "t2", "another")))
        await connector.exec(Command(("true",)))
        await connector.close()

    asyncio.run(first_change())
    return effects(place)


def effects(place: Path) -> dict[str, str]:
    return {name: (place / name).read_text() for name in EFFECTS}


@pytest.mark.parametrize("seed", range(4))
def test_frozen_holder_is_refused_when_it_wakes(tmp_path: Path, seed: int) -> None:
    with working(tmp_path) as process:
        time.sleep(random.Random(seed).uniform(0.0, 0.05))
        freeze(process, tmp_path)

        seen = take_over(tmp_path)
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate()

    assert said.split() == ["Refused"] * 4
    assert effects(tmp_path) == seen
    assert [path.name for path in (tmp_path / "locks/site").iterdir()] == ["holder"]
