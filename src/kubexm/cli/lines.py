"""The plain view: a line for everything that a person would tell a colleague."""

from __future__ import annotations

import sys

from kubexm.common.counting import counted
from kubexm.engine.bus import Subscription
from kubexm.engine.undo import is_left, is_settling, is_undo
from kubexm.plan import events
from kubexm.plan.events import AnyEvent
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.result import LEFT, HostResult, gist


async def show_lines(subscription: Subscription, _graph: ExecutionGraph) -> None:
    """Print a line for each change, failure and lost host, as it happens."""
    async for event in subscription:
        if (line := line_of(event)) is not None:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()


def line_of(event: AnyEvent) -> str | None:
    """What to say of an event; nothing for what is satisfied already."""
    match event:
        case events.RunStarted():
            verb = "checking" if event.dry_run else "going on with" if event.resumed else "running"
            return f"{verb} {event.graph}: {counted(event.units, 'unit')}"
        case events.UnitFinished(replayed=False):
            return _finished(event.node, event.host, event.result)
        case events.TurnedBack():
            nodes = counted(sum(not is_settling(node) for node in event.undo), "node")
            return (
                f"rolling back {nodes}, as far as there is an undo, because of {event.cause.brief}"
            )
        case _:
            return _trouble(event)


def _trouble(event: AnyEvent) -> str | None:
    match event:
        case events.UnitRetried():
            return (
                f"retry    {event.host}  {event.node}: {_why(event.message)}"
                f" (attempt {event.attempt}, again in {event.delay:g} s)"
            )
        case events.HostQuarantined():
            word = "lost    " if event.cause.failure == "unreachable" else "quarantined"
            return f"{word} {event.host}: {_why(event.cause.message)}"
        case events.ListenerLagged():
            return f"…        {counted(event.dropped, 'event')} not shown"
        case _:
            return None


def _finished(node: str, host: str, result: HostResult) -> str | None:
    if result.status == "Failed":
        return f"failed   {host}  {node}: {_why(result.message)}"
    if result.status == "Cancelled":
        return f"stopped  {host}  {node}"
    if result.changed:
        return f"{_word(node, result)} {host}  {node}{_took(result)}"
    if result.sign == "?":
        return f"would ?  {host}  {node}: {_why(result.message)}"
    if is_left(node, result):
        return f"left     {host}  {node}: {result.message.removeprefix(f'{LEFT}: ')}"
    return None


def _word(node: str, result: HostResult) -> str:
    if result.done_before or result.status == "Skipped":
        return "before  "
    if result.sign:
        return f"would {result.sign} "
    if is_settling(node):
        return "settled "
    return "undone  " if is_undo(node) else "changed "


def _took(result: HostResult) -> str:
    if result.start_time is None or result.end_time is None:
        return ""
    return f"  {(result.end_time - result.start_time).total_seconds():.2f} s"


def _why(message: str) -> str:
    return gist(message) or "no reason given"
