"""The end of a run: what came of it, where the time went, and the next command to type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from kubexm.app.runs import RunOutcome
from kubexm.app.tasks import TaskDetail
from kubexm.cli.foretold import foretold
from kubexm.cli.tree import Told, named, tree
from kubexm.common.counting import counted, few
from kubexm.engine.undo import COMPENSATE, SETTLE, UNDO, is_left, is_settling
from kubexm.plan import codec
from kubexm.plan import report as reports
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.result import LEFT, GraphExecutionResult, HostResult, Status, gist
from kubexm.plan.validation import inside
from kubexm.store import Run

DONE = (0, 5)
"""The exit codes of a run that did its work, if not on all hosts."""
SHOWN_FAILURES = 20
OUTPUT_LINES = 12
_MARKS: dict[Status, str] = {"Failed": "✗", "Success": "✓", "RolledBack": "↶", "Running": "…"}


def exit_code(result: GraphExecutionResult) -> int:
    """0 done, 1 failed, 3 cancelled, 5 done without quarantined hosts."""
    if result.status == "Cancelled":
        return 3
    if result.status != "Success":
        return 1
    return 5 if result.degraded else 0


def summary(outcome: RunOutcome, *, said: bool = False, made: str = "") -> str:
    """What a person wants to know when a run is over.

    `said`: whether its log has a line; `made`: what there is to tell of the cluster it has made.
    """
    if outcome.result.dry_run:
        return foretold(outcome.result)
    text = reports.as_text(reports.report(outcome.graph, outcome.result, lives=outcome.lives))
    lines = [*_ended(text, outcome.result)]
    lines += _done_before(outcome)
    lines += [made, ""] if made else []
    if outcome.run is not None:
        lines.append(_next(outcome.graph, outcome.result, outcome.run.id, said))
    return "\n".join(lines)


def _done_before(outcome: RunOutcome) -> list[str]:
    """How much of what the run has changed was done when somebody worked on it before."""
    if len(outcome.lives) < 2:
        return []
    units = (unit for _, unit in _units(outcome.result))
    changed = [unit for unit in units if unit.changed and unit.status == "Success"]
    now = outcome.lives[-1].start
    before = sum(unit.done_before or _ended_before(unit, now) for unit in changed)
    return [f"{before:,} of {len(changed):,} changed had been done before", ""] if before else []


def _ended_before(unit: HostResult, moment: float) -> bool:
    return unit.end_time is not None and unit.end_time.timestamp() < moment


def detail(found: TaskDetail) -> str:
    """The same for a run of the past, or one that is under way, and every unit of it."""
    run = found.run
    part = " · a selected part" if run.selected else ""
    lines = [f"task {run.id} · {run.name} · {state(run)}{part}"]
    if run.holder is not None:
        lines.append(f"worked on by {run.holder}")
    stands = _not_undone(found.result.rollback)
    tell = partial(_told, lambda id, host: any(inside(id, path) for path in stands.get(host, ())))
    lines += ["", *tree(found.result, tell), "", *_ended(_report(found), found.result)]
    if run.interrupted:
        lines.append(f"hint: go on with: kubexm task resume {run.id}")
    elif run.status == "Running":
        lines.append(f"hint: `kubexm task logs {run.id} --follow` shows what is said")
    elif run.status != "Success" or run.degraded:
        lines.append(_next(found.graph, found.result, run.id, found.said))
    elif found.said:
        lines.append(f"hint: {_logs(run.id)}")
    return "\n".join(lines)


def _report(found: TaskDetail) -> str:
    report = reports.report(found.graph, found.result, lives=found.lives)
    return reports.as_text(report, interrupted=found.run.interrupted)


def _told(stands: Callable[[str, str], bool], id: str, host: HostResult) -> Told:
    """What a unit came to; why, where it did not do its work."""
    if host.satisfied:
        return "=", "", ""
    reason = gist(host.message) if host.status != "Success" else ""
    if host.changed and host.status == "Success" and stands(id, host.host_name):
        reason = "changed, not undone"
    return _MARKS.get(host.status, "·"), reason, ""


def _ended(report: str, result: GraphExecutionResult) -> list[str]:
    """Counts and times, then each failure with what it said last."""
    lines = [report.rstrip("\n"), *_failures(result)]
    if result.rollback is not None:
        lines += ["", *_rolled_back(result.rollback), *_failures(result.rollback)]
    return [*lines, ""]


def _rolled_back(rollback: GraphExecutionResult) -> list[str]:
    """How many units were undone, and what is still there, and why."""
    units = list(_units(rollback))
    left = [(id, host) for id, host in units if is_left(id, host)]
    stands = [(id, host) for id, host in units if _stands(host)]
    settled = sum(is_settling(id) and not _stands(host) for id, host in units)
    undone = counted(len(units) - len(left) - len(stands) - settled, "unit")
    lines = [f"rollback: {rollback.status}, {undone} undone"]
    if rollback.status == "Running":
        lines = [f"rollback: on its way back, {undone} undone so far"]
    if stands:
        lines.append(f"  not undone: {counted(len(stands), 'unit')}")
        lines += _grouped(stands, lambda host: f", because: {_why(host.message)}")
    if left:
        lines.append(f"  {LEFT}: {counted(len(left), 'unit')}")
        lines += _grouped(left, lambda host: f", because: {host.message.removeprefix(f'{LEFT}: ')}")
    return lines


def _grouped(
    units: Iterable[tuple[str, HostResult]], why: Callable[[HostResult], str]
) -> Iterator[str]:
    """A line for each node of an undo graph and each reason, with the hosts."""
    groups: dict[tuple[str, str], list[str]] = {}
    for id, host in units:
        groups.setdefault((_origin(id), why(host)), []).append(host.host_name)
    return (f"    {node}  [{named(hosts)}]{reason}" for (node, reason), hosts in groups.items())


def _not_undone(rollback: GraphExecutionResult | None) -> dict[str, list[str]]:
    """By host the nodes and scopes that a rollback has set out to undo, and could not."""
    found: dict[str, list[str]] = {}
    for id, host in _units(rollback) if rollback is not None else ():
        if _stands(host):
            found.setdefault(host.host_name, []).append(_origin(id).partition(COMPENSATE)[0])
    return found


def _stands(undo: HostResult) -> bool:
    """Whether an undo came to nothing: it failed, was held back, or was stopped."""
    return undo.status in ("Failed", "Skipped", "Cancelled") and not undo.satisfied


def _origin(id: str) -> str:
    return id.removeprefix(f"{UNDO}/").removesuffix(SETTLE)


def _units(result: GraphExecutionResult) -> Iterator[tuple[str, HostResult]]:
    for id, node in result.node_results.items():
        yield from ((id, host) for host in node.host_results.values())


def _why(message: str) -> str:
    return gist(message) or "no reason given"


def _failures(result: GraphExecutionResult) -> list[str]:
    lines: list[str] = []
    failed = [(id, host) for id, host in _units(result) if host.status == "Failed"]
    for id, host in failed[:SHOWN_FAILURES]:
        lines += ["", f"✗ {id} on {host.host_name}", *_indented(host.message)]
        output = host.stderr or host.stdout
        if output.strip():
            lines += _indented("\n".join(output.splitlines()[-OUTPUT_LINES:]), "  | ")
    if len(failed) > SHOWN_FAILURES:
        lines.append(f"… and {counted(len(failed) - SHOWN_FAILURES, 'more failure')}")
    return lines


def _indented(text: str, mark: str = "  ") -> list[str]:
    return [f"{mark}{line}" for line in text.splitlines()]


def _next(graph: ExecutionGraph, result: GraphExecutionResult, task: str, said: bool) -> str:
    if result.status == "Cancelled":
        return f"hint: go on with: kubexm task resume {task}"
    if result.status in ("Failed", "RolledBack") or result.degraded:
        logs = f"{_logs(task)}; " if said else ""
        other = _without_the_gone(result) if _is_deletion(graph) else ""
        return f"hint: {logs}try again with: kubexm task retry {task}{other}"
    return f"hint: `kubexm task show {task}` shows every unit"


def _is_deletion(graph: ExecutionGraph) -> bool:
    return next(iter(graph.nodes), "").startswith("delete-cluster/")


def _without_the_gone(result: GraphExecutionResult) -> str:
    """How a cluster is deleted whose hosts never come back."""
    if not (gone := sorted(result.quarantined)):
        return ""
    flags = " ".join(f"--without {host}" for host in gone)
    return f"; if nothing brings {few(gone)} back, delete the cluster with `{flags}` added"


def _logs(task: str) -> str:
    return f"`kubexm task logs {task}` shows what was said"


def as_data(outcome: RunOutcome) -> dict[str, Any]:
    """The outcome for programs."""
    report = reports.report(outcome.graph, outcome.result, lives=outcome.lives)
    return {
        "task": task_data(outcome.run, report.duration) if outcome.run is not None else None,
        "world": str(outcome.world) if outcome.world is not None else None,
        "warnings": msgspec.to_builtins(outcome.warnings),
        "result": msgspec.json.decode(codec.encode_result(outcome.result)),
        "report": msgspec.to_builtins(report),
    }


def detail_data(found: TaskDetail) -> dict[str, Any]:
    """A run of the past for programs, in the same shape."""
    report = reports.report(found.graph, found.result, lives=found.lives)
    return {
        "task": task_data(found.run, report.duration),
        "world": found.run.world,
        "result": msgspec.json.decode(codec.encode_result(found.result)),
        "report": msgspec.to_builtins(report),
    }


def task_data(run: Run, worked: float) -> dict[str, Any]:
    """A run for programs, with what can be told from its fields."""
    told = {"state": state(run), "interrupted": run.interrupted}
    return {**msgspec.to_builtins(run), **told, "worked": worked}


def state(run: Run) -> str:
    """The status of a run, or that nobody works on it though it has not ended."""
    return "Interrupted" if run.interrupted else run.status
