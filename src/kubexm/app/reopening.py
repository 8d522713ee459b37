"""What a retry keeps of an ended run, and what it opens again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubexm.engine.undo import is_undo, left, rolled_back
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import Reopened, RunState, Unit, UnitDone
from kubexm.spec import references
from kubexm.spec.expressions import compile_expression
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import BadReference, Reference

_FINAL = ("vars", "host")
"""What references name that is known before the run; facts and values are found by it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph and the hosts it was made for."""

    graph: ExecutionGraph
    hosts: tuple[InventoryHost, ...]


def reopening(state: RunState, plan: Plan, corrected: Plan | None) -> Reopened:
    """Open everything but what succeeded, was not undone, and is to be done the same way."""
    kept = _succeeded(state)
    if corrected is not None:
        kept &= _Comparison(state, plan, corrected).unchanged()
    kept = _with_values_they_saw(kept, (corrected or plan).graph)
    return Reopened(at=time.time(), units=tuple(sorted(state.done.keys() - kept)))


def _succeeded(state: RunState) -> set[Unit]:
    # What a rollback left may have stood on what it took back: it starts again at its precheck.
    undone = rolled_back(state) | left(state)
    return {
        unit
        for unit, done in state.done.items()
        if done.result.status == "Success" and unit not in undone and not is_undo(unit[0])
    }


def _with_values_they_saw(kept: set[Unit], graph: ExecutionGraph) -> set[Unit]:
    """Without those that took a value which will be produced again."""
    kept_nodes = {id for id, _ in kept}
    providers = {key.name: id for id, node in graph.nodes.items() for key in node.step.provides}
    while True:
        anew = {key for key, id in providers.items() if id not in kept_nodes}
        lost = {
            id
            for id in kept_nodes
            if (node := graph.nodes.get(id)) is not None and anew.intersection(node.step.needs)
        }
        if not lost:
            return {unit for unit in kept if unit[0] in kept_nodes}
        kept_nodes -= lost


class _Comparison:
    """Tells what a corrected plan does as the one before did."""

    def __init__(self, state: RunState, before: Plan, after: Plan) -> None:
        self._done = state.done
        self._before = before.graph.nodes
        self._after = after.graph.nodes
        self._hosts = {host.name: host for host in before.hosts}
        self._new_hosts = {host.name: host for host in after.hosts}
        self._parents = {
            node.id: unit
            for unit, done in state.done.items()
            if done.fragment is not None
            for node in done.fragment.nodes
        }

    def unchanged(self) -> set[Unit]:
        return {unit for unit, done in self._done.items() if self._is_same(unit, done)}

    def _is_same(self, unit: Unit, done: UnitDone) -> bool:
        id, host = unit[0], done.result.host_name
        if (parent := self._parents.get(id)) is not None:
            # What an expander has added is as good as the expander.
            return parent in self._done and self._is_same(parent, self._done[parent])
        old, new = self._before.get(id), self._after.get(id)
        if old is None or new is None or host not in new.hosts:
            return False
        return _work(old) == _work(new) and self._sees_the_same(new, host)

    def _sees_the_same(self, node: ExecutionNode, host: str) -> bool:
        old, new = self._hosts.get(host), self._new_hosts.get(host)
        if old is None or new is None:
            return False
        return all(
            _looked_up(reference, old) == _looked_up(reference, new)
            for reference in _named(node)
            if reference.root in _FINAL
        )


def _work(node: ExecutionNode) -> tuple[Any, ...]:
    """What a node does and after what; not where, how often and how patiently."""
    return node.step, node.when, node.one_of, node.hook, node.after, node.after_same_host


def _named(node: ExecutionNode) -> Iterator[Reference]:
    for _, found in references.scan(node.step.params):
        if isinstance(found, Reference):
            yield found
    if node.when is not None:
        yield from compile_expression(node.when).references


def _looked_up(reference: Reference, host: InventoryHost) -> Any:
    scope: Mapping[str, Any] = {"vars": host.vars, "host": host.described()}
    try:
        return references.in_scope(reference, scope)
    except BadReference:
        return None
