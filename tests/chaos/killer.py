"""Kills or cancels the lives of a run again and again, at instants that chance decides."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from random import Random

from tests.chaos.lives import Life, Place

from kubexm.store import Store

MOST_KILLS = 500


def disturb(place: Place, random: Random) -> Counter[str]:
    """Have the run end in spite of all; how often it was disturbed in which way."""
    kills: Counter[str] = Counter()
    while not place.is_over and kills.total() < MOST_KILLS:
        life = Life(place)
        strike = random.choice(STRIKES)
        strike(life, place, random)
        code = life.kill()
        if code == -signal.SIGKILL or place.is_cancelled:
            kills[strike.__name__] += 1
        else:
            assert place.is_over, place.errors()
    return kills


def while_starting(life: Life, place: Place, random: Random) -> None:
    _after(life, random.uniform(0.0, 0.06))


def any_time(life: Life, place: Place, random: Random) -> None:
    _after(life, random.uniform(0.0, 0.35))


def at_a_commit(life: Life, place: Place, random: Random) -> None:
    """While something is being written to the database, or right after."""
    _at_change(life, place.last_commit, random.randint(1, 12))
    _after(life, random.choice((0.0, random.uniform(0.0, 0.002))))


def at_a_change(life: Life, place: Place, random: Random) -> None:
    """When a host was changed and the journal may not know yet."""
    host = f"n0{random.randint(1, 6)}"
    _at_change(life, lambda: place.last_change(host), random.randint(1, 8))
    _after(life, random.choice((0.0, random.uniform(0.0, 0.002))))


def by_cancelling(life: Life, place: Place, random: Random) -> None:
    """As a user would, from another process; what runs may end."""
    any_time(life, place, random)
    if (task := place.task()) is not None:
        with Store.open(place.database) as store:
            told = store.request_cancel(task[0])
        if told is not None:
            life.wait()


STRIKES = (while_starting, any_time, at_a_commit, at_a_change, by_cancelling)


def _after(life: Life, seconds: float) -> None:
    until = time.monotonic() + seconds
    life.until(lambda: time.monotonic() >= until)


def _at_change(life: Life, measure: Callable[[], int], times: int) -> None:
    for _ in range(times):
        before = measure()
        life.until(lambda: measure() != before)  # noqa: B023  # called within the same turn
