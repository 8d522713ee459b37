"""The time one attempt may take; waiting for slots does not count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from kubexm.errors import TimedOut

T = TypeVar("T")


class Budget:
    """What is left of an attempt's time-out, if it has one."""

    __slots__ = ("_limit", "left")

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self.left = limit

    def spend(self, work: Awaitable[T]) -> Awaitable[T]:
        """The same, to be awaited not longer than what is left."""
        return work if self.left is None else self._within(work, self.left)

    async def _within(self, work: Awaitable[T], left: float) -> T:
        loop = asyncio.get_running_loop()
        start = loop.time()
        clock = asyncio.timeout(max(left, 0.0))
        try:
            async with clock:
                answer = await work
            if not clock.expired():  # else it swallowed its end, and came too late
                return answer
        except TimeoutError:
            if not clock.expired():
                raise
        finally:
            self.left = left - (loop.time() - start)
        raise TimedOut(f"did not finish within {self._limit:g} s")

    def at_most(self, seconds: float) -> float:
        """How much of a pause there is time for; it is spent."""
        if self.left is None:
            return seconds
        pause = min(seconds, max(self.left, 0.0))
        self.left -= pause
        return pause

    def check(self, reason: str) -> None:
        """Raise if the time is up."""
        if self.left is not None and self.left <= 0:
            raise TimedOut(f"{reason}, still after {self._limit:g} s")


UNLIMITED = Budget()
