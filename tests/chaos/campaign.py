"""Many disturbed runs of one pipeline, a few at a time, and an undisturbed one to compare with."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.lives import Place, work
from tests.chaos.reckoning import Remains, reckon

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AT_ONCE = 3
LONGEST = 500
"""Seconds after which something hangs for sure, on whatever machine."""


def undisturbed(pipeline: str, directory: Path) -> Remains:
    """What a run leaves that nobody touches."""
    place = Place(directory / "undisturbed", HERE / pipeline)
    asyncio.run(work(place))
    return reckon(place)


def disturbed(
    way: str, pipeline: str, directory: Path, *, until: int
) -> Iterator[tuple[Remains, Counter[str]]]:
    """What runs leave that are disturbed, until that was done this often in all."""

    def some(first: int) -> str:
        numbers = map(str, (first, AT_ONCE, until // AT_ONCE))
        command = (sys.executable, "-m", "tests.chaos.driver", way, HERE / pipeline, directory)
        done = subprocess.run(
            (*command, *numbers),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for lines in pool.map(some, range(1, AT_ONCE + 1)):
            for line in map(json.loads, lines.splitlines()):
                place = Place(directory / str(line["seed"]), HERE / pipeline)
                yield reckon(place), Counter(line["done"])
