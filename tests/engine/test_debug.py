"""The debugger: one unit at a time, asked before each and after every failure."""

from __future__ import annotations

from tests import virtual
from tests.engine.stage import Actor, Stage, _Runtime, graph_of, step

from kubexm.engine import Control, MemoryJournal, Options, execute
from kubexm.engine.debug import Choice, Debugger, Situation
from kubexm.errors import StepFailed
from kubexm.plan import GraphExecutionResult, node, per_host
from kubexm.plan.graph import ExecutionGraph
from kubexm.runtime.contexts import StepContext


class Person:
    """Answers the debugger from a list, and remembers what was asked."""

    def __init__(self, *answers: Choice) -> None:
        self.answers = list(answers)
        self.asked: list[Situation] = []

    async def ask(self, situation: Situation) -> Choice:
        self.asked.append(situation)
        return self.answers.pop(0)


def three() -> ExecutionGraph:
    return graph_of(per_host(*(node(name, step(), on=["h"]) for name in ("a", "b", "c"))))


def debugged(
    stage: Stage, person: Person, graph: ExecutionGraph, *breakpoints: str
) -> GraphExecutionResult:
    control = Control()
    debugger = Debugger(person.ask, control, breakpoints)
    return virtual.run(
        execute(
            graph,
            _Runtime(stage),
            Options(parallelism=1),
            load=debugger.wrap(stage.load),
            journal=MemoryJournal(),
            control=control,
        )
    )


def statuses(result: GraphExecutionResult) -> dict[str, str]:
    return {id: found.host_results["h"].status for id, found in result.node_results.items()}


def test_it_asks_before_each_unit_and_a_skipped_one_does_not_run() -> None:
    stage, person = Stage(), Person("run", "skip", "run")

    result = debugged(stage, person, three())

    assert [asked.node for asked in person.asked] == ["a", "b", "c"]
    assert stage.started() == [("a", "h"), ("c", "h")]
    assert statuses(result) == {"a": "Success", "b": "Skipped", "c": "Success"}


def test_at_a_breakpoint_only_that_path_is_asked_for() -> None:
    stage, person = Stage(), Person("run")

    debugged(stage, person, three(), "b")

    assert [asked.node for asked in person.asked] == ["b"]
    assert len(stage.started()) == 3


def test_continue_asks_no_more() -> None:
    stage, person = Stage(), Person("continue")

    debugged(stage, person, three())

    assert len(person.asked) == 1
    assert len(stage.started()) == 3


def test_abort_cancels_the_run() -> None:
    stage, person = Stage(), Person("run", "abort")

    result = debugged(stage, person, three())

    assert result.status == "Cancelled"
    assert stage.started() == [("a", "h")]


def test_a_failed_unit_can_be_tried_again_by_hand() -> None:
    tries: list[int] = []

    def twice(ctx: StepContext) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise StepFailed("not yet")

    stage = Stage(a=Actor(run=twice))
    person = Person("run", "retry", "retry", "run", "run")

    result = debugged(stage, person, three())

    assert [asked.error for asked in person.asked[:3]] == ["", "not yet", "not yet"]
    assert statuses(result)["a"] == "Success"


def test_a_failed_unit_can_be_passed_over_by_hand() -> None:
    def fail(ctx: StepContext) -> None:
        raise StepFailed("no")

    stage = Stage(a=Actor(run=fail))

    result = debugged(stage, Person("run", "skip", "run", "run"), three())

    assert statuses(result) == {"a": "Success", "b": "Success", "c": "Success"}
