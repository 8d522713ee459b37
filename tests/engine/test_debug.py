"""The debugger: one unit at a time, asked before each and after every failure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests import virtual
from tests.engine.stage import (
    Actor,
    LoadedPlay,
    ProbedPlay,
    Stage,
    _Runtime,
    fails,
    graph_of,
    of,
    play,
    step,
)

from kubexm.engine import Control, MemoryJournal, Options, execute
from kubexm.engine.debug import Choice, Debugger, Situation
from kubexm.errors import StepFailed
from kubexm.plan import GraphExecutionResult, Key, chain, node, per_host
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.records import RunState
from kubexm.runner.host import Command, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Minter, NotYet, Reader, Step, Verdict


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
    stage: Stage,
    person: Person,
    graph: ExecutionGraph,
    *breakpoints: str,
    journal: MemoryJournal | None = None,
) -> GraphExecutionResult:
    control = Control()
    debugger = Debugger(person.ask, control, breakpoints)
    return virtual.run(
        execute(
            graph,
            _Runtime(stage),
            Options(parallelism=1),
            load=debugger.wrap(stage.load),
            journal=journal or MemoryJournal(),
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
    assert statuses(result) == {"a": "Success", "b": "Cancelled", "c": "Cancelled"}
    assert result.node_results["b"].host_results["h"].message == "aborted in the debugger"


def test_a_unit_at_which_the_run_was_aborted_runs_when_it_is_resumed() -> None:
    first, journal = Stage(), MemoryJournal()
    debugged(first, Person("run", "abort"), three(), journal=journal)
    later = Stage()

    result = later.run(three(), state=RunState.fold(journal.records))

    assert later.started() == [("b", "h"), ("c", "h")]
    assert result.status == "Success"


def test_a_failed_unit_at_which_the_run_was_aborted_runs_when_it_is_resumed() -> None:
    first, journal = Stage(a=fails("no")), MemoryJournal()
    aborted = debugged(first, Person("run", "abort"), three(), journal=journal)
    later = Stage()

    result = later.run(three(), state=RunState.fold(journal.records))

    said = aborted.node_results["a"].host_results["h"].message
    assert (aborted.status, said) == ("Cancelled", "aborted in the debugger; before that: no")
    assert result.status == "Success"
    assert [name for name, _ in later.started()] == ["a", "b", "c"]


@pytest.mark.parametrize("role", [Reader, Minter])
def test_what_needs_a_value_that_was_skipped_by_hand_says_so(role: type[Step]) -> None:
    stage = Stage(r=Actor(role=role, values={"v": 1}))
    graph = graph_of(
        chain(play("r", "h", provides=[Key("v")]), play("a", "h", needs=["v"]), play("b", "h"))
    )
    answers: tuple[Choice, ...] = ("skip", "run") if role is Reader else ("run", "skip")

    result = debugged(stage, Person(*answers), graph, "r", "a")

    assert ("r", "h") not in stage.started()
    assert of(result, "r", "h").satisfied
    assert of(result, "a", "h").message == (
        "needs the value `v`, but `r` on `h` left none: skipped by hand"
    )


def test_an_aborted_minter_has_changed_nothing() -> None:
    stage = Stage(r=Actor(role=Minter, values={"v": 1}))
    graph = graph_of(chain(play("r", "h", provides=[Key("v")]), play("a", "h", needs=["v"])))

    result = debugged(stage, Person("abort"), graph, "r")

    assert (of(result, "r", "h").status, of(result, "r", "h").changed) == ("Cancelled", False)


def test_it_asks_once_however_often_a_unit_looks_again() -> None:
    looks = iter((NotYet(1.0, "wait"), NotYet(1.0, "wait"), None))
    stage, person = Stage(a=Actor(run=lambda ctx: next(looks), verifies=True)), Person("run")
    stage.actors["a"].precheck = lambda ctx: (
        Verdict.holds() if stage.started("end") else Verdict.needed("no")
    )

    debugged(stage, person, graph_of(play("a", "h")))

    assert len(person.asked) == 1


def test_commands_are_shown_as_they_would_be_typed() -> None:
    class Looking(ProbedPlay):
        def probe(self, host: Host) -> Sequence[Command]:
            return (host.command("grep", "two words", "/etc/motd"),)

    stage, person = Stage(), Person("run")
    stage.load = lambda node: LoadedPlay(Looking(stage, node.id, Actor()), None)  # type: ignore[method-assign]

    debugged(stage, person, graph_of(play("a", "h")))

    assert person.asked[0].commands == ("grep 'two words' /etc/motd",)


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

    assert statuses(result) == {"a": "Skipped", "b": "Success", "c": "Success"}
    assert result.node_results["a"].host_results["h"].message == "failed, skipped by hand"
    assert result.status == "Success"


def test_a_failed_unit_can_be_left_failed() -> None:
    stage = Stage(a=fails("no"))

    result = debugged(stage, Person("run", "fail"), three())

    assert statuses(result) == {"a": "Failed", "b": "Skipped", "c": "Skipped"}


def test_what_it_shows_is_redacted() -> None:
    stage, person = Stage(a=fails("no login: hunter22")), Person("run", "fail")
    control = Control()
    debugger = Debugger(person.ask, control, redact=lambda text: text.replace("hunter22", "***"))

    virtual.run(
        execute(
            graph_of(node("a", step(), on=["h"])),
            _Runtime(stage),
            Options(parallelism=1),
            load=debugger.wrap(stage.load),
            journal=MemoryJournal(),
            control=control,
        )
    )

    assert person.asked[1].error == "no login: ***"
