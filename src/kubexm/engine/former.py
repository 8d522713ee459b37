"""What earlier plans of a run have changed, where a retry went on with a corrected one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from kubexm.engine.ports import Load
from kubexm.engine.undo import FORMER
from kubexm.errors import KubexmError
from kubexm.plan.fragment import replace
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import Layer
from kubexm.runtime.contexts import UnitView
from kubexm.step.contract import Step

View = Callable[[str], UnitView]
"""What references may name on a host."""


class Successors:
    """The nodes of the plan of today, which may stand for those that they came after."""

    def __init__(
        self,
        nodes: Mapping[str, ExecutionNode],
        at_work: Mapping[str, Collection[str]],
        load: Load,
        view: View,
    ) -> None:
        self._nodes = nodes
        self._at_work = at_work
        self._load = load
        self._view = view

    def without_theirs(self, former: Sequence[Layer]) -> tuple[Layer, ...]:
        """These layers without what will be undone with the nodes of today anyway."""
        layers = (tuple(filter(None, map(self._left_of, layer))) for layer in former)
        return tuple(layer for layer in layers if layer)

    def _left_of(self, node: ExecutionNode) -> ExecutionNode | None:
        hosts = tuple(host for host in node.hosts if not self._covers(node, host))
        return replace(node, hosts=hosts) if hosts else None

    def _covers(self, former: ExecutionNode, host: str) -> bool:
        id = former.id.partition(FORMER)[0]
        if host not in self._at_work.get(id, ()):
            return False
        old, new = self._step(former, host), self._step(self._nodes[id], host)
        if old is None or new is None:
            return False
        return set(old.resources) <= set(new.resources) if old.resources else old == new

    def _step(self, node: ExecutionNode, host: str) -> Step | None:
        try:
            return self._load(node).bind(self._view(host))
        except KubexmError:  # its values are no more
            return None
