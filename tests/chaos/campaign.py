"""Many disturbed runs of one pipeline, a few at a time, and an undisturbed one to compare with."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from tests.chaos.lives import Place, work
from tests.chaos.reckoning import Remains, reckon

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AT_ONCE = 3


def undisturbed(pipeline: str, directory: Path) -> Remains:
    """What a run leaves that nobody touches."""
    place = Place(directory / "undisturbed", HERE / pipeline)
    asyncio.run(work(place))
    return reckon(place)


def disturbed(
    program: str, pipeline: str, directory: Path, *, until: int
) -> Iterator[tuple[Remains, Counter[str]]]:
    """What runs leave that a program disturbs, until it has done so this often in all."""
    total, seeds = 0, count(1)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while total < until:
            chosen = [next(seeds) for _ in range(AT_ONCE)]
            for found in pool.map(lambda seed: _one(program, pipeline, directory, seed), chosen):
                total += next(iter(found[1].values()))
                yield found


def _one(program: str, pipeline: str, directory: Path, seed: int) -> tuple[Remains, Counter[str]]:
    place = Place(directory / f"{program}-{seed}", HERE / pipeline)
    command = (sys.executable, "-m", f"tests.chaos.{program}", place.file, str(seed), place.root)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    return reckon(place), Counter(json.loads(done.stdout))
