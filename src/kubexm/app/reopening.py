"""What a retry keeps of an ended run, and what it opens again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterable
from typing import Any

from kubexm.app import foreknown
from kubexm.app.following import Begun, followers, hooks_around
from kubexm.app.foreknown import Plan
from kubexm.app.former import Settled, as_planned, hosts_of, resources_of, to_settle
from kubexm.engine.undo import is_undo
from kubexm.engine.way_back import touched, way_back
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ANY_HOST, ExecutionNode
from kubexm.plan.records import Layer, Reopened, RunState, Unit, UnitDone
from kubexm.spec.expressions import compile_expression
from kubexm.spec.references import Reference


def reopening(state: RunState, plan: Plan, corrected: Plan | None) -> Reopened:
    """Open everything but what succeeded, was not undone, and stands on nothing that is new."""
    graph = (corrected or plan).graph
    comparison = _Comparison(state, plan, corrected or plan)
    succeeded = _succeeded(state)
    kept = comparison.unchanged(succeeded)
    begun = comparison.begun(kept)
    opened = frozenset(followers(graph, begun))
    kept.difference_update(opened, hooks_around(graph, begun, opened, state.done))
    kept = comparison.with_expanders(kept)
    units = state.done.keys() - kept
    standing, waiting = _standing(state, plan.graph), to_settle(state)
    changed = standing & (units | (state.intended - state.done.keys()))
    hosts = comparison.of_former(standing, changed, opened)
    unsettled = _unsettled(state, plan, standing) | hosts_of(waiting)
    return Reopened(
        at=time.time(),
        units=tuple(sorted(units)),
        changed=tuple(sorted(changed)),
        former=(*waiting, *as_planned(plan, state, hosts, waiting)),
        unsettled=tuple(sorted(unsettled)),
        still=_still(state, plan, standing, waiting) if unsettled else {},
    )


def _unsettled(state: RunState, plan: Plan, standing: Collection[Unit]) -> set[str]:
    """The hosts on which something is changed that the next rollback may take back."""
    if state.turned is None:
        return set()
    back = way_back(state, plan.graph.compensations)
    known = {host.name: host for host in plan.hosts}

    def is_left_for_good(id: str, host: str) -> bool:
        if back.why_left(id, host) is None:
            return False
        node = plan.graph.nodes.get(id)
        return node is None or host not in known or resources_of(node, known[host]) == ()

    places = {(unit[0], state.place(unit)) for unit in standing if unit not in state.late}
    hosts = {host for id, host in places if not is_left_for_good(id, host)}
    return hosts | hosts_of(state.not_undone(left=False))


def _still(
    state: RunState, plan: Plan, standing: Iterable[Unit], waiting: Iterable[Layer]
) -> dict[str, tuple[str, ...]]:
    """By host what is not taken back there, where that can be told of all that is not."""
    known, former = {host.name: host for host in plan.hosts}, state.places()
    found: dict[str, set[str]] = {name: set() for name in known}
    nodes = [
        (plan.graph.nodes.get(id), host)
        for id, host in ((unit[0], state.place(unit)) for unit in standing)
        if id in plan.graph.nodes or (id, host) not in former
    ]
    layers = itertools.chain(state.not_undone(), waiting)
    nodes += [(node, host) for node in itertools.chain(*layers) for host in node.hosts]
    for node, host in nodes:
        if host in found:
            resources = resources_of(node, known[host]) if node is not None else None
            if resources is None:
                del found[host]
            else:
                found[host].update(resources)
    return {host: tuple(sorted(names)) for host, names in found.items()}


def _standing(state: RunState, graph: ExecutionGraph) -> set[Unit]:
    """The units whose changes are still there, as far as anybody knows."""
    changed = {unit for unit, done in state.done.items() if done.result.changed}
    # Some a life had begun, or was to look at again, that ended before it came to them.
    changed |= state.intended - state.done.keys()
    changed = {unit for unit in changed if not is_undo(unit[0])}
    if state.turned is None:
        return changed
    back, settled = way_back(state, graph.compensations), Settled(state)

    def is_over(id: str, host: str) -> bool:
        node = graph.nodes.get(id)
        is_settled = node is None or settled(node, host)
        return is_settled and back.is_taken_back(id, host)

    return {
        unit for unit in changed if unit in state.late or not is_over(unit[0], state.place(unit))
    }


def _succeeded(state: RunState) -> set[Unit]:
    # Whatever a rollback set out to take back starts again at its precheck: the undo may have
    # failed half-way, and what it left may have stood on what is gone.
    undone = touched(state)
    return {
        unit
        for unit, done in state.done.items()
        if done.result.status == "Success" and unit not in undone and not is_undo(unit[0])
    }


Hosts = dict[str, list[str]]
"""By node the hosts in question."""


class _Comparison:
    """Tells what a corrected plan does as the one before did."""

    def __init__(self, state: RunState, before: Plan, after: Plan) -> None:
        self._done = state.done
        self._place = state.place
        self._is_corrected = before is not after
        self._before = before.graph.nodes
        self._after = after.graph.nodes
        self._places = {id: frozenset(node.hosts) for id, node in self._before.items()}
        self._new_places = {id: frozenset(node.hosts) for id, node in self._after.items()}
        self._hosts = {host.name: host for host in before.hosts}
        self._new_hosts = {host.name: host for host in after.hosts}
        self._expanders = {
            node.id: unit
            for unit, done in state.done.items()
            if done.fragment is not None
            for node in done.fragment.nodes
        }

    def unchanged(self, units: Iterable[Unit]) -> set[Unit]:
        """Those of these units that are to be done the same way."""
        return {unit for unit in units if self._is_same(unit)}

    def begun(self, kept: Collection[Unit]) -> Begun:
        """Where the work begins, if only these units are kept."""
        begun = Begun()
        for id, node in self._after.items():
            for host in node.hosts:
                unit = id, ANY_HOST if node.one_of else host
                if not self._is_planned_as_before(id, host):
                    begun.anew.setdefault(id, set()).add(host)
                elif unit not in kept and not _restores(node, self._done.get(unit)):
                    begun.again.setdefault(id, set()).add(host)
        for id, _ in self._done.keys() - kept:
            if (expander := self._expanders.get(id)) is not None:
                begun.again.setdefault(expander[0], set()).add(expander[1])
        return begun

    def with_expanders(self, kept: set[Unit]) -> set[Unit]:
        """Those that are in the plan, or were added by one that is kept as well."""
        return {unit for unit in kept if self._stands(unit, kept)}

    def of_former(
        self, standing: Collection[Unit], changed: Collection[Unit], opened: Collection[Unit]
    ) -> Hosts:
        """By node the hosts of what stands, if the order of today is not that in which it came.

        That is so where some of it does something else now, or comes after what is new.
        """
        follows = self._is_corrected and any(unit in opened for unit in standing)
        if not follows and not any(map(self._differs, changed)):
            return {}
        hosts: Hosts = {}
        for unit in sorted(standing):
            hosts.setdefault(unit[0], []).append(self._place(unit))
        return hosts

    def _differs(self, unit: Unit) -> bool:
        if unit[0] in self._expanders:
            return True
        return not self._is_planned_as_before(unit[0], self._place(unit))

    def _stands(self, unit: Unit, kept: set[Unit]) -> bool:
        expander = self._expanders.get(unit[0])
        return expander is None or (expander in kept and self._stands(expander, kept))

    def _is_same(self, unit: Unit) -> bool:
        if (expander := self._expanders.get(unit[0])) is not None:
            # What an expander has added is as good as the expander.
            return expander in self._done and self._is_same(expander)
        return self._is_planned_as_before(unit[0], self._done[unit].result.host_name)

    def _is_planned_as_before(self, id: str, host: str) -> bool:
        if not self._is_corrected:
            return True
        old, new = self._before.get(id), self._after.get(id)
        if old is None or new is None:
            return False
        if host not in self._places[id] or host not in self._new_places[id]:
            return False
        return _work(old) == _work(new) and self._sees_the_same(old, new, host)

    def _sees_the_same(self, old: ExecutionNode, new: ExecutionNode, host: str) -> bool:
        before, after = self._hosts.get(host), self._new_hosts.get(host)
        if before is None or after is None:
            return False
        return foreknown.parameters(old, before) == foreknown.parameters(new, after) and all(
            foreknown.looked_up(reference, before) == foreknown.looked_up(reference, after)
            for reference in _conditions(new)
        )


def _restores(node: ExecutionNode, done: UnitDone | None) -> bool:
    """Whether it was satisfied; if it is not any more, it restores what its followers saw."""
    if done is None or node.when is not None or node.step.provides:
        return False
    return done.result.satisfied


def _work(node: ExecutionNode) -> tuple[Any, ...]:
    """What a node does and after what; not where, how often and how patiently."""
    step = node.step
    edges = node.after, node.after_same_host
    return step.kind, step.needs, step.provides, node.when, node.one_of, node.hook, *edges


def _conditions(node: ExecutionNode) -> Iterable[Reference]:
    return compile_expression(node.when).references if node.when is not None else ()
