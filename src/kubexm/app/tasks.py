"""Look at runs and stop them: list, show, logs, cancel."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

import msgspec

from kubexm.app import places
from kubexm.app.params import LogParams
from kubexm.common.nearest import did_you_mean
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE
from kubexm.engine.undo import SETTLE, UNDO, is_undo
from kubexm.engine.way_back import WayBack, way_back
from kubexm.errors import InvalidInput, StoreError, UnknownPath
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.history import Span
from kubexm.plan.node import ANY_HOST, ExecutionNode
from kubexm.plan.pauses import WorkClock
from kubexm.plan.records import RunState
from kubexm.plan.result import (
    GraphExecutionResult,
    HostResult,
    NodeResult,
    as_left,
    node_message,
    node_status,
)
from kubexm.plan.select import named
from kubexm.store import Run, Store, StoredLine

FOLLOW_SECONDS = 0.5
UNDER_WAY = "was under way when the run was interrupted"


class TaskDetail(msgspec.Struct, frozen=True):
    """A run, its graph, and what is known of every unit."""

    run: Run
    graph: ExecutionGraph
    result: GraphExecutionResult
    lives: Sequence[Span] = ()
    """When somebody worked on it."""
    said: bool = False
    """Whether its log has a line."""


class TaskLine(msgspec.Struct, frozen=True):
    """A run in a list, and how many seconds were worked on it."""

    run: Run
    worked: float


def list_runs(
    home: Home, limit: int = 50, unusable: Callable[[StoreError], None] = lambda _: None
) -> list[TaskLine]:
    """The latest runs, newest first; simulated ones too, as far as their stores can be used."""
    found: list[TaskLine] = []
    for store in places.stores(home, unusable):
        found.extend(
            TaskLine(run, WorkClock(store.lives(run)).total) for run in store.runs(limit=limit)
        )
    return sorted(found, key=lambda line: line.run.created, reverse=True)[:limit]


def show(home: Home, task: str) -> TaskDetail:
    """One run with the result of every unit so far."""
    with places.store_of(home, task) as store:
        run = store.run(task)
        graph = store.documents(task).graph
        result = result_of(run, graph, store.state(task))
        return TaskDetail(run, graph, result, store.lives(run), _has_log(store, task))


def has_log(home: Home, task: str) -> bool:
    """Whether the log of a run has a line."""
    with places.store_of(home, task) as store:
        return _has_log(store, task)


def _has_log(store: Store, task: str) -> bool:
    return bool(store.log_lines(task, limit=1))


def cancel(home: Home, task: str) -> Run:
    """Tell the process that works on a run to stop; it can be resumed later."""
    with places.store_of(home, task) as store:
        run = store.run(task)
        if store.request_cancel(task) is None:
            raise _nobody(run)
        return run


def _nobody(run: Run) -> InvalidInput:
    if run.interrupted:
        return InvalidInput(
            f"nobody works on task `{run.id}` now: it was interrupted",
            hint=f"there is nothing to stop; go on with: kubexm task resume {run.id}",
        )
    return InvalidInput(
        f"nobody works on task `{run.id}` now: it has ended, {run.status}",
        hint=f"there is nothing to stop; `kubexm task show {run.id}` shows what came of it",
    )


async def logs(home: Home, params: LogParams) -> AsyncIterator[StoredLine]:
    """The lines a run said; with `follow`, until it has ended."""
    with places.store_of(home, params.task) as store:
        after = params.after
        wanted = _wanted(store, params)
        while True:
            over = not params.follow or store.run(params.task).holder is None
            for line in filter(wanted, _lines(store, params, after)):
                after = line.seq
                yield line
            if over:
                return
            await asyncio.sleep(FOLLOW_SECONDS)


def _lines(store: Store, params: LogParams, after: int) -> Iterable[StoredLine]:
    while lines := store.log_lines(params.task, after=after, host=params.host):
        yield from lines
        after = lines[-1].seq


def _wanted(store: Store, params: LogParams) -> Callable[[StoredLine], bool]:
    """Tells the lines of the named nodes; `UnknownPath` for a node or host that is not there."""
    if params.node is None and params.host is None:
        return lambda line: True
    graph = _expanded(store.documents(params.task).graph, store.state(params.task))
    if params.host is not None and params.host not in (*graph.hosts, CONTROL_NODE):
        hint = did_you_mean(params.host, graph.hosts)
        raise UnknownPath(f"`--host {params.host}`: `{graph.name}` has no such host", hint=hint)
    if params.node is None:
        return lambda line: True
    undo = f"{UNDO}/" if is_undo(params.node) else ""
    ids = {f"{undo}{id}" for id in named(graph, (params.node.removeprefix(undo),), "--node")}
    # What an expander adds while somebody listens is below it.
    return lambda line: line.node in ids or line.node.partition("/@")[0] in ids


def result_of(run: Run, graph: ExecutionGraph, state: RunState) -> GraphExecutionResult:
    """What is known of a run, in the shape of its final result."""
    whole = _expanded(graph, state)
    past = way_back(state, whole.compensations)
    return GraphExecutionResult(
        graph_name=graph.name,
        status=run.status,
        node_results={id: _node(node, state, past, run) for id, node in whole.nodes.items()},
        start_time=run.started,
        end_time=run.ended,
        degraded=run.degraded,
        message=run.message,
        quarantined=dict(state.quarantined),
        rollback=_rollback(whole, state, run) if state.turned is not None else None,
    )


def _expanded(graph: ExecutionGraph, state: RunState) -> ExecutionGraph:
    for (node, _), done in state.done.items():
        if (more := done.fragment) is not None and not is_undo(node):
            graph = graph.merge(more.nodes, more.joins, more.compensations)
    return graph


def _node(node: ExecutionNode, state: RunState, past: WayBack, run: Run) -> NodeResult:
    hosts: dict[str, HostResult] = {}
    tolerated = set()
    for host in (ANY_HOST,) if node.one_of else node.hosts:
        done = state.done.get((node.id, host))
        place = state.bound.get(node.id, host) if node.one_of else host
        result = done.result if done is not None else _unknown(node.id, host, place, state, run)
        if result.changed and (node.id, host) not in state.late:
            result = _after_undo(node.id, result, past)
        if done is not None and done.quarantines and not done.blocks:
            tolerated.add(result.host_name)
        hosts[result.host_name] = result
    return _added_up(node, hosts, frozenset(tolerated))


def _after_undo(id: str, result: HostResult, past: WayBack) -> HostResult:
    """What is to be said of a change that may have been taken back, or left."""
    if past.is_taken_back(id, result.host_name):
        return replace(result, status="RolledBack")
    why = past.why_left(id, result.host_name)
    return as_left(result, why) if why is not None else result


def _added_up(
    node: ExecutionNode, hosts: Mapping[str, HostResult], tolerated: frozenset[str]
) -> NodeResult:
    status = node_status(hosts.values(), tolerated)
    starts = [host.start_time for host in hosts.values() if host.start_time is not None]
    ends = [host.end_time for host in hosts.values() if host.end_time is not None]
    return NodeResult(
        node_name=node.name,
        step_name=node.step.kind,
        status=status,
        message=node_message(hosts, status),
        start_time=min(starts, default=None),
        end_time=max(ends, default=None),
        changed=any(host.changed for host in hosts.values()),
        host_results=dict(hosts),
    )


def _unknown(id: str, host: str, place: str, state: RunState, run: Run) -> HostResult:
    """What can be said of a unit without an end; `place` is the host it runs on."""
    if run.status == "Cancelled":
        return HostResult(place, "Cancelled", message=f"not started: {run.message}")
    if (id, host) not in state.under_way:
        return HostResult(place)
    if run.interrupted:
        return HostResult(place, message=UNDER_WAY)
    return HostResult(place, "Running")


def _rollback(graph: ExecutionGraph, state: RunState, run: Run) -> GraphExecutionResult:
    """The undo so far: only units that have come to an end are known."""
    nodes: dict[str, dict[str, HostResult]] = {}
    for (id, _), done in state.done.items():
        if is_undo(id):
            nodes.setdefault(id, {})[done.result.host_name] = done.result
    origins = _undoing(graph, state)
    results = {
        id: _added_up(origins[id.removesuffix(SETTLE)], hosts, frozenset())
        for id, hosts in nodes.items()
    }
    failed = any(node.status == "Failed" for node in results.values())
    over = run.status not in ("Running", "Cancelled")
    return GraphExecutionResult(
        graph_name=f"{graph.name} (undo)",
        status="Failed" if failed else "Success" if over else run.status,
        node_results=results,
    )


def _undoing(graph: ExecutionGraph, state: RunState) -> dict[str, ExecutionNode]:
    """The nodes of the way back by path: undone ones, compensations and what those added."""
    forth = (*graph, *(node for item in graph.compensations for node in item.nodes))
    added = (done.fragment.nodes for done in state.done.values() if done.fragment is not None)
    return {
        **{f"{UNDO}/{node.id}": node for node in (*forth, *itertools.chain(*state.former))},
        **{node.id: node for nodes in added for node in nodes},
    }
