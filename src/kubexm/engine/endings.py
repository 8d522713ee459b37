"""How running units are ended: what only waits or looks at once, what runs by grace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kubexm.engine.topology import FREELY, NEVER, Unit

REAP_EVERY = 0.5


class Endings:
    """Ends units, again and again until they are gone; those marked uninterruptible are awaited."""

    def __init__(self, live: set[Unit]) -> None:
        self._live = live

    def begin(self, units: Iterable[Unit], grace: float) -> None:
        """End these: some now, the others when their grace is over."""
        told = sorted(units, key=lambda unit: unit.serial)
        for unit in told:
            if unit.ends == FREELY:
                _end(unit)
        if told:
            asyncio.get_running_loop().call_later(grace, self._reap, told)

    def _reap(self, units: list[Unit]) -> None:
        left = [unit for unit in units if unit in self._live]
        for unit in left:
            if unit.ends != NEVER:
                _end(unit)
        if left:
            asyncio.get_running_loop().call_later(REAP_EVERY, self._reap, left)


def _end(unit: Unit) -> None:
    # One that has not begun its first attempt sees by itself that it must not.
    if unit.task is not None and unit.attempt:
        unit.ended = True
        unit.task.cancel()
