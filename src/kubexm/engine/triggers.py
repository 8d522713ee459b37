"""Hooks: whether the scope that a hook belongs to was entered, succeeded or failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from kubexm.engine.topology import NodeState, Unit
from kubexm.plan.node import Hook
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


def own_failure(unit: Unit, hook: Hook, states: Mapping[str, NodeState]) -> Cause | None:
    """The failure of an earlier node of the same hook, which holds this one back."""
    node = unit.node.spec
    for id in (*node.after, *node.after_same_host):
        state = states.get(id)
        if state is None or state.node is None or state.spec.hook != hook:
            continue
        for other in state.units.values():
            if other.result is not None and not _good(state, other.result):
                result = other.result
                return result.cause or Cause(id, other.host, result.message)
    return None
