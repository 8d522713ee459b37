"""The result of a run, added up from the units of its walk."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from kubexm.engine.failures import clipped
from kubexm.engine.lifecycle import Finished
from kubexm.engine.losses import Losses
from kubexm.engine.options import Options
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.topology import NodeState, Unit
from kubexm.engine.undo import is_left
from kubexm.engine.way_back import WayBack
from kubexm.plan import records
from kubexm.plan.result import (
    GraphExecutionResult,
    HostResult,
    NodeResult,
    Status,
    as_left,
    node_message,
    node_status,
)

replace = msgspec.structs.replace
Earlier = Mapping[records.Unit, records.UnitDone]
"""How the units of a run have ended, in this life or before."""


def host_result(
    unit: Unit, finished: Finished, runtime: EngineRuntime, options: Options
) -> HostResult:
    """What a unit came to, without secrets and not longer than is kept."""
    limit, redact = options.output_limit, runtime.redact
    return HostResult(
        host_name=unit.host,
        status=finished.status,
        message=clipped(redact(finished.message), limit) if finished.message else "",
        stdout=clipped(redact(finished.stdout), limit) if finished.stdout else "",
        stderr=clipped(redact(finished.stderr), limit) if finished.stderr else "",
        start_time=datetime.fromtimestamp(unit.started, UTC) if unit.attempt else None,
        end_time=datetime.fromtimestamp(runtime.now(), UTC),
        skipped=finished.skipped,
        # What an earlier run of a unit changed stays changed, whatever came of the next.
        changed=finished.changed or (unit.result is not None and unit.result.changed),
        attempts=unit.attempt,
        failure=finished.failure.failure if finished.failure is not None else None,
        cause=finished.cause,
        sign=finished.sign,
        diff=clipped(redact(finished.diff), limit) if finished.diff else "",
    )


def node_results(
    states: Mapping[str, NodeState], cancelled: str | None, earlier: Earlier
) -> dict[str, NodeResult]:
    """A result for every node that exists, in the order of the graph and its expansions.

    What a walk that was stopped did not come to is as it was left `earlier`.
    """
    return {
        id: _node_result(state, cancelled, earlier) for id, state in states.items() if state.units
    }


def _node_result(state: NodeState, cancelled: str | None, earlier: Earlier) -> NodeResult:
    results = [_result_of(unit, cancelled, earlier) for unit in state.units.values()]
    hosts = {result.host_name: result for result in results}
    status = node_status(hosts.values(), state.tolerated)
    starts = [host.start_time for host in hosts.values() if host.start_time is not None]
    ends = [host.end_time for host in hosts.values() if host.end_time is not None]
    return NodeResult(
        node_name=state.spec.name,
        step_name=state.spec.step.kind,
        status=status,
        message=node_message(hosts, status),
        start_time=min(starts) if starts else None,
        end_time=max(ends) if ends else None,
        changed=any(host.changed for host in hosts.values()),
        host_results=hosts,
    )


def _result_of(unit: Unit, cancelled: str | None, earlier: Earlier) -> HostResult:
    if unit.result is not None:
        return unit.result
    if cancelled is not None:
        if (done := earlier.get(unit.key)) is not None:
            return done.result
        return HostResult(unit.host, "Cancelled", message=f"not started: {cancelled}")
    return HostResult(unit.host)


def run_status(losses: Losses, cancelled: str | None, nodes: Mapping[str, NodeResult]) -> Status:
    """Cancelled if it was stopped before its end, whatever had failed by then: it can go on."""
    if cancelled is not None and _has_more_to_do(nodes):
        return "Cancelled"
    return "Failed" if losses.failure is not None else "Success"


def _has_more_to_do(nodes: Mapping[str, NodeResult]) -> bool:
    hosts = (host for node in nodes.values() for host in node.host_results.values())
    return any(host.status == "Cancelled" for host in hosts)


def nothing_to_do(nodes: Mapping[str, NodeResult]) -> str:
    """What to say of a run that had nothing to do; nothing of any other."""
    if not nodes:
        return "nothing to do: the graph is empty"
    units = [host for node in nodes.values() for host in node.host_results.values()]
    if all(unit.satisfied for unit in units):
        which = "the only unit is" if len(units) == 1 else f"all {len(units):,} units are"
        return f"nothing to do: {which} satisfied"
    if all(unit.satisfied or _changes_nothing(unit) for unit in units):
        which = "the only unit changes" if len(units) == 1 else f"all {len(units):,} units change"
        return f"nothing to do: {which} nothing"
    return ""


def _changes_nothing(unit: HostResult) -> bool:
    """It had to run, but only to look, to wait or to ask."""
    return unit.status == "Success" and not unit.changed and unit.sign != "?"


def with_rollback(
    result: GraphExecutionResult,
    undone: dict[str, NodeResult],
    losses: Losses,
    cancelled: str | None,
) -> GraphExecutionResult:
    """The result of a run that was undone, as far as it was."""
    status = run_status(losses, cancelled, undone)
    missed = _missed(undone) if status == "Success" else ""
    if missed:
        status = "Failed"
    rollback = GraphExecutionResult(
        graph_name=f"{result.graph_name} (undo)",
        status=status,
        node_results=undone,
        start_time=min((n.start_time for n in undone.values() if n.start_time), default=None),
        end_time=max((n.end_time for n in undone.values() if n.end_time), default=None),
        message=str(losses.failure) if losses.failure is not None else missed or cancelled or "",
    )
    whole: Status = status if status != "Success" else "RolledBack"
    if status == "Success" and not _any_undone(undone):
        whole = result.status  # all of it is still there
    if result.status == "Cancelled":
        whole = "Cancelled"
    return replace(result, status=whole, rollback=rollback)


def _any_undone(undone: Mapping[str, NodeResult]) -> bool:
    hosts = ((id, host) for id, node in undone.items() for host in node.host_results.values())
    return any(not is_left(id, host) for id, host in hosts)


def _missed(undone: Mapping[str, NodeResult]) -> str:
    """The first unit that was held back, on a host that could not be reached."""
    for node in undone.values():
        for host in node.host_results.values():
            if host.status == "Skipped" and not host.satisfied:
                return host.message
    return ""


def rolled_back(
    result: GraphExecutionResult,
    states: Mapping[str, NodeState],
    undone: Mapping[str, NodeResult],
    changed: Mapping[str, tuple[str, ...]],
) -> GraphExecutionResult:
    """What had been changed and is undone is RolledBack; what has no undo says so."""
    past = WayBack({id: node.host_results for id, node in undone.items()})
    nodes = dict(result.node_results)
    for id, names in changed.items():
        hosts = dict(nodes[id].host_results)
        for name in names:
            if past.is_taken_back(id, name):
                hosts[name] = replace(hosts[name], status="RolledBack")
            elif (why := past.why_left(id, name)) is not None:
                hosts[name] = as_left(hosts[name], why)
        status = node_status(hosts.values(), states[id].tolerated)
        message = node_message(hosts, status)
        nodes[id] = replace(nodes[id], host_results=hosts, status=status, message=message)
    return replace(result, node_results=nodes)
