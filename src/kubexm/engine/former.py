"""What earlier plans of a run have changed, where a retry went on with a corrected one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from kubexm.engine.ports import Load
from kubexm.engine.undo import FORMER
from kubexm.errors import KubexmError
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import Layer
from kubexm.runtime.contexts import UnitView
from kubexm.step.contract import Step

View = Callable[[ExecutionNode, str], UnitView]
"""What the references of a node may name on a host."""


class Moves(msgspec.Struct, frozen=True):
    """What is undone in the place of a former node, and no more in its own."""

    to: dict[str, dict[str, tuple[ExecutionNode, ...]]] = msgspec.field(default_factory=dict)
    """By former node and host those that are undone there before it, latest first."""
    away: dict[str, set[str]] = msgspec.field(default_factory=dict)
    """By node the hosts on which it is undone elsewhere."""

    def staying(self, id: str, hosts: Sequence[str]) -> tuple[str, ...]:
        """Those of these hosts on which this node is undone in its own place."""
        return tuple(host for host in hosts if host not in self.away.get(id, ()))


class Successors:
    """The nodes of the plan of today, which may go on with what former ones had begun.

    What was there before a change is known from the first of them. So all are taken back where
    that first one stands: after whatever came upon it since, and before whatever it came upon.
    """

    def __init__(
        self,
        nodes: Mapping[str, ExecutionNode],
        changed: Mapping[str, Collection[str]],
        load: Load,
        view: View,
    ) -> None:
        self._nodes = nodes
        self._changed = changed
        self._load = load
        self._view = view

    def moves(self, former: Sequence[Layer]) -> Moves:
        """Where the nodes of today, and those of later layers, are undone."""
        moves = Moves()
        latest: dict[tuple[str, str], tuple[ExecutionNode, ...]] = {}
        for node in (node for layer in reversed(former) for node in layer):
            id = node.id.partition(FORMER)[0]
            for host in node.hosts:
                later = latest.get((id, host)) or tuple(self._of_today(id, host))
                if later and self._goes_on_with(node, later[-1], host):
                    moves.away.setdefault(later[-1].id, set()).add(host)
                    moves.to.setdefault(node.id, {})[host] = later
                    latest[id, host] = (*later, node)
                else:
                    latest[id, host] = (node,)
        return moves

    def _of_today(self, id: str, host: str) -> Iterator[ExecutionNode]:
        if host in self._changed.get(id, ()):
            yield self._nodes[id]

    def _goes_on_with(self, former: ExecutionNode, later: ExecutionNode, host: str) -> bool:
        old, new = self._step(former, host), self._step(later, host)
        if old is None or new is None:
            return False
        return set(old.resources) <= set(new.resources) if old.resources else old == new

    def _step(self, node: ExecutionNode, host: str) -> Step | None:
        try:
            return self._load(node).bind(self._view(node, host))
        except KubexmError:  # its values are no more
            return None
