"""What a run came to and where its time went, as data and as plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import msgspec

from kubexm.common.counting import counted
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.history import History, Span
from kubexm.plan.outline import cells, one_line
from kubexm.plan.pauses import WorkClock
from kubexm.plan.records import Unit
from kubexm.plan.result import CONNECT, Cause, GraphExecutionResult, HostResult, Sign, Status

Count = Literal[
    "changed",
    "unchanged",
    "satisfied",
    "failed",
    "held back",
    "cancelled",
    "rolled back",
    "running",
    "pending",
]
_COUNTS: Mapping[Status, Count] = {
    "Failed": "failed",
    "Skipped": "held back",
    "Cancelled": "cancelled",
    "RolledBack": "rolled back",
    "Running": "running",
    "Pending": "pending",
}


class UnitTime(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds: from the start of the run, how long it took, how long it was ready but waited."""

    node: str
    host: str
    start: float
    duration: float
    waited: float


class TimeShare(msgspec.Struct, frozen=True, rename="camel"):
    """The seconds that the units of one step kind or module took and waited, all together."""

    name: str
    units: int
    duration: float
    waited: float


class RunReport(msgspec.Struct, frozen=True, rename="camel"):
    """All there is to say at the end of a run."""

    graph_name: str
    status: Status
    dry_run: bool
    degraded: bool
    message: str
    duration: float
    units: int
    counts: dict[Count, int]
    """How many units came to what; what none came to is left out."""
    signs: dict[Sign, int]
    """In a dry run: how many units would do what."""
    without: dict[str, str]
    """Hosts that were lost on the way, and why."""
    critical_path: tuple[UnitTime, ...]
    """The units that the end had to wait for, one after the other: of each what came after the end
    of the one before it."""
    by_module: tuple[TimeShare, ...]
    by_step: tuple[TimeShare, ...]
    slowest: tuple[UnitTime, ...]


def report(
    graph: ExecutionGraph,
    result: GraphExecutionResult,
    times: Mapping[Unit, tuple[float, float]] | None = None,
    *,
    lives: Sequence[Span] = (),
    slowest: int = 10,
) -> RunReport:
    """The report of a run; with `times`, start and end of units as another clock saw them.

    `lives` are the times in which somebody worked on the run; by default it had a single one.
    """
    spans = {unit: Span(*time) for unit, time in times.items()} if times else _spans(result)
    clock = WorkClock(lives or [_life(result, spans.values(), known=times is None)])
    spans = {unit: clock.within(span) for unit, span in spans.items()}
    history = History(graph, result, spans)
    begin = min((span.start for span in spans.values()), default=0.0)
    units = {
        unit: _unit_time(unit, span, begin, max(begin, clock.beginning(span.start)), history)
        for unit, span in spans.items()
    }
    return RunReport(
        graph_name=result.graph_name,
        status=result.status,
        dry_run=result.dry_run,
        degraded=result.degraded,
        message=_message(result),
        duration=clock.total,
        units=sum(len(node.host_results) for node in result.node_results.values()),
        counts=_counted(_count(host) for host in _hosts(result)),
        signs=_counted(host.sign for host in _hosts(result) if host.sign),
        without={host: _why(cause) for host, cause in result.quarantined.items()},
        critical_path=tuple(_each_moment_once(units[unit] for unit in history.critical_path())),
        by_module=_shares(units.values(), lambda unit: _module(unit.node)),
        by_step=_shares(units.values(), lambda unit: result.node_results[unit.node].step_name),
        slowest=tuple(sorted(units.values(), key=lambda unit: -unit.duration)[:slowest]),
    )


def _why(cause: Cause) -> str:
    """Why a host is missing, where its name stands before it."""
    return f"could not be reached: {cause.message}" if cause.node == CONNECT else cause.brief


def _message(result: GraphExecutionResult) -> str:
    """What a run says of its end; of the unit that failed it the cause alone, if that is known."""
    for id, node in result.node_results.items():
        for host in node.host_results.values():
            cause = Cause(id, host.host_name, host.message)
            if host.status == "Failed" and str(cause) == result.message:
                return cause.brief
    return result.message


def _hosts(result: GraphExecutionResult) -> Iterator[HostResult]:
    return (host for node in result.node_results.values() for host in node.host_results.values())


def _spans(result: GraphExecutionResult) -> dict[Unit, Span]:
    return {
        (id, name): Span(host.start_time.timestamp(), host.end_time.timestamp())
        for id, node in result.node_results.items()
        for name, host in node.host_results.items()
        if host.start_time is not None and host.end_time is not None
    }


def _unit_time(unit: Unit, span: Span, begin: float, life: float, history: History) -> UnitTime:
    ready = max(history.held_back_by(unit).end, life)
    # Wall clocks are set now and then: no time is less than none.
    return UnitTime(
        *unit,
        start=span.start - begin,
        duration=max(0.0, span.end - span.start),
        waited=max(0.0, span.start - ready),
    )


def _each_moment_once(path: Iterable[UnitTime]) -> Iterator[UnitTime]:
    """Of each unit what came after the one before it, which may have run within it.

    What makes a value or a file that others need is started when the first of them asks for it.
    """
    reached = 0.0
    for unit in path:
        start, end = max(unit.start, reached), max(unit.start + unit.duration, reached)
        if start > unit.start:
            yield msgspec.structs.replace(unit, start=start, duration=end - start, waited=0.0)
        else:
            waited = min(unit.waited, unit.start - reached)
            yield msgspec.structs.replace(unit, waited=waited)
        reached = end


def _life(result: GraphExecutionResult, spans: Iterable[Span], *, known: bool) -> Span:
    """From the first to the last that is known of a run, on the clock of its units."""
    ends = [result.start_time, result.end_time] if known else []
    moments = [*(moment for span in spans for moment in span)]
    moments += [moment.timestamp() for moment in ends if moment is not None]
    return Span(min(moments, default=0.0), max(moments, default=0.0))


def _count(host: HostResult) -> Count:
    if host.satisfied:
        return "satisfied"
    return _COUNTS.get(host.status, "changed" if host.changed else "unchanged")


W = TypeVar("W")


def _counted(words: Iterable[W]) -> dict[W, int]:
    return dict(Counter(words).most_common())


def _module(id: str) -> str:
    """The segment below the pipeline's own, or that one for what is in no module."""
    segments = id.split("/")
    return segments[1] if len(segments) > 2 else segments[0]


def _shares(units: Iterable[UnitTime], name_of: Callable[[UnitTime], str]) -> tuple[TimeShare, ...]:
    found: dict[str, list[UnitTime]] = {}
    for unit in units:
        found.setdefault(name_of(unit), []).append(unit)
    shares = (
        TimeShare(
            name,
            len(some),
            sum(unit.duration for unit in some),
            sum(unit.waited for unit in some),
        )
        for name, some in found.items()
    )
    return tuple(sorted(shares, key=lambda share: -share.duration))


LONGEST_PATH = 10
"""So many units of the critical path are shown, the longest; shorter ones are summed up."""
LONGEST_LIST = 8
WIDEST_MESSAGE = 200


def as_text(found: RunReport, *, interrupted: bool = False) -> str:
    """The whole report in plain lines, readable without colour."""
    lines = [
        *_headline(found, "Interrupted" if interrupted else found.status),
        *_path(found.critical_path),
        *_table("by module", found.by_module),
        *_table("by step", found.by_step),
    ]
    return "\n".join(lines) + "\n"


def _headline(found: RunReport, state: str) -> Iterator[str]:
    degraded = f", without {counted(len(found.without), 'host')}" if found.degraded else ""
    dry = " (dry run: nothing was changed)" if found.dry_run else ""
    yield f"{one_line(found.graph_name)}: {_state(found, state)}{degraded}{dry}"
    if found.message:
        yield f"  {one_line(found.message, WIDEST_MESSAGE)}"
    yield f"  {' · '.join(_tally(found)) or 'nothing to do'}"
    for host, why in found.without.items():
        yield f"  without {host}: {one_line(why, WIDEST_MESSAGE)}"


def _state(found: RunReport, state: str) -> str:
    took = duration(found.duration)
    if state == "Interrupted":
        when = f", its last unit ended after {took}" if found.slowest else " before any unit ended"
        return f"{state}{when}"
    return {"Pending": "Pending", "Running": f"Running for {took}"}.get(state, f"{state} in {took}")


_WOULD: tuple[tuple[str, str], ...] = (
    ("+", "to make"),
    ("~", "to alter"),
    ("-", "to remove"),
    ("=", "satisfied"),
    ("?", "known only when reached"),
)


def _tally(found: RunReport) -> Iterator[str]:
    if found.dry_run:
        known = {str(sign): number for sign, number in found.signs.items()}
        yield from (f"{known[sign]} {words}" for sign, words in _WOULD if sign in known)
    else:
        yield from (f"{number} {count}" for count, number in found.counts.items())


def _path(path: tuple[UnitTime, ...]) -> Iterator[str]:
    if not path:
        return
    running = sum(unit.duration for unit in path)
    waiting = sum(unit.waited for unit in path)
    yield ""
    yield f"critical path: {duration(running)} running, {duration(waiting)} waiting"
    shown = sorted(path, key=lambda unit: -(unit.duration + unit.waited))[:LONGEST_PATH]
    kept = set(shown)
    for unit in path:
        if unit in kept:
            waited = f"  waited {duration(unit.waited)}" if unit.waited >= 0.05 else ""
            times = f"{duration(unit.start):>12}  +{duration(unit.duration):<11}"
            yield f"{times}  {one_line(unit.node)}  [{one_line(unit.host)}]{waited}"
    if rest := [unit for unit in path if unit not in kept]:
        yield f"  and {len(rest)} shorter, {duration(sum(unit.duration for unit in rest))}"


def _table(title: str, shares: tuple[TimeShare, ...]) -> Iterator[str]:
    if not shares:
        return
    shown = shares[:LONGEST_LIST]
    width = max(cells(title) - 2, *(cells(one_line(share.name, 40)) for share in shown))
    yield ""
    yield f"{title}{' ' * (width + 2 - cells(title))}     units      running      waiting"
    for share in shown:
        name = one_line(share.name, 40)
        times = f"{duration(share.duration):>13}{duration(share.waited):>13}"
        yield f"  {name}{' ' * (width - cells(name))}{share.units:>10}{times}"
    if len(shares) > len(shown):
        yield f"  and {len(shares) - len(shown)} more"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"
