"""Cancel: nothing new starts, what runs gets its grace, and the run can go on later."""

import asyncio
import contextlib
from typing import Any

import pytest
from tests import virtual
from tests.engine.stage import Actor, Stage, fails, graph_of, of, play, raising, statuses

from kubexm.engine import Control
from kubexm.errors import ConnectionLost, StepFailed
from kubexm.plan import (
    ExecutionFragment,
    GraphExecutionResult,
    HookFragment,
    Key,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    chain,
    parallel,
    per_host,
    scope,
)
from kubexm.plan.records import RunState, UnitDone
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Minter, NotYet, Outcome, Verdict


def cancelled(
    stage: Stage, plan: ExecutionFragment | None, *, at: float = 5.0, **rest: Any
) -> GraphExecutionResult:
    """Perform, and cancel after some time."""

    async def main() -> GraphExecutionResult:
        control = Control()
        asyncio.get_running_loop().call_later(at, control.cancel, "by request")
        graph = graph_of(plan, **rest.pop("graph", {}))
        return await stage.perform(graph, control=control, **rest)

    return virtual.run(main())


def test_nothing_new_starts() -> None:
    stage = Stage(a=Actor(duration=8.0))

    result = cancelled(stage, chain(play("a"), play("b")))

    assert stage.order() == ["a"]
    assert of(result, "b").status == "Cancelled"
    assert of(result, "b").message == "not started: by request"


def test_who_waits_for_an_answer_is_ended_at_once_and_has_changed_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask(ctx: StepContext) -> None:
        await ctx.confirm("go on?")

    stage = Stage(a=Actor(run=ask))
    monkeypatch.setattr(stage, "confirm", lambda question: asyncio.sleep(600.0))

    result = cancelled(stage, play("a"), at=5.0, grace=60.0)

    assert stage.at("end", "a", "h1") == 5.0
    assert of(result, "a").status == "Cancelled"
    assert not of(result, "a").changed


def test_who_has_an_answer_gets_its_grace() -> None:
    async def ask(ctx: StepContext) -> None:
        await ctx.confirm("go on?")
        await asyncio.sleep(8.0)

    result = cancelled(Stage(a=Actor(run=ask)), play("a"), at=5.0, grace=60.0)

    assert of(result, "a").status == "Success"


def test_a_unit_that_ends_within_its_grace_has_its_result() -> None:
    stage = Stage(a=Actor(duration=8.0))

    result = cancelled(stage, chain(play("a"), play("b")), grace=10.0)

    assert of(result, "a").status == "Success"
    assert stage.end == 8.0


def test_a_unit_is_ended_when_its_grace_is_over() -> None:
    stage = Stage(a=Actor(duration=600.0))

    result = cancelled(stage, play("a"), grace=10.0)

    assert (of(result, "a").status, of(result, "a").message) == ("Cancelled", "by request")
    assert stage.end == 15.0


def test_the_run_is_cancelled_and_says_why() -> None:
    stage = Stage(a=Actor(duration=600.0))

    result = cancelled(stage, chain(play("a"), play("b")))

    assert (result.status, result.message) == ("Cancelled", "by request")
    assert result.node_results["b"].status == "Cancelled"


def test_a_run_that_was_through_when_it_was_cancelled_succeeded() -> None:
    stage = Stage(a=Actor(duration=8.0))

    assert cancelled(stage, play("a")).status == "Success"


def test_a_run_that_was_stopped_can_go_on_whatever_had_failed_by_then() -> None:
    stage = Stage(a=fails(), b=Actor(duration=600.0))

    assert cancelled(stage, parallel(play("a"), play("b"))).status == "Cancelled"


def test_uninterruptible_units_are_awaited() -> None:
    stage = Stage(a=Actor(duration=600.0, uninterruptible=True))

    result = cancelled(stage, per_host(play("a"), play("b")), grace=10.0)

    assert of(result, "a").status == "Success"
    assert of(result, "b").status == "Cancelled"
    assert stage.end == 600.0


def test_an_uninterruptible_unit_is_verified_and_then_over() -> None:
    stage = Stage(a=Actor(duration=600.0, uninterruptible=True, verifies=True))

    assert of(cancelled(stage, play("a")), "a").status == "Success"


def test_a_unit_in_its_precheck_ends_at_once() -> None:
    async def slowly(ctx: StepContext) -> Verdict:
        await asyncio.sleep(600.0)
        return Verdict.holds()

    stage = Stage(a=Actor(precheck=slowly, uninterruptible=True))

    result = cancelled(stage, play("a"), grace=10.0)

    assert (of(result, "a").status, stage.end) == ("Cancelled", 5.0)


def test_a_unit_that_waits_for_its_next_attempt_ends_at_once() -> None:
    stage = Stage(a=fails())

    result = cancelled(stage, play("a", retry=RetryPolicy(attempts=9, delay=600.0)))

    assert (of(result, "a").status, stage.end) == ("Cancelled", 5.0)


def test_a_unit_that_waits_between_polls_ends_at_once() -> None:
    stage = Stage(a=Actor(run=lambda ctx: NotYet(600.0, "not up"), uninterruptible=True))

    result = cancelled(stage, play("a"))

    assert (of(result, "a").status, stage.end) == ("Cancelled", 5.0)


def test_a_unit_that_waits_for_a_pool_ends_at_once() -> None:
    stage = Stage(a=Actor(duration=8.0), b=Actor(duration=1.0))
    limits = ResourceConstraints(pools=("p",))

    result = cancelled(
        stage,
        parallel(play("a", limits=limits), play("b", limits=limits)),
        graph={"pools": {"p": Pool(1)}},
        durations={"a": 9.0},
    )

    assert statuses(result) == {"a@h1": "Success", "b@h1": "Cancelled"}
    assert stage.order() == ["a"]


def test_a_unit_that_waits_for_a_value_ends_at_once() -> None:
    stage = Stage(m=Actor(role=Minter, duration=600.0, values={"t": 1}))

    result = cancelled(
        stage, chain(play("m", provides=[Key("t")]), play("a", needs=["t"])), grace=10.0
    )

    assert {of(result, name).status for name in "ma"} == {"Cancelled"}
    assert stage.end == 15.0


def test_a_unit_that_reconnects_ends_at_once() -> None:
    stage = Stage(a=Actor(run=raising(ConnectionLost("broken pipe"))))
    stage.reconnect = lambda name: asyncio.sleep(600.0)

    result = cancelled(stage, play("a"))

    assert (of(result, "a").status, stage.end) == ("Cancelled", 5.0)


def test_a_unit_that_fails_within_its_grace_is_not_tried_again() -> None:
    stage = Stage(a=Actor(duration=8.0, run=raising(StepFailed("no"))))

    result = cancelled(stage, play("a", retry=RetryPolicy(attempts=9, delay=0.0)))

    assert of(result, "a").status == "Cancelled"
    assert of(result, "a").message == "by request; before that: no"
    assert len(stage.started()) == 1


def test_a_unit_that_would_poll_again_within_its_grace_is_over() -> None:
    async def poll(ctx: StepContext) -> NotYet:
        await asyncio.sleep(8.0)
        return NotYet(1.0, "not up")

    stage = Stage(a=Actor(run=poll))

    result = cancelled(stage, play("a"), grace=60.0)

    assert (of(result, "a").status, stage.end) == ("Cancelled", 8.0)


def test_a_unit_that_answers_its_end_with_an_error_was_cancelled() -> None:
    async def grumpy(ctx: StepContext) -> None:
        try:
            await asyncio.sleep(600.0)
        except asyncio.CancelledError:
            raise StepFailed("killed") from None

    stage = Stage(a=Actor(run=grumpy, diagnose=lambda ctx: "why me"))

    result = cancelled(stage, play("a"))

    assert of(result, "a").status == "Cancelled"
    assert stage.started("diagnose") == []


def test_a_unit_ended_while_it_tells_why_it_failed_was_cancelled() -> None:
    stage = Stage(a=fails())
    stage.actors["a"].diagnose = lambda ctx: asyncio.sleep(20.0)

    result = cancelled(stage, play("a"), grace=10.0)

    assert (of(result, "a").status, stage.end) == ("Cancelled", 15.0)


def test_a_unit_that_does_not_let_go_is_told_again_and_again() -> None:
    async def stubborn(ctx: StepContext) -> None:
        for _ in range(5):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(600.0)
        await asyncio.sleep(600.0)

    stage = Stage(a=Actor(run=stubborn))

    result = cancelled(stage, play("a"), grace=10.0)

    assert of(result, "a").status == "Cancelled"
    assert 15.0 < stage.end < 20.0


def test_a_unit_that_swallows_its_end_and_finishes_has_its_result() -> None:
    async def stubborn(ctx: StepContext) -> Outcome:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600.0)
        return Outcome(message="done after all")

    stage = Stage(a=Actor(run=stubborn))

    assert of(cancelled(stage, play("a")), "a").message == "done after all"


def test_what_follows_a_unit_that_fails_within_its_grace_was_cancelled() -> None:
    """It may well run when the run is taken up again: nothing is decided about it."""
    stage = Stage(a=Actor(duration=8.0, run=raising(StepFailed("no"))))

    result = cancelled(stage, chain(play("a"), play("b")))

    assert statuses(result) == {"a@h1": "Failed", "b@h1": "Cancelled"}


def test_a_unit_ended_in_its_run_may_clean_up() -> None:
    cleaned: list[float] = []

    async def careful(ctx: StepContext) -> None:
        try:
            await asyncio.sleep(600.0)
        finally:
            await asyncio.sleep(0.2)
            cleaned.append(asyncio.get_running_loop().time())

    stage = Stage(a=Actor(run=careful))

    cancelled(stage, play("a"), grace=10.0)

    assert cleaned == [15.2]


def test_cancelled_before_it_began_a_run_starts_nothing() -> None:
    stage = Stage()
    control = Control()
    control.cancel("too late")

    result = stage.run(chain(play("a", "h1", "h2"), play("b")), control=control)

    assert stage.notes == []
    assert result.counts == {"Cancelled": 3}
    assert (result.status, result.message) == ("Cancelled", "too late")


def test_units_launched_in_the_instant_of_the_cancel_touch_nothing() -> None:
    control = Control()

    def first_look(ctx: StepContext) -> Verdict:
        control.cancel("by request")
        return Verdict.needed("not yet")

    stage = Stage(a=Actor(precheck=first_look))

    result = stage.run(play("a", *(f"h{n}" for n in range(20))), control=control)

    assert [what for _, what, _, _ in stage.notes] == ["precheck"]
    assert result.counts == {"Cancelled": 20}


def test_a_second_cancel_changes_nothing() -> None:
    async def main() -> GraphExecutionResult:
        control = Control()
        loop = asyncio.get_running_loop()
        loop.call_later(5.0, control.cancel, "first")
        loop.call_later(6.0, control.cancel, "second")
        return await stage.perform(graph_of(play("a")), control=control, grace=10.0)

    stage = Stage(a=Actor(duration=600.0))

    result = virtual.run(main())

    assert (result.message, stage.end) == ("first", 15.0)


def test_hooks_do_not_run_after_a_cancel() -> None:
    stage = Stage(a=Actor(duration=600.0))
    hooks = [HookFragment("on-failure", play("x")), HookFragment("always", play("y"))]

    cancelled(stage, scope("s", play("a"), hooks=hooks))

    assert stage.order() == ["s/a"]


def test_a_cancelled_run_is_not_rolled_back() -> None:
    stage = Stage(b=Actor(duration=600.0))

    result = cancelled(stage, chain(play("a"), play("b")), on_failure="rollback")

    assert stage.started("rollback") == []
    assert of(result, "a").status == "Success"


def test_a_rollback_can_be_cancelled_and_resumed() -> None:
    plan = chain(play("a"), play("b"), play("c"))
    first = Stage(b=Actor(rollback=lambda ctx: asyncio.sleep(600.0)), c=fails())

    result = cancelled(first, plan, on_failure="rollback", grace=1.0)
    second = Stage()
    again = second.run(plan, on_failure="rollback", state=RunState.fold(first.records))

    assert result.status == "Cancelled"
    assert first.order(what="rollback") == ["b"]
    assert second.order(what="rollback") == ["b", "a"]
    assert again.status == "RolledBack"


def test_the_undo_of_an_uninterruptible_step_is_awaited() -> None:
    undo = Actor(rollback=lambda ctx: asyncio.sleep(600.0), uninterruptible=True)
    stage = Stage(b=undo, c=fails())

    result = cancelled(
        stage, chain(play("a"), play("b"), play("c")), on_failure="rollback", grace=1.0
    )

    assert stage.end == 600.0
    assert (of(result, "b").status, of(result, "a").status) == ("RolledBack", "Success")


def test_what_was_cancelled_runs_again_on_resume_and_what_was_done_does_not() -> None:
    plan = chain(play("a"), play("b"), play("c"))
    first = Stage(b=Actor(duration=600.0))

    cancelled(first, plan)
    second = Stage()
    result = second.run(plan, state=RunState.fold(first.records))

    assert second.order() == ["b", "c"]
    assert result.status == "Success"


def test_the_journal_is_complete() -> None:
    stage = Stage(b=Actor(duration=600.0))

    cancelled(stage, chain(play("a"), play("b"), play("c")))

    done = {r.node: r.result.status for r in stage.records if isinstance(r, UnitDone)}
    assert done == {"a": "Success", "b": "Cancelled"}


def test_a_caller_that_gives_up_leaves_no_unit_running() -> None:
    async def main() -> set[asyncio.Task[Any]]:
        run = asyncio.ensure_future(stage.perform(graph_of(play("a", "h1", "h2"))))
        await asyncio.sleep(5.0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert asyncio.get_running_loop().time() == 5.0
        return asyncio.all_tasks() - {asyncio.current_task()}

    stage = Stage(a=Actor(duration=600.0))

    assert virtual.run(main()) == set()
    assert stage.running == {}


def test_a_caller_that_gives_up_still_waits_for_what_may_not_be_ended() -> None:
    async def main() -> float:
        run = asyncio.ensure_future(stage.perform(graph_of(play("a"))))
        await asyncio.sleep(5.0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return asyncio.get_running_loop().time()

    stage = Stage(a=Actor(duration=600.0, uninterruptible=True))

    assert virtual.run(main()) == 600.0
