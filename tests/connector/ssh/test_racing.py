"""A login that stands still gets rivals, and the first that ends counts."""

import asyncio
from collections.abc import Sequence

import pytest
from tests import virtual

from kubexm.connector.ssh import racing
from kubexm.connector.ssh.racing import PATIENCE_SECONDS, RUNNERS
from kubexm.errors import HostUnreachable

LONG = 100.0


class Track:
    """Runs that take so many seconds each; a negative one fails after as many."""

    def __init__(self, *lengths: float) -> None:
        self._lengths = lengths
        self.started: list[float] = []
        self.cancelled: list[int] = []
        self.dropped: list[int] = []
        self.room_from = 0.0

    async def race(self) -> int:
        return await racing.first(self._run, self.dropped.append, self._has_room)

    def _has_room(self) -> bool:
        return asyncio.get_running_loop().time() >= self.room_from

    async def _run(self) -> int:
        number = len(self.started)
        self.started.append(asyncio.get_running_loop().time())
        length = self._lengths[number]
        try:
            await asyncio.sleep(abs(length))
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        if length < 0:
            raise HostUnreachable(f"{number} is turned away")
        return number


def raced(track: Track) -> tuple[int, float]:
    """Who won, and when."""

    async def race() -> tuple[int, float]:
        winner, time = await track.race(), asyncio.get_running_loop().time()
        await asyncio.sleep(0)
        return winner, time

    return virtual.run(race())


def starts(count: int) -> Sequence[float]:
    return [number * PATIENCE_SECONDS for number in range(count)]


def test_a_quick_one_has_no_rivals() -> None:
    track = Track(PATIENCE_SECONDS / 2)

    assert raced(track) == (0, PATIENCE_SECONDS / 2)
    assert track.started == [0.0]


def test_one_that_stands_still_is_overtaken_and_ended() -> None:
    track = Track(LONG, 1.0)

    assert raced(track) == (1, PATIENCE_SECONDS + 1.0)
    assert track.cancelled == [0]


def test_a_slow_one_still_wins_if_its_rivals_are_no_quicker() -> None:
    track = Track(2 * PATIENCE_SECONDS + 1.0, LONG, LONG)

    assert raced(track) == (0, 2 * PATIENCE_SECONDS + 1.0)
    assert track.started == starts(3)
    assert sorted(track.cancelled) == [1, 2]


def test_there_are_only_so_many() -> None:
    track = Track(*[LONG] * RUNNERS)

    assert raced(track) == (0, LONG)
    assert track.started == starts(RUNNERS)


def test_where_there_is_no_room_the_next_one_waits_for_it() -> None:
    track = Track(LONG, 1.0)
    track.room_from = 1.5 * PATIENCE_SECONDS

    assert raced(track) == (1, 2 * PATIENCE_SECONDS + 1.0)


def test_what_is_wrong_is_told_at_once() -> None:
    track = Track(LONG, -1.0)

    with pytest.raises(HostUnreachable, match="1 is turned away"):
        raced(track)
    assert track.cancelled == [0]


def test_of_two_that_end_at_once_one_is_dropped() -> None:
    track = Track(PATIENCE_SECONDS + 1.0, 1.0)

    winner, _ = raced(track)

    assert track.dropped == [1 - winner]


def test_all_end_with_who_waits_for_them() -> None:
    track = Track(LONG, LONG)

    async def given_up() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS + 1.0):
            await track.race()

    with pytest.raises(TimeoutError):
        virtual.run(given_up())
    assert sorted(track.cancelled) == [0, 1]
