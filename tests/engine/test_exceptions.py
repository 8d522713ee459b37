"""Whatever a step does: it is that unit's failure, never the engine's and never a success."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.stage import Actor, Stage, fails, graph_of, of, play, raising, statuses

from kubexm.errors import InvalidGraph, KubexmError, StepFailed
from kubexm.plan import Key, RetryPolicy, chain, parallel
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Expander, Minter, NotYet, Outcome, Reader, Step, Verdict


class Odd(BaseException):
    """Something that is not even an Exception."""


ERRORS: list[BaseException] = [
    KubexmError("bad"),
    ValueError("bad"),
    StopIteration("bad"),
    StopAsyncIteration("bad"),
    RecursionError("bad"),
    MemoryError("bad"),
    TimeoutError("bad"),
    SystemExit(3),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    asyncio.InvalidStateError("bad"),
    ExceptionGroup("bad", [ValueError("x")]),
    Odd("bad"),
]


def name(value: Any) -> str:
    return type(value).__name__


def check(stage: Stage) -> None:
    """`a` fails on `h1`, what follows it there is held back, and all else succeeds."""
    result = stage.run(parallel(chain(play("a"), play("b")), play("c", "h2")))

    assert statuses(result) == {"a@h1": "Failed", "b@h1": "Skipped", "c@h2": "Success"}
    assert result.status == "Failed"
    assert of(result, "a").failure == "failed"
    assert of(result, "a").message


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_run_is_the_units_failure(error: BaseException) -> None:
    check(Stage(a=Actor(run=raising(error))))


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_run_is_the_units_failure_under_a_timeout(error: BaseException) -> None:
    stage = Stage(a=Actor(run=raising(error)))

    result = stage.run(chain(play("a", timeout=5.0), play("b")))

    assert statuses(result) == {"a@h1": "Failed", "b@h1": "Skipped"}


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_precheck_is_the_units_failure(error: BaseException) -> None:
    check(Stage(a=Actor(precheck=raising(error))))


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_judge_is_the_units_failure(error: BaseException) -> None:
    check(Stage(a=Actor(probes=True, judge=raising(error))))


@pytest.mark.parametrize("error", ERRORS, ids=name)
@pytest.mark.parametrize("role", [Reader, Expander], ids=name)
def test_any_exception_in_a_reader_or_expander_is_its_failure(
    role: type[Step], error: BaseException
) -> None:
    check(Stage(a=Actor(role=role, run=raising(error))))


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_diagnose_is_told_beside_the_failure(error: BaseException) -> None:
    stage = Stage(a=Actor(run=raising(StepFailed("first")), diagnose=raising(error)))

    message = of(stage.run(play("a")), "a").message

    assert message.startswith("first\nafterwards: ")


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_rollback_is_that_undos_failure(error: BaseException) -> None:
    stage = Stage(a=Actor(rollback=raising(error)), b=fails())
    stage.actors["b"].duration = 1.0

    plan = parallel(chain(play("a"), play("b")), play("c", "h2"))
    result = stage.run(plan, on_failure="rollback")

    assert result.rollback is not None
    assert statuses(result.rollback) == {"@undo/a@h1": "Failed", "@undo/c@h2": "Success"}


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_an_undo_of_itself_is_told_beside_the_failure(
    error: BaseException,
) -> None:
    actor = Actor(run=raising(StepFailed("first")), rollback=raising(error), undoes_itself=True)

    message = of(Stage(a=actor).run(play("a")), "a").message

    assert message.startswith("first\nafterwards: ")


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_a_condition_is_the_units_failure(error: BaseException) -> None:
    stage = Stage(a=Actor(when=raising(error)))

    result = stage.run(chain(play("a", when="…"), play("b")))

    assert statuses(result) == {"a@h1": "Failed", "b@h1": "Skipped"}


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_while_a_step_is_made_is_the_units_failure(error: BaseException) -> None:
    class Unbound(Stage):
        def load(self, node: Any) -> Any:
            loaded: Any = super().load(node)
            if node.id == "a":
                loaded.static = None
                loaded.bind = raising(error)
            return loaded

    check(Unbound())


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_is_tried_again_if_the_policy_says_so(error: BaseException) -> None:
    def at_first(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise error

    stage = Stage(a=Actor(run=at_first))

    result = stage.run(play("a", retry=RetryPolicy(attempts=2, delay=1.0)))

    assert (of(result, "a").status, of(result, "a").attempts) == ("Success", 2)


@pytest.mark.parametrize("error", ERRORS, ids=name)
def test_any_exception_in_a_minter_holds_back_who_needs_it(error: BaseException) -> None:
    stage = Stage(m=Actor(role=Minter, run=raising(error)))

    result = stage.run(chain(play("m", provides=[Key("t")]), play("a", needs=["t"])))

    assert statuses(result) == {"m@h1": "Failed", "a@h1": "Skipped"}


def test_the_message_names_an_exception_that_is_not_ours() -> None:
    stage = Stage(a=Actor(run=raising(ValueError("7 is odd"))), b=Actor(run=raising(ValueError())))

    result = stage.run(parallel(play("a"), play("b")))

    assert (of(result, "a").message, of(result, "b").message) == (
        "ValueError: 7 is odd",
        "ValueError",
    )


def test_a_step_that_can_not_be_made_for_its_diagnosis_keeps_its_first_failure() -> None:
    class Once(Stage):
        def load(self, node: Any) -> Any:
            loaded: Any = super().load(node)
            steps = [loaded.static]
            loaded.static, loaded.bind = None, lambda view: steps.pop()
            return loaded

    stage = Once(a=Actor(run=raising(StepFailed("first"))))

    assert of(stage.run(play("a")), "a").message.startswith("first\nafterwards: IndexError")


# Steps that meddle with their own task.


async def _cancel_itself(ctx: StepContext) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1.0)
    return Outcome()


def test_a_step_that_cancels_itself_has_failed() -> None:
    check(Stage(a=Actor(run=_cancel_itself)))


def test_a_step_that_cancels_itself_can_be_tried_again() -> None:
    async def at_first(ctx: StepContext) -> Outcome:
        return await _cancel_itself(ctx) if ctx.attempt == 1 else Outcome()

    stage = Stage(a=Actor(run=at_first))

    result = stage.run(play("a", retry=RetryPolicy(attempts=2, delay=3.0)))

    assert (of(result, "a").status, of(result, "a").attempts) == ("Success", 2)


def test_a_step_that_raises_what_it_caught_from_a_cancelled_child_has_failed() -> None:
    async def with_child(ctx: StepContext) -> None:
        child = asyncio.ensure_future(asyncio.sleep(60.0))
        asyncio.get_running_loop().call_soon(child.cancel)
        await child

    check(Stage(a=Actor(run=with_child)))


def test_a_step_that_fails_in_a_task_group_has_failed() -> None:
    async def grouped(ctx: StepContext) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(60.0))
            raise StepFailed("no")

    check(Stage(a=Actor(run=grouped)))


# Steps that answer nonsense.

NONSENSE: list[Any] = ["yes", "", 0, 1, False, True, [], (), {}, Verdict.holds(), object, ...]


@pytest.mark.parametrize("answer", NONSENSE, ids=repr)
def test_nonsense_from_run_is_a_failure(answer: Any) -> None:
    check(Stage(a=Actor(run=lambda ctx: _answer(answer))))


async def _answer(answer: Any) -> Any:
    return answer


@pytest.mark.parametrize("answer", [*NONSENSE[:-3], None, Outcome(), ...], ids=repr)
def test_nonsense_from_precheck_is_a_failure(answer: Any) -> None:
    check(Stage(a=Actor(precheck=lambda ctx: answer)))


@pytest.mark.parametrize("answer", [*NONSENSE[:-3], None, Outcome(), ...], ids=repr)
def test_nonsense_from_judge_is_a_failure(answer: Any) -> None:
    check(Stage(a=Actor(probes=True, judge=lambda answers: answer)))


ODD: list[Any] = [
    Outcome(message=5),  # type: ignore[arg-type]
    Outcome(message=None),  # type: ignore[arg-type]
    Outcome(stdout=b"bytes"),  # type: ignore[arg-type]
    Outcome(stderr=["line"]),  # type: ignore[arg-type]
    Outcome(values=None),  # type: ignore[arg-type]
    Outcome(values=["v"]),  # type: ignore[arg-type]
    Outcome(fragment="nodes"),  # type: ignore[arg-type]
    NotYet("soon", "not up"),  # type: ignore[arg-type]
    NotYet(-1.0, "not up"),
    NotYet(float("nan"), "not up"),
    NotYet(float("inf"), "not up"),
]


@pytest.mark.parametrize("answer", ODD, ids=repr)
def test_an_outcome_of_nonsense_is_a_failure(answer: Any) -> None:
    check(Stage(a=Actor(run=lambda ctx: answer)))


def test_a_run_that_is_no_coroutine_is_a_failure() -> None:
    class Plain(Stage):
        def load(self, node: Any) -> Any:
            loaded: Any = super().load(node)
            if node.id == "a":
                loaded.static.run = lambda ctx: Outcome()
            return loaded

    check(Plain())


# The engine itself.


def test_a_graph_that_can_not_be_loaded_raises_before_anything_starts() -> None:
    class Unloadable(Stage):
        def load(self, node: Any) -> Any:
            if node.id == "b":
                raise StepFailed("no such kind")
            return super().load(node)

    stage = Unloadable()

    with pytest.raises(StepFailed, match="no such kind"):
        stage.run(chain(play("a"), play("b")))
    assert stage.notes == []


def test_a_graph_that_was_tampered_with_is_refused_before_anything_starts() -> None:
    graph = graph_of(chain(play("a"), play("b")))
    graph.nodes["b"] = replace(graph.nodes["b"], after=("nowhere",))
    stage = Stage()

    with pytest.raises(InvalidGraph) as refused:
        stage.run(graph)
    assert [problem.where for problem in refused.value.problems] == ["b"]
    assert stage.notes == []


def test_a_defect_of_the_engine_ends_the_run_with_that_error() -> None:
    class Torn(Stage):
        def redact(self, text: str) -> str:
            raise AssertionError("a defect")

    stage = Torn(a=Actor(run=lambda ctx: Outcome(message="hello")), b=Actor(duration=600.0))

    with pytest.raises(AssertionError, match="a defect"):
        stage.run(parallel(play("a"), play("b"), chain(play("c"), play("d"))))


def test_a_runtime_that_can_not_serve_a_host_fails_that_unit() -> None:
    class Gone(Stage):
        def host(self, name: str) -> Any:
            if name == "h1":
                raise KubexmError("no such host")
            return super().host(name)

    check(Gone())
