"""Freezes lives of a run for longer than their lease, and wakes them when another took over."""

from __future__ import annotations

import time
from collections import Counter
from random import Random

from tests.chaos.lives import LEASE_LOST, PAUSE, Life, Place

from kubexm.app import places
from kubexm.store import Store

FREEZES = 4
LEASE = 1.0


def disturb(place: Place, random: Random) -> Counter[str]:
    """Have the run end in spite of all; how often it was disturbed in which way."""
    places.LEASE_SECONDS = LEASE
    life, frozen = Life(place), Counter[str]()
    while frozen.total() < FREEZES and _freeze(life, place, random):
        _await_end_of_lease(place)
        other = Life(place)
        _let_work(other, place, random)
        life.wake()
        assert life.wait() == LEASE_LOST, place.errors()
        frozen["woken too late" if other.is_over else "woken while another worked"] += 1
        life = other
    # Nobody froze it: a machine may be too busy for so short a lease.
    while life.wait() == LEASE_LOST:
        _await_end_of_lease(place)
        life = Life(place)
    assert place.is_over, place.errors()
    return frozen


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
