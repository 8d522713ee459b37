"""Who waits for whom: a unit that is final counts down those behind it, through gates too."""

from __future__ import annotations

from collections import deque

from kubexm.engine.topology import Gate, Unit
from kubexm.plan.result import Cause


class Releases:
    """Hands on along the edges that a unit is final, and why what follows can't run, if so."""

    def __init__(self) -> None:
        # Arrivals are a list and not calls of each other: a chain may be 100,000 units long.
        self.arrived: deque[Unit] = deque()
        """Units that wait for nothing any more."""
        self._opened: deque[Gate] = deque()

    def tell(self, unit: Unit, cause: Cause | None, doubt: bool) -> None:
        """Tell everything that waits for this unit."""
        node = unit.node
        for state in node.same_host:
            if (follower := state.units.get(unit.host)) is not None:
                self._count_down(follower, cause, unit.blocks, doubt)
        for follower in unit.also or ():
            self._count_down(follower, cause, unit.blocks, doubt)
        self._approach(node.gate, cause if unit.blocks else None, doubt)
        while self._opened:
            self._open(self._opened.popleft())

    def _approach(self, gate: Gate, cause: Cause | None, doubt: bool) -> None:
        if cause is not None and gate.cause is None:
            gate.cause = cause
        gate.doubt = gate.doubt or doubt
        gate.waiting -= 1
        if not gate.waiting:
            self._opened.append(gate)

    def _open(self, gate: Gate) -> None:
        for further in gate.gates:
            self._approach(further, gate.cause, gate.doubt)
        for state in gate.nodes:
            for unit in state.units.values():
                self._count_down(unit, gate.cause, True, gate.doubt)
        for unit in gate.units:
            self._count_down(unit, gate.cause, True, gate.doubt)

    def _count_down(self, unit: Unit, cause: Cause | None, blocks: bool, doubt: bool) -> None:
        if cause is not None:
            unit.cause = unit.cause or cause
            unit.blocks = unit.blocks or blocks
        if doubt:
            unit.doubt = True
        unit.waiting -= 1
        if not unit.waiting:
            self.arrived.append(unit)
