"""The result of a run, added up from the units of its walk."""

from __future__ import annotations

import msgspec

from kubexm.engine.scheduler import Scheduler
from kubexm.engine.topology import NodeState, Unit
from kubexm.engine.undo import UNDO
from kubexm.plan.result import (
    GraphExecutionResult,
    HostResult,
    NodeResult,
    Status,
    node_message,
    node_status,
)

replace = msgspec.structs.replace


def node_results(walk: Scheduler) -> dict[str, NodeResult]:
    """A result for every node that exists, in the order of the graph and its expansions."""
    return {
        id: _node_result(state, walk.cancelled)
        for id, state in walk.topology.states.items()
        if state.units
    }


def _node_result(state: NodeState, cancelled: str | None) -> NodeResult:
    hosts = {unit.host: _host_result(unit, cancelled) for unit in state.units.values()}
    status = node_status(hosts.values(), frozenset(state.tolerated))
    starts = [host.start_time for host in hosts.values() if host.start_time is not None]
    ends = [host.end_time for host in hosts.values() if host.end_time is not None]
    return NodeResult(
        node_name=state.spec.name,
        step_name=state.spec.step.kind,
        status=status,
        message=node_message(hosts, status),
        start_time=min(starts, default=None),
        end_time=max(ends, default=None),
        changed=any(host.changed for host in hosts.values()),
        host_results=hosts,
    )


def _host_result(unit: Unit, cancelled: str | None) -> HostResult:
    if unit.result is not None:
        return unit.result
    if cancelled is not None:
        return HostResult(unit.host, "Cancelled", message=f"not started: {cancelled}")
    return HostResult(unit.host)


def run_status(walk: Scheduler, nodes: dict[str, NodeResult]) -> Status:
    """Failed if anything failed that nobody tolerates or ignores."""
    if walk.failure is not None:
        return "Failed"
    if walk.cancelled is not None and any(node.status == "Cancelled" for node in nodes.values()):
        return "Cancelled"
    return "Success"


def with_rollback(
    result: GraphExecutionResult, walk: Scheduler, back: Scheduler
) -> GraphExecutionResult:
    """The result of a run that was undone: what is undone is RolledBack."""
    undone = node_results(back)
    status = run_status(back, undone)
    rollback = GraphExecutionResult(
        graph_name=f"{result.graph_name} (undo)",
        status=status,
        node_results=undone,
        start_time=min((n.start_time for n in undone.values() if n.start_time), default=None),
        end_time=max((n.end_time for n in undone.values() if n.end_time), default=None),
        message=str(back.failure) if back.failure is not None else back.cancelled or "",
    )
    nodes = {
        id: _rolled_back(node, undone, id, frozenset(walk.topology.states[id].tolerated))
        for id, node in result.node_results.items()
    }
    whole: Status = "RolledBack" if status == "Success" else status
    return replace(result, status=whole, node_results=nodes, rollback=rollback)


def _rolled_back(
    node: NodeResult, undone: dict[str, NodeResult], id: str, tolerated: frozenset[str]
) -> NodeResult:
    hosts = {
        name: replace(host, status="RolledBack")
        if host.changed and _taken_back(undone, id, name)
        else host
        for name, host in node.host_results.items()
    }
    status = node_status(hosts.values(), tolerated)
    return replace(node, host_results=hosts, status=status, message=node_message(hosts, status))


def _taken_back(undone: dict[str, NodeResult], id: str, host: str) -> bool:
    """By the undo of the unit itself, or by the compensation of a scope around it."""
    node = undone.get(f"{UNDO}/{id}")
    if node is not None:
        return host in node.host_results and node.host_results[host].status == "Success"
    parts = id.split("/")
    scopes = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    for scope in scopes:
        inner = [n for key, n in undone.items() if key.startswith(f"{UNDO}/{scope}/@compensate/")]
        if inner:
            return all(node.status == "Success" for node in inner)
    return False
