"""Values on demand: minters that wait until somebody needs them, and values that expired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubexm.engine.topology import Unit
from kubexm.plan.result import Cause, HostResult

Demand = asyncio.Future[Cause | None]
"""Resolved when the values are there, or with the reason why they will not be."""


class Provision:
    """Units that run when others ask for what they leave, once for all who ask."""

    def __init__(self, offer: Callable[[Unit], None]) -> None:
        self._offer = offer
        self._armed: dict[Unit, None] = {}
        self._demands: dict[Unit, Demand] = {}
        self._wished: set[Unit] = set()

    def arm(self, unit: Unit) -> None:
        """Nobody needs it yet."""
        self._armed[unit] = None

    def wish(self, unit: Unit) -> None:
        """In a dry run: somebody would need it."""
        self._wished.add(unit)

    def demand(self, unit: Unit) -> Demand:
        """Have its values made, unless that was tried and failed."""
        if (demand := self._demands.get(unit)) is not None:
            return demand
        demand = asyncio.get_running_loop().create_future()
        if unit.result is not None and _in_vain(unit.result):
            demand.set_result(_failure(unit))
            return demand
        self._armed.pop(unit, None)
        self._demands[unit] = demand
        unit.attempt = 0
        self._offer(unit)
        return demand

    def awaited(self, unit: Unit) -> bool:
        return unit in self._demands

    def settle(self, unit: Unit, cause: Cause | None = None) -> None:
        """It is final: tell whoever asked."""
        demand = self._demands.pop(unit, None) if self._demands else None
        if demand is not None and not demand.done():
            demand.set_result(cause or _failure(unit))

    def leftover(self) -> list[tuple[Unit, bool]]:
        """Units that nobody asked for, and whether somebody would have."""
        left = [(unit, unit in self._wished) for unit in self._armed]
        self._armed.clear()
        return left


def _in_vain(result: HostResult) -> bool:
    """Whether it was tried; a minter that nobody needed in an earlier life was not."""
    return result.status != "Success" and (result.attempts > 0 or result.cause is not None)


def _failure(unit: Unit) -> Cause | None:
    result = unit.result
    if result is None or result.status == "Success" or result.satisfied:
        return None
    failure = result.failure or "failed"
    return result.cause or Cause(unit.node.id, unit.host, result.message, failure)
