"""Values are computed once per key and dropped with their scope."""

from __future__ import annotations

import asyncio

import pytest

from kubexm.cache import Cache


class Counter:
    """Counts how often it was asked, and answers slowly."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Event()

    async def compute(self) -> int:
        self.calls += 1
        await self.go.wait()
        return self.calls


async def test_many_who_ask_at_once_share_one_computation() -> None:
    cache, counter = Cache(), Counter()
    asking = [asyncio.create_task(cache.once("run", "k", counter.compute)) for _ in range(5)]
    await asyncio.sleep(0)
    counter.go.set()

    assert await asyncio.gather(*asking) == [1, 1, 1, 1, 1]


async def test_dropping_a_scope_drops_all_below_it_and_nothing_beside_it() -> None:
    cache, counter = Cache(), Counter()
    counter.go.set()
    scopes = ("run/host/a", "run/host", "run/hosts")
    for scope in scopes:
        await cache.once(scope, "k", counter.compute)

    cache.drop("run/host")

    again = [
        await cache.once(s, "k", counter.compute) for s in ("run/host/a", "run/host", "run/hosts")
    ]
    assert again == [4, 5, 3]


async def test_a_failure_reaches_all_who_wait_and_is_not_kept() -> None:
    cache = Cache()
    go = asyncio.Event()

    async def fail() -> int:
        await go.wait()
        raise ValueError("no")

    first = asyncio.create_task(cache.once("run", "k", fail))
    second = asyncio.create_task(cache.once("run", "k", fail))
    await asyncio.sleep(0)
    go.set()
    results = await asyncio.gather(first, second, return_exceptions=True)

    assert [str(result) for result in results] == ["no", "no"]

    async def succeed() -> int:
        return 7

    assert await cache.once("run", "k", succeed) == 7


async def test_a_cancelled_computation_does_not_cancel_who_waits_for_it() -> None:
    cache, counter = Cache(), Counter()
    first = asyncio.create_task(cache.once("run", "k", counter.compute))
    await asyncio.sleep(0)
    second = asyncio.create_task(cache.once("run", "k", counter.compute))
    await asyncio.sleep(0)
    first.cancel()

    with pytest.raises(RuntimeError, match="was cancelled"):
        await second


async def test_what_is_computed_at_once_is_the_same_value_for_who_waits() -> None:
    cache, counter = Cache(), Counter()

    assert cache.at_once("run", "k", lambda: 7) == 7
    assert cache.at_once("run", "k", lambda: 8) == 7
    assert await cache.once("run", "k", counter.compute) == 7


def test_a_failure_is_not_kept_by_who_cant_wait_either() -> None:
    cache = Cache()
    with pytest.raises(ZeroDivisionError):
        cache.at_once("run", "k", lambda: 1 // 0)

    assert cache.at_once("run", "k", lambda: 7) == 7


def test_a_value_that_asks_for_itself_is_refused() -> None:
    cache = Cache()

    def ask() -> int:
        return cache.at_once("run", "k", ask)

    with pytest.raises(RuntimeError, match="`k` is being computed already"):
        ask()
