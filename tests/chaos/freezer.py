"""Freezes a process that works on a run for longer than its lease, lets another take over, and
wakes the first one again, at instants that a seed decides.

Called with a pipeline, a seed and a directory; says in the end how often it did so.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.chaos.lives import LEASE_LOST, PAUSE, Life, Place

from kubexm.app import places
from kubexm.store import Store

FREEZES = 4
LEASE = 1.0


def main(file: Path, seed: int, root: Path) -> int:
    places.LEASE_SECONDS = LEASE
    place, random = Place(root, file), Random(seed)
    life, done = Life(place), Counter({"freezes": 0, "woken while another worked": 0})
    while done["freezes"] < FREEZES and _freeze(life, place, random):
        done["freezes"] += 1
        _await_end_of_lease(place)
        other = Life(place)
        _let_work(other, place, random)
        life.wake()
        if life.wait() != LEASE_LOST:
            return _report(place, f"the one that was frozen ended with {life.wait()}")
        done["woken while another worked"] += not other.is_over
        life = other
    if life.wait() and not place.is_over:
        return _report(place, f"the last one ended with {life.wait()}")
    print(json.dumps(done))
    return 0


def _let_work(life: Life, place: Place, random: Random) -> None:
    """Until it has written something, so that the lock is surely its own."""
    before, more = place.records(), random.randint(1, 60)
    life.until(lambda: place.records() >= before + more)


def _freeze(life: Life, place: Place, random: Random) -> bool:
    """Whether it stands still in the midst of its work."""
    _let_work(life, place, random)
    while True:
        life.freeze()
        if life.is_over:
            return False
        if not place.is_locked():
            return True
        # Whoever stands still amid a commit keeps all others from writing, by design of SQLite.
        life.wake()
        time.sleep(PAUSE)


def _await_end_of_lease(place: Place) -> None:
    with Store.open(place.database) as store:
        while store.runs()[0].holder is not None:
            time.sleep(0.02)


def _report(place: Place, what: str) -> int:
    print(what, place.errors(), sep="\n", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
