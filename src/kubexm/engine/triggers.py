"""Hooks: whether the scope that a hook belongs to was entered, succeeded or failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from kubexm.engine.topology import NodeState, Unit
from kubexm.plan.node import ANY_HOST, ExecutionNode, Hook, Join
from kubexm.plan.result import Cause, HostResult
from kubexm.plan.validation import inside, scopes_around

Answer = Literal["is due", "succeeded", "failed by a hook alone", "was not entered"]
"""A hook is due as far as its scope says, or why it is not; a cause may hold it back still."""
States = Mapping[str, NodeState]


class Scopes:
    """The nodes of every scope that has hooks.

    What is done before a scope enters it, so that what is to be done always is done after it.
    Beyond that hooks never count: whether a scope went well is told by its own nodes alone.
    """

    def __init__(self, states: States, is_lost: Callable[[str], bool]) -> None:
        self._states = states
        self._is_lost = is_lost
        self._bodies: dict[str, list[NodeState]] = {}

    def register(self, states: Iterable[NodeState]) -> None:
        """Take these nodes into the scopes they lie in."""
        fresh = list(states)
        for state in fresh:
            if (hook := state.spec.hook) is not None and hook.moment != "pre":
                self._bodies.setdefault(hook.scope, [])
        if self._bodies:
            for state in fresh:
                if state.spec.hook is None or state.spec.hook.moment == "pre":
                    self._join_bodies(state)

    def _join_bodies(self, state: NodeState) -> None:
        for scope in scopes_around(state.id):
            if (body := self._bodies.get(scope)) is not None:
                body.append(state)

    def answer(self, unit: Unit, hook: Hook) -> Answer:
        """Whether this hook is due, now that everything before it is final."""
        results = list(self._results(hook, unit.host))
        if not any(_started(result) for _, result in results):
            return "was not entered"
        if hook.moment != "on-failure":
            return "is due"
        own = [(state, result) for state, result in results if state.spec.hook is None]
        bad = [result for state, result in own if not _good(state, result)]
        if not bad:
            return "succeeded"
        return "failed by a hook alone" if all(map(self._follows_hook, bad)) else "is due"

    def _results(self, hook: Hook, host: str) -> Iterator[tuple[NodeState, HostResult]]:
        for state in self._bodies.get(hook.scope, ()):
            for unit in state.units.values() if hook.barrier else _of_host(state, host):
                result = unit.result
                if result is not None and not self._is_lost(unit.host) and not _idle(unit):
                    yield state, result

    def _follows_hook(self, result: HostResult) -> bool:
        """Held back by the failure of a hook, which triggers no other hook."""
        state = self._states.get(result.cause.node) if result.cause is not None else None
        return state is not None and state.spec.hook is not None

    def own_failure(self, unit: Unit, hook: Hook) -> Cause | None:
        """The failure of an earlier node of the same hook, which holds this one back."""
        root = _root(unit.node.id, hook)
        for other in self._before(unit.node.vertex, unit.host, root):
            result = other.result
            if result is not None and not _good(other.node, result):
                failure = result.failure or "failed"
                return result.cause or Cause(other.node.id, other.host, result.message, failure)
        return None

    def _before(self, vertex: ExecutionNode | Join, host: str, root: str) -> Iterator[Unit]:
        """The units of the same hook that this one waited for, through joins and holes."""
        for id in vertex.after:
            if inside(id, root):
                units = self._everywhere(self._states[id], root)
                yield from (unit for unit in units if self._counts_at_barrier(unit))
        for id in vertex.after_same_host:
            if inside(id, root):
                state = self._states[id]
                here = state.units.get(host)
                yield from (here,) if here is not None else self._before(state.vertex, host, root)

    def _counts_at_barrier(self, unit: Unit) -> bool:
        if unit.result is not None and unit.result.failure is not None:
            return unit.host not in unit.node.tolerated
        return unit.node.spec.one_of or not self._is_lost(unit.host)

    def _everywhere(self, state: NodeState, root: str) -> Iterator[Unit]:
        yield from state.units.values()
        if not state.units:
            for id in (*state.vertex.after, *state.vertex.after_same_host):
                if inside(id, root):
                    yield from self._everywhere(self._states[id], root)


def _of_host(state: NodeState, host: str) -> Iterable[Unit]:
    """What happened for a host: on it, for all hosts at once, or elsewhere by its expander."""
    if f"/@{host}/" in state.id:
        return state.units.values()
    unit = state.units.get(host) or state.units.get(ANY_HOST)
    return (unit,) if unit is not None else ()


def _root(id: str, hook: Hook) -> str:
    """The path that all nodes of this one hook lie under."""
    start = len(hook.scope) + 1
    return f"{hook.scope}/{id[start:].split('/', 1)[0]}"


def _idle(unit: Unit) -> bool:
    """A minter that did not run; that is on record only since the end of this life, or before."""
    result = unit.result
    return unit.node.work.minted and result is not None and not result.attempts


def _started(result: HostResult) -> bool:
    return result.satisfied or result.status in ("Success", "Failed", "Cancelled")


def _good(state: NodeState, result: HostResult) -> bool:
    return result.satisfied or result.status == "Success" or state.spec.ignore_errors
