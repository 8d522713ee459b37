"""What earlier lives of the same run left: units that are done, bound to a host, or begun."""

from __future__ import annotations

from collections.abc import Callable

from kubexm.engine.topology import Unit
from kubexm.plan.records import RunState, UnitDone


class Earlier:
    """Asked before a unit starts: has it been done, and where."""

    def __init__(self, state: RunState, now: Callable[[], float], *, for_good: bool) -> None:
        """`for_good`: what was cancelled stays so, for the run is on its way back."""
        self._state = state
        self._now = now
        self._for_good = for_good

    def __bool__(self) -> bool:
        return bool(self._state.done)

    def result_of(self, unit: Unit, *, stale: bool) -> UnitDone | None:
        """The end that a unit came to, if that still counts; where asked, with expired values."""
        record = self._state.done.get(unit.key)
        if record is None:
            return None
        if record.result.status == "Cancelled":
            # A run on its way back ended it for good, a person only for the time being.
            return record if record.result.cause is not None and self._for_good else None
        # What is minted stays made; who needs a fresh value will ask for one.
        return record if stale or unit.node.work.minted or self._is_fresh(record) else None

    def _is_fresh(self, record: UnitDone) -> bool:
        now = self._now()
        return all(value.expires is None or now < value.expires for value in record.values)

    def knows(self, unit: Unit) -> bool:
        """Whether a unit was done, or begun in earnest."""
        return unit.key in self._state.done or self.intended(unit)

    def intended(self, unit: Unit) -> bool:
        """Whether a unit was about to change something, and perhaps did."""
        intended = self._state.intended
        return bool(intended) and unit.key in intended

    def changed(self, unit: Unit) -> bool:
        """Whether a unit that was opened again had changed something that is still there."""
        return unit.key in self._state.standing

    def host_of(self, unit: Unit) -> str | None:
        """The host that a `one_of` unit was bound to."""
        return self._state.bound.get(unit.node.id)
