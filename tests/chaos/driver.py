"""Disturbs runs of a pipeline, one after the other, from a process that has all of it imported.

Called with a way to disturb, a pipeline, a directory, the first seed, the distance to the next,
and how often to disturb in all. It says of each run which seed it had and what was done to it.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from random import Random

from tests.chaos import freezer, killer
from tests.chaos.lives import Place

WAYS = {"kill": killer.disturb, "freeze": freezer.disturb}


def main(way: str, pipeline: str, directory: str, first: str, step: str, until: str) -> None:
    total = 0
    for seed in count(int(first), int(step)):
        if total >= int(until):
            return
        place = Place(Path(directory, str(seed)), Path(pipeline))
        done = WAYS[way](place, Random(seed))
        total += done.total()
        print(json.dumps({"seed": seed, "done": done}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
