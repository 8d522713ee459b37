"""The dispatcher: units that could run now, in the order of their remaining path, and slots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kubexm.engine.limits import (
    WITH_POOLS,
    WITHOUT_POOLS,
    AnyResource,
    Limits,
    Queue,
    pop,
    push,
)
from kubexm.engine.topology import ACTIVE, READY, Unit


class Dispatcher:
    """Hands out slots, the most urgent unit first; everything here happens without awaiting."""

    def __init__(
        self, limits: Limits, admit: Callable[[Unit], bool], launch: Callable[[Unit], None]
    ) -> None:
        self.busy = 0
        """Units that hold slots and do something now."""
        self._limits = limits
        self._admit = admit
        self._launch = launch
        self._ready: Queue = []
        self._freed: list[AnyResource] = []

    def offer(self, unit: Unit) -> None:
        """The unit may start as soon as its slots are free."""
        unit.state = READY
        unit.wanted = WITHOUT_POOLS
        push(self._ready, unit)

    def pump(self) -> bool:
        """Start what can start; True if there may be more, and others may have come before it.

        A unit that turned out to have nothing to do lets those behind it in, which may have the
        longer way before them.
        """
        ready = self._ready
        while True:
            if self._freed:
                self._call_freed()
            if not ready:
                return False
            if not self._consider(pop(ready)):
                return True

    def _call_freed(self) -> None:
        """One more candidate from every resource that has room again."""
        for resource in self._freed[:]:
            unit = resource.next_candidate()
            if unit is None:
                self._freed.remove(resource)
            else:
                push(self._ready, unit)

    def _consider(self, unit: Unit) -> bool:
        """Start a unit if it can start; False if it was dealt with otherwise."""
        if unit.state != READY:
            return True
        if unit.wake is None and not self._admit(unit):
            return False
        if not self._limits.try_take(unit, unit.wanted):
            return True
        unit.state = ACTIVE
        self.busy += 1
        if unit.wake is None:
            self._launch(unit)
        elif not unit.wake.done():
            unit.wake.set_result(None)
        return True

    def give_back(self, unit: Unit) -> None:
        """The unit waits or is done: others may have its slots."""
        if unit.slots:
            self.busy -= 1
            self._free(self._limits.release(unit))

    def give_back_pools(self, unit: Unit) -> bool:
        """Others may have its pools; whether any of them waits."""
        freed = self._limits.release_pools(unit) if unit.slots == WITH_POOLS else []
        self._free(freed)
        return bool(freed)

    def _free(self, resources: Sequence[AnyResource]) -> None:
        for resource in resources:
            if resource not in self._freed:
                self._freed.append(resource)

    async def take(self, unit: Unit, wanted: int = WITHOUT_POOLS) -> None:
        """Wait until the unit has its slots again; the caller pumps."""
        unit.wake = asyncio.get_running_loop().create_future()
        unit.wanted = wanted
        unit.state = READY
        push(self._ready, unit)
        while self.pump():
            pass
        try:
            await unit.wake
        finally:
            unit.wake = None
            unit.state = ACTIVE

    def add_pools(self, unit: Unit) -> bool:
        """Take the unit's pools beside what it holds, if they are free."""
        return unit.slots == WITH_POOLS or self._limits.try_add_pools(unit)
