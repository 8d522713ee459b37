"""The report of a run: counts, the critical path of what really happened, where the time went."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import graphs
from tests.unit_order import follows, units

from kubexm.plan import (
    Cause,
    ExecutionFragment,
    ExecutionGraph,
    GraphExecutionResult,
    HookFragment,
    HostResult,
    NodeResult,
    StepSpec,
    build,
    chain,
    node,
    parallel,
    per_host,
    scope,
)
from kubexm.plan.history import History, Span
from kubexm.plan.records import Unit
from kubexm.plan.report import RunReport, as_text, duration, report
from kubexm.plan.result import Status

GOLDEN = Path(__file__).parent / "golden"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ("n1", "n2")
Spans = Mapping[Unit, tuple[float, float]]


def step(name: str, *hosts: str, kind: str = "command") -> ExecutionFragment:
    fragment = node(name, StepSpec(kind), on=hosts or HOSTS)
    assert fragment is not None
    return fragment


def graph_of(fragment: ExecutionFragment | None) -> ExecutionGraph:
    assert fragment is not None
    return build("g", fragment.nodes, joins=fragment.joins, hosts=HOSTS)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def host_result(host: str, span: tuple[float, float], status: Status = "Success") -> HostResult:
    start, end = map(at, span)
    return HostResult(host, status, start_time=start, end_time=end, changed=True)


def result_of(graph: ExecutionGraph, spans: Spans, **rest: object) -> GraphExecutionResult:
    """The result of a run in which these units ran at these times, and no others."""
    nodes = {item.id: NodeResult(item.name, item.step.kind, "Success") for item in graph}
    for (id, host), span in spans.items():
        known = nodes.get(id, NodeResult(id, "command", "Success"))
        hosts = {**known.host_results, host: host_result(host, span)}
        nodes[id] = msgspec.structs.replace(known, host_results=hosts)
    return GraphExecutionResult("g", "Success", nodes, **rest)  # type: ignore[arg-type]  # as given


def path_of(graph: ExecutionGraph, spans: Spans) -> list[Unit]:
    found = report(graph, result_of(graph, spans))
    return [(unit.node, unit.host) for unit in found.critical_path]


def test_the_path_goes_through_the_slowest_host_of_a_barrier() -> None:
    graph = graph_of(chain(step("a"), step("b")))

    spans = {("a", "n1"): (0, 1), ("a", "n2"): (0, 5), ("b", "n1"): (5, 7), ("b", "n2"): (5, 6)}

    assert path_of(graph, spans) == [("a", "n2"), ("b", "n1")]


def test_the_path_stays_on_a_host_along_same_host_edges() -> None:
    graph = graph_of(per_host(step("a"), step("b")))

    spans = {("a", "n1"): (0, 1), ("a", "n2"): (0, 5), ("b", "n1"): (1, 9), ("b", "n2"): (5, 6)}

    assert path_of(graph, spans) == [("a", "n1"), ("b", "n1")]


def test_the_path_goes_through_holes() -> None:
    graph = graph_of(per_host(step("a"), step("b", "n1"), step("c")))

    spans = {("a", "n1"): (0, 1), ("a", "n2"): (0, 2), ("b", "n1"): (1, 2), ("c", "n2"): (2, 9)}

    assert path_of(graph, spans) == [("a", "n2"), ("c", "n2")]


def test_a_unit_that_never_ran_is_looked_through() -> None:
    graph = graph_of(chain(step("a"), step("b"), step("c")))

    spans = {("a", "n1"): (0, 1), ("a", "n2"): (0, 3), ("c", "n1"): (3, 4)}

    assert path_of(graph, spans) == [("a", "n2"), ("c", "n1")]


def test_the_path_goes_through_what_an_expander_added() -> None:
    graph = graph_of(chain(step("a", "n1"), step("b", "n1")))

    spans = {
        ("a", "n1"): (0, 1),
        ("a/@n1/x", "n1"): (1, 3),
        ("a/@n1/y", "n1"): (3, 6),
        ("b", "n1"): (6, 7),
    }

    assert path_of(graph, spans) == [
        ("a", "n1"),
        ("a/@n1/x", "n1"),
        ("a/@n1/y", "n1"),
        ("b", "n1"),
    ]  # fmt: skip


def test_a_long_lane_of_holes_is_no_trouble() -> None:
    steps = [step(f"s{number}", HOSTS[number % 2]) for number in range(3000)]
    graph = graph_of(per_host(step("a"), *steps, step("z", "n1")))

    found = path_of(graph, {("a", "n1"): (0, 1), ("z", "n1"): (1, 2)})

    assert found == [("a", "n1"), ("z", "n1")]


def test_waiting_is_the_time_between_ready_and_started() -> None:
    graph = graph_of(per_host(step("a", "n1"), step("b", "n1")))

    found = report(graph, result_of(graph, {("a", "n1"): (2, 3), ("b", "n1"): (7, 9)}))

    assert [(unit.start, unit.duration, unit.waited) for unit in found.critical_path] == [
        (0, 1, 0),
        (5, 2, 4),
    ]


def test_of_a_unit_that_asked_for_another_on_its_way_only_what_came_after_that_counts() -> None:
    graph = graph_of(per_host(step("authorities", "n1"), step("certificates", "n1")))
    spans = {("authorities", "n1"): (2.0, 3.0), ("certificates", "n1"): (1.0, 6.0)}

    found = report(graph, result_of(graph, spans, start_time=at(1)))

    assert moments(found) == [(1, 1, 1), (2, 3, 0)]
    assert [unit.duration for unit in found.slowest] == [5, 1]
    assert "critical path: 4.0 s running, 1.0 s waiting\n" in as_text(found)


def span(start: float, end: float) -> Span:
    return Span(at(start).timestamp(), at(end).timestamp())


def moments(found: RunReport) -> list[tuple[float, float, float]]:
    return [(unit.start, unit.duration, unit.waited) for unit in found.critical_path]


def test_a_run_that_was_reopened_did_not_wait_in_between() -> None:
    graph = graph_of(per_host(step("a", "n1"), step("b", "n1"), step("c", "n1")))
    spans = {("a", "n1"): (1, 3), ("b", "n1"): (1000, 1001), ("c", "n1"): (1005, 1006)}
    lives = [span(0, 4), span(998, 1007)]

    found = report(graph, result_of(graph, spans), lives=lives)

    assert moments(found) == [(0, 2, 0), (5, 1, 2), (10, 1, 4)]
    assert found.duration == 4 + 9


def test_what_was_done_again_later_did_not_hold_back_what_was_kept() -> None:
    graph = graph_of(
        chain(step("a", "n1"), step("b", "n1"), step("c", "n1"), step("d", "n1"), step("e", "n1"))
    )
    spans = {
        ("a", "n1"): (100, 101),  # satisfied, so it was looked at again
        ("b", "n1"): (102, 103),
        ("c", "n1"): (2, 3),
        ("d", "n1"): (4, 5),
        ("e", "n1"): (104, 105),
    }

    found = report(graph, result_of(graph, spans), lives=[span(0, 6), span(100, 106)])

    assert [(unit.node, unit.start) for unit in found.critical_path] == [
        ("c", 0),
        ("d", 2),
        ("e", 8),
    ]
    assert sum(unit.duration + unit.waited for unit in found.critical_path) <= found.duration
    assert all(unit.waited <= 4 for unit in found.slowest)


def test_a_failed_unit_is_part_of_the_path_where_its_hook_waited_for_the_rollback() -> None:
    undrain = HookFragment("always", step("undrain"))
    page = HookFragment("on-failure", step("page", "n1"), barrier=True)
    batch = scope("batch", per_host(step("swap"), step("healthy")), hooks=[undrain])
    unlock = HookFragment("always", step("unlock", "n1"), barrier=True)
    graph = graph_of(scope("p", chain(batch, step("next")), hooks=[page, unlock]))
    spans = {
        ("p/batch/swap", "n1"): (0, 1),
        ("p/batch/swap", "n2"): (0, 1),
        ("p/batch/healthy", "n1"): (1, 2),
        ("p/batch/@always-1/undrain", "n1"): (2, 3),
        ("p/batch/healthy", "n2"): (1, 6),  # it failed
        ("p/@on-failure-1/page", "n1"): (6, 9),
        ("p/batch/@always-1/undrain", "n2"): (10, 11),
        ("p/@always-1/unlock", "n1"): (11, 12),
    }

    found = report(graph, result_of(graph, spans))

    assert [(unit.node, unit.host, unit.waited) for unit in found.critical_path] == [
        ("p/batch/swap", "n2", 0),
        ("p/batch/healthy", "n2", 0),
        ("p/@on-failure-1/page", "n1", 0),
        ("p/@always-1/unlock", "n1", 2),
    ]


def test_a_run_that_has_not_ended_says_how_far_it_is() -> None:
    graph = graph_of(step("a"))
    begun = result_of(graph, {("a", "n1"): (2, 5)}, start_time=at(0))
    begun = msgspec.structs.replace(begun, status="Running")
    nothing = msgspec.structs.replace(result_of(graph, {}, start_time=at(0)), status="Running")

    under_way = as_text(report(graph, begun, lives=[span(0, 60)]))
    interrupted = as_text(report(graph, begun, lives=[span(0, 5)]), interrupted=True)
    at_once = as_text(report(graph, nothing, lives=[span(0, 0)]), interrupted=True)

    assert under_way.startswith("g: Running for 1 min 00 s\n")
    assert interrupted.startswith("g: Interrupted, its last unit ended after 5.0 s\n")
    assert at_once.startswith("g: Interrupted before any unit ended\n")


def test_times_of_another_clock_are_taken_if_they_are_given() -> None:
    graph = graph_of(per_host(step("a", "n1"), step("b", "n1")))
    result = result_of(graph, {("a", "n1"): (0, 1), ("b", "n1"): (1, 2)})

    found = report(graph, result, {("a", "n1"): (100.0, 110.0), ("b", "n1"): (110.0, 111.0)})

    assert [unit.duration for unit in found.critical_path] == [10, 1]
    assert found.duration == 11


def test_a_clock_that_was_set_back_gives_no_negative_times() -> None:
    graph = graph_of(per_host(step("a", "n1"), step("b", "n1")))

    found = report(graph, result_of(graph, {("a", "n1"): (5, 4), ("b", "n1"): (3, 2)}))

    assert all(unit.duration >= 0 and unit.waited >= 0 for unit in found.slowest)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("exit 1\ncause: swap is on\nremedy: no\ncause: other", "a on n1: swap is on"),
        (
            "exit 1\njournal of kubelet:\n  a cause: none",
            "a on n1: exit 1 journal of kubelet: a cause: none",
        ),
    ],
)
def test_the_headline_of_a_failure_says_its_cause_or_else_how_it_begins(
    said: str, told: str
) -> None:
    graph = graph_of(step("a", "n1"))
    result = result_of(graph, {("a", "n1"): (0, 1)}, message=f"a on n1: {said}")
    failed = msgspec.structs.replace(
        result.node_results["a"].host_results["n1"], status="Failed", message=said
    )
    node = msgspec.structs.replace(result.node_results["a"], host_results={"n1": failed})

    text = as_text(report(graph, msgspec.structs.replace(result, node_results={"a": node})))

    assert text.splitlines()[1] == f"  {told}"


def test_units_are_counted_by_what_they_came_to() -> None:
    hosts = {
        "a": HostResult("a", "Success", changed=True),
        "b": HostResult("b", "Success"),
        "c": HostResult("c", "Skipped", skipped=True),
        "d": HostResult("d", "Skipped"),
        "e": HostResult("e", "Failed"),
        "f": HostResult("f", "RolledBack", changed=True),
    }
    result = GraphExecutionResult("g", "Failed", {"x": NodeResult("x", "k", host_results=hosts)})

    found = report(build("g", [], hosts=()), result)

    assert found.units == 6
    assert found.counts == {
        "changed": 1,
        "unchanged": 1,
        "satisfied": 1,
        "held back": 1,
        "failed": 1,
        "rolled back": 1,
    }


def test_time_is_summed_by_module_and_by_step() -> None:
    graph = graph_of(
        scope(
            "p",
            chain(
                scope("m1", scope("t", step("a", kind="file"))), scope("m2", step("b", kind="file"))
            ),
        )
    )
    spans = {
        ("p/m1/t/a", "n1"): (0.0, 1.0),
        ("p/m1/t/a", "n2"): (0.0, 2.0),
        ("p/m2/b", "n1"): (2.5, 7.0),
    }

    found = report(graph, result_of(graph, spans))

    assert [
        (share.name, share.units, share.duration, share.waited) for share in found.by_module
    ] == [
        ("m2", 1, 4.5, 0.5),
        ("m1", 2, 3.0, 0.0),
    ]
    assert [(share.name, share.units, share.duration) for share in found.by_step] == [
        ("file", 3, 7.5)
    ]


def test_the_slowest_units_come_first() -> None:
    graph = graph_of(parallel(*(step(f"s{number}", "n1") for number in range(20))))
    spans = {(f"s{number}", "n1"): (0.0, float(number)) for number in range(20)}

    found = report(graph, result_of(graph, spans), slowest=3)

    assert [unit.node for unit in found.slowest] == ["s19", "s18", "s17"]


def test_a_run_without_units_has_a_report() -> None:
    empty = build("g", [], hosts=())

    found = report(empty, GraphExecutionResult("g", "Success", {}))

    assert (found.duration, found.critical_path, found.counts) == (0.0, (), {})
    assert as_text(found) == "g: Success in 0.0 s\n  nothing to do\n"


def test_a_report_is_data() -> None:
    graph = graph_of(per_host(step("a", "n1"), step("b", "n1")))
    found = report(graph, result_of(graph, {("a", "n1"): (0, 1), ("b", "n1"): (1, 2)}))

    written = msgspec.json.encode(found)

    assert msgspec.json.decode(written, type=type(found)) == found
    assert b'"criticalPath":[{"node":"a","host":"n1","start":0.0' in written


@st.composite
def runs(draw: st.DrawFn) -> tuple[ExecutionGraph, dict[Unit, Span]]:
    """A graph and a run of it in which some units never ran and others waited for a slot."""
    graph = draw(graphs(values=False))
    before = follows(graph)
    spans: dict[Unit, Span] = {}
    for unit in sorted(units(graph), key=lambda unit: (len(before[unit]), unit)):
        if draw(st.integers(0, 5)) == 0:
            continue
        ready = max((spans[other].end for other in before[unit] if other in spans), default=0.0)
        start = ready + draw(st.sampled_from([0.0, 0.0, 3.0]))
        spans[unit] = Span(start, start + draw(st.integers(1, 9)))
    return graph, spans


@given(runs())
def test_a_unit_was_held_back_by_the_last_of_all_it_waited_for(
    run: tuple[ExecutionGraph, dict[Unit, Span]],
) -> None:
    graph, spans = run
    history = History(graph, result_of(graph, dict(spans)), spans)
    before = follows(graph)

    for unit in spans:
        ends = {other: spans[other].end for other in before[unit] if other in spans}
        found = history.held_back_by(unit)
        assert found.end == max(ends.values(), default=float("-inf"))
        assert found.unit is None or ends[found.unit] == found.end


@given(runs())
def test_the_path_is_the_whole_of_the_time(run: tuple[ExecutionGraph, dict[Unit, Span]]) -> None:
    graph, spans = run

    found = report(graph, result_of(graph, dict(spans)), spans)

    end = begin = min((span.start for span in spans.values()), default=0.0)
    for unit in found.critical_path:
        assert begin + unit.start == end + unit.waited
        end = begin + unit.start + unit.duration
    assert end == max((span.end for span in spans.values()), default=0.0)


@st.composite
def demanding_runs(draw: st.DrawFn) -> tuple[ExecutionGraph, dict[Unit, Span]]:
    """The same where units began before what they came to need, and had it made on their way."""
    graph, spans = draw(runs())
    early = {unit: draw(st.sampled_from([0.0, 0.0, 1.0, 4.0, 20.0])) for unit in spans}
    return graph, {
        unit: Span(max(0.0, span.start - early[unit]), span.end) for unit, span in spans.items()
    }


@given(demanding_runs())
def test_no_time_is_counted_twice_on_the_path(
    run: tuple[ExecutionGraph, dict[Unit, Span]],
) -> None:
    graph, spans = run

    found = report(graph, result_of(graph, dict(spans)), spans)

    assert sum(unit.duration + unit.waited for unit in found.critical_path) <= found.duration
    end = 0.0
    for unit in found.critical_path:
        assert end <= unit.start - unit.waited
        end = unit.start + unit.duration
    begin = min((span.start for span in spans.values()), default=0.0)
    assert begin + end == max((span.end for span in spans.values()), default=0.0)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.04, "0.0 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3599.9, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def long_run() -> tuple[ExecutionGraph, GraphExecutionResult]:
    steps = [step(f"step-{number}", kind=f"kind-{number % 12}") for number in range(30)]
    graph = graph_of(scope("create", chain(*(scope(f"m{n}", steps[n]) for n in range(30)))))
    spans = {
        (item.id, host): (number * 10.0 + 1.5, number * 10.0 + 1.5 + (number * 7) % 8 + wide)
        for number, item in enumerate(graph)
        for wide, host in enumerate(HOSTS)
    }
    lost = {"n2": Cause("create/m29/step-29", "n2", "no answer\nwithin 30 s", "unreachable")}
    ends = {"start_time": BEGIN, "end_time": BEGIN + timedelta(seconds=301)}
    return graph, result_of(graph, spans, degraded=True, quarantined=lost, **ends)


def test_the_text_of_a_report_is_the_golden_one() -> None:
    graph, result = long_run()

    written = as_text(report(graph, result))

    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / "report.txt").write_text(written)
    assert written == (GOLDEN / "report.txt").read_text()


def test_a_dry_run_says_what_would_be_done() -> None:
    signs = {
        "a": HostResult("a", "Success", sign="+"),
        "b": HostResult("b", "Success", sign="~"),
        "c": HostResult("c", "Skipped", skipped=True, sign="="),
        "d": HostResult("d", "Success", sign="?"),
        "e": HostResult("e", "Success", sign="+"),
    }
    node_result = NodeResult("x", "k", host_results=signs)
    result = GraphExecutionResult("g", "Success", {"x": node_result}, dry_run=True)

    found = report(build("g", [], hosts=()), result)

    assert found.signs == {"+": 2, "~": 1, "=": 1, "?": 1}
    assert as_text(found) == (
        "g: Success in 0.0 s (dry run: nothing was changed)\n"
        "  2 to make · 1 to alter · 1 satisfied · 1 known only when reached\n"
    )
