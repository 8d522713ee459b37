"""Hooks that always run: after a failure under `rollback`, when all is undone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubexm.engine.losses import Losses
from kubexm.engine.topology import PENDING, NodeState, Unit


class Late:
    """The `always` hooks whose turn has not come yet."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._units: list[Unit] = []
        self._undone = losses.policy != "rollback"

    def concerns(self, unit: Unit) -> bool:
        """Whether its turn is when all is undone."""
        hook = unit.node.spec.hook
        always = hook is not None and hook.moment == "always"
        return always and not self._undone and self._losses.halt is not None

    def put_off(self, unit: Unit) -> None:
        unit.state = PENDING
        self._units.append(unit)

    def take(self, states: Mapping[str, NodeState]) -> Iterator[list[Unit]]:
        """All is undone: those put off, the inner hooks before the outer."""
        self._undone = True
        places = {id: number for number, id in enumerate(states)}
        waves: dict[tuple[int, ...], list[Unit]] = {}
        for unit in self._units:
            waves.setdefault(_place(unit.node, places), []).append(unit)
        self._units = []
        for place in sorted(waves):
            yield waves[place]


def _place(node: NodeState, places: Mapping[str, int]) -> tuple[int, ...]:
    """Where a node stands in the order of the graph; what was added stands behind who added it."""
    around = _place(node.parent.node, places) if node.parent is not None else ()
    return (*around, places[node.id])
