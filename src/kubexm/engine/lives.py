"""Units under way: each lives in a task, hands it on to the next, and is ended by grace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import copy_context

from kubexm.engine.lifecycle import Finished
from kubexm.engine.topology import FREELY, NEVER, Unit

TURNS = 32
"""So many units may live in one task, one after the other, before the loop has its turn."""
REAP_EVERY = 0.5


class Lives:
    """The units that have begun and are not over."""

    def __init__(
        self,
        may_live: Callable[[Unit], bool],
        live: Callable[[Unit], Awaitable[Finished]],
        finish: Callable[[Unit, Finished], None],
    ) -> None:
        """`may_live` is asked again at the first word, since a task begins a turn later."""
        self.units: set[Unit] = set()
        self._may_live = may_live
        self._live = live
        self._finish = finish
        self._context = copy_context()
        self._vacant: asyncio.Task[None] | None = None
        self._heir: Unit | None = None

    def begin(self, unit: Unit) -> None:
        """Let a unit live, in the task of the one whose end it waited for if that can be."""
        self.units.add(unit)
        if self._vacant is not None:
            unit.task, self._vacant, self._heir = self._vacant, None, unit
        else:
            # In a context of its own: this may be called amid the last words of another unit.
            loop, context = asyncio.get_running_loop(), self._context.copy()
            unit.task = loop.create_task(self._carry(unit), context=context)

    async def _carry(self, unit: Unit) -> None:
        """Live a unit, and then the first that its end lets start: a task less, a turn less."""
        for left in reversed(range(TURNS)):
            if not self._may_live(unit):
                return
            finished = await self._live(unit)
            if left and unit.task is not None and self._is_as_new(unit.task):
                self._vacant = unit.task
            self._finish(unit, finished)
            heir, self._heir, self._vacant = self._heir, None, None
            if heir is None:
                return
            unit = heir

    def _is_as_new(self, task: asyncio.Task[None]) -> bool:
        """Neither a cancel that came too late nor what a step left in its context goes on."""
        return not task.cancelling() and copy_context() == self._context

    def end(self, units: Iterable[Unit], grace: float) -> None:
        """End these, what only waits or looks now, the others when their grace is over.

        Again and again until they are gone; those marked uninterruptible are awaited.
        """
        told = sorted(units, key=lambda unit: unit.serial)
        for unit in told:
            if unit.ends == FREELY:
                _end(unit)
        if told:
            asyncio.get_running_loop().call_later(grace, self._reap, told)

    def _reap(self, units: list[Unit]) -> None:
        left = [unit for unit in units if unit in self.units]
        for unit in left:
            if unit.ends != NEVER:
                _end(unit)
        if left:
            asyncio.get_running_loop().call_later(REAP_EVERY, self._reap, left)

    async def gone(self) -> None:
        """Return when no task is left, whatever became of it."""
        tasks = {unit.task for unit in self.units if unit.task is not None}
        await asyncio.gather(*tasks, return_exceptions=True)


def _end(unit: Unit) -> None:
    # One that has not begun its first attempt sees by itself that it must not.
    if unit.task is not None and unit.attempt:
        unit.ended = True
        unit.task.cancel()
