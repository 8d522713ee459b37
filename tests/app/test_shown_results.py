"""What the journal tells of a run is what its result told, however it went."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from tests.engine.random_graphs import Scenario, scenarios
from tests.engine.stage import Actor, Stage, fails, play
from tests.engine.world import act
from tests.examples import many

from kubexm.app.tasks import result_of
from kubexm.plan import ExecutionFragment, ExecutionGraph, GraphExecutionResult, build, chain, scope
from kubexm.plan.records import (
    AnyRecord,
    LifeBegan,
    Reopened,
    RunState,
    UnitDone,
    UnitIntended,
)
from kubexm.plan.result import HostResult
from kubexm.step.contract import Expander
from kubexm.store import Run
from kubexm.store.lock import Holder
from kubexm.store.process import Process

Told = dict[tuple[str, str], tuple[str, str]]


def shown(graph: ExecutionGraph, state: RunState, like: GraphExecutionResult) -> Told:
    """What `kubexm task show` says of each unit."""
    run = Run("id", graph.name, like.status, "forward", datetime.now(UTC), message=like.message)
    return told(result_of(run, graph, state))


def told(result: GraphExecutionResult) -> Told:
    both = (result.node_results, result.rollback.node_results if result.rollback else {})
    return {
        (id, host.host_name): (host.status, host.message)
        for nodes in both
        for id, node in nodes.items()
        for host in node.host_results.values()
    }


@many(400)
@given(scenarios())
def test_a_run_is_shown_as_it_was_told(scenario: Scenario) -> None:
    story = act(scenario)

    state = RunState.fold(story.diary.records)

    assert shown(scenario.graph, state, story.ended) == told(story.ended)


def test_a_compensation_that_an_expander_added_is_shown() -> None:
    stage = Stage(c=fails())
    added = scope("app", play("x"), compensate=play("reset"))
    stage.actors["e"] = Actor(role=Expander, fragment=added)
    plan = chain(play("e"), play("c"))

    result = stage.run(plan, on_failure="rollback")

    assert told(result) == shown(graph_of(plan), RunState.fold(stage.records), result)
    assert told(result)["e/@h1/app/x", "h1"][0] == "RolledBack"


def test_what_settles_is_shown() -> None:
    stage = Stage(a=Actor(settles=True), c=fails())
    plan = chain(play("a"), play("c"))

    result = stage.run(plan, on_failure="rollback")

    assert told(result) == shown(graph_of(plan), RunState.fold(stage.records), result)
    assert ("@undo/a/@settle", "h1") in told(result)


def test_what_a_compensation_adds_is_shown() -> None:
    stage = Stage(c=fails())
    stage.actors["reset"] = Actor(role=Expander, fragment=play("x"))
    plan = chain(scope("app", play("b"), compensate=play("reset")), play("c"))

    result = stage.run(plan, on_failure="rollback")

    assert told(result) == shown(graph_of(plan), RunState.fold(stage.records), result)
    assert ("@undo/app/@compensate/reset/@h1/x", "h1") in told(result)


def graph_of(plan: ExecutionFragment) -> ExecutionGraph:
    return build("p", plan.nodes, joins=plan.joins, compensations=plan.compensations, hosts=("h1",))


SET_OUT = UnitIntended(at=1.0, node="a", host="h1", attempt=1)
DONE = UnitDone(at=2.0, node="a", host="h1", result=HostResult("h1", "Success"))
HOLDER = Holder("id", Process.current(), datetime.now(UTC))


def under_way(*records: AnyRecord, holder: Holder | None = HOLDER) -> tuple[str, str]:
    """What is said of a unit of a run that has not ended."""
    graph = graph_of(play("a"))
    run = Run("id", graph.name, "Running", "forward", datetime.now(UTC), holder=holder)
    return told(result_of(run, graph, RunState.fold(records)))["a", "h1"]


def test_a_unit_that_is_under_way_is_shown_as_running() -> None:
    began = LifeBegan(at=0.0)

    assert under_way(began) == ("Pending", "")
    assert under_way(began, SET_OUT) == ("Running", "")
    assert under_way(began, SET_OUT, DONE) == ("Success", "")


def test_a_unit_that_an_earlier_life_was_at_is_not_running_before_its_turn() -> None:
    again = LifeBegan(at=3.0)
    reopened = Reopened(at=2.5, units=(("a", "h1"),), changed=(("a", "h1"),))

    assert under_way(SET_OUT, again) == ("Pending", "")
    assert under_way(SET_OUT, DONE, reopened, again) == ("Pending", "")
    assert under_way(SET_OUT, again, SET_OUT) == ("Running", "")


def test_a_unit_of_an_interrupted_run_was_under_way() -> None:
    assert under_way(LifeBegan(at=0.0), SET_OUT, holder=None) == (
        "Pending",
        "was under way when the run was interrupted",
    )
