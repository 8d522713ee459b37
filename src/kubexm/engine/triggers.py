"""Hooks: whether the scope that a hook belongs to was entered, succeeded or failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from kubexm.engine.topology import NodeState, Unit
from kubexm.plan.node import ExecutionNode, Hook
from kubexm.plan.result import Cause, HostResult
from kubexm.plan.validation import inside

Answer = Literal["run", "not-asked", "not-entered"]


class Scopes:
    """The nodes of every scope that has hooks; hooks themselves never count."""

    def __init__(self) -> None:
        self._bodies: dict[str, list[NodeState]] = {}

    def register(self, states: Iterable[NodeState]) -> None:
        """Take these nodes into the scopes they lie in."""
        states = list(states)
        for state in states:
            if state.spec.hook is not None and state.spec.hook.moment != "pre":
                self._bodies.setdefault(state.spec.hook.scope, [])
        for scope, body in self._bodies.items():
            body.extend(
                state for state in states if state.spec.hook is None and inside(state.id, scope)
            )

    def answer(self, unit: Unit, hook: Hook, quarantined: Mapping[str, object]) -> Answer:
        """Whether this hook is due, now that everything before it is final."""
        results = list(self._results(hook, unit.host, quarantined))
        if not any(_started(result) for _, result in results):
            return "not-entered"
        success = all(_good(state, result) for state, result in results)
        if hook.moment == "always":
            return "run"
        return "run" if success == (hook.moment == "post") else "not-asked"

    def _results(
        self, hook: Hook, host: str, quarantined: Mapping[str, object]
    ) -> Iterator[tuple[NodeState, HostResult]]:
        for state in self._bodies.get(hook.scope, ()):
            for name, unit in state.units.items():
                if not hook.barrier and not state.spec.one_of and name != host:
                    continue
                if unit.result is not None and unit.host not in quarantined:
                    yield state, unit.result


def _started(result: HostResult) -> bool:
    return result.satisfied or result.status in ("Success", "Failed", "Cancelled")


def _good(state: NodeState, result: HostResult) -> bool:
    return result.satisfied or result.status == "Success" or state.spec.ignore_errors


def own_failure(
    unit: Unit, hook: Hook, states: Mapping[str, NodeState], quarantined: Mapping[str, object]
) -> Cause | None:
    """The failure of an earlier node of the same hook, which holds this one back."""
    node = unit.node.spec
    same_host = [states[id].units.get(unit.host) for id in node.after_same_host]
    barred = [other for id in node.after for other in states[id].units.values()]
    counted = [other for other in barred if _counts_at_barrier(other, quarantined)]
    for other in (*same_host, *counted):
        if other is None or other.result is None or not _same(other.node.spec, node, hook):
            continue
        if not _good(other.node, other.result):
            result = other.result
            return result.cause or Cause(other.node.id, other.host, result.message)
    return None


def _counts_at_barrier(unit: Unit, quarantined: Mapping[str, object]) -> bool:
    if unit.result is not None and unit.result.failure is not None:
        return unit.host not in unit.node.tolerated
    return unit.host not in quarantined


def _same(other: ExecutionNode, node: ExecutionNode, hook: Hook) -> bool:
    """A failed post hook fails its scope for the next; other moments don't hear of each other."""
    if other.hook != hook or hook.moment == "post":
        return other.hook == hook
    first = len(hook.scope) + 1
    return other.id[first:].partition("/")[0] == node.id[first:].partition("/")[0]
