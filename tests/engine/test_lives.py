"""Units that live in the task of the one before: no trace of it reaches them."""

import asyncio
from contextlib import suppress
from contextvars import ContextVar

from tests import virtual
from tests.engine.stage import Actor, Stage, fails, graph_of, play, raising, statuses

from kubexm.engine.lives import TURNS
from kubexm.errors import ConnectionLost, HostUnreachable, StepFailed
from kubexm.plan import HookFragment, RetryPolicy, chain, parallel, per_host, scope
from kubexm.runtime.contexts import StepContext

fail = raising(StepFailed("no"))
LEFT: ContextVar[str] = ContextVar("left", default="nothing")


def long_chain(length: int, stage: Stage, act: Actor) -> Stage:
    stage.actors.update({f"n{at}": act for at in range(length)})
    stage.run(per_host(*(play(f"n{at}") for at in range(length))))
    return stage


def test_what_follows_lives_in_the_same_task_and_the_loop_has_its_turn_in_between() -> None:
    tasks: list[object] = []
    note = Actor(run=lambda ctx: tasks.append(asyncio.current_task()))

    long_chain(2 * TURNS, Stage(), note)

    assert [tasks.count(task) for task in dict.fromkeys(tasks)] == [TURNS, TURNS]


def test_what_a_step_leaves_in_its_context_does_not_reach_the_next() -> None:
    seen: list[str] = []

    def leave(ctx: StepContext) -> None:
        seen.append(LEFT.get())
        LEFT.set("something")

    long_chain(3, Stage(), Actor(run=leave))

    assert seen == ["nothing", "nothing", "nothing"]


def test_a_cancel_that_a_step_swallowed_does_not_reach_the_next() -> None:
    """The failure of `x` ends `a`, which takes no notice; the hook is what its end lets start."""
    pending: list[int] = []

    async def stubborn(ctx: StepContext) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60.0)

    def note(ctx: StepContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        pending.append(task.cancelling())

    stage = Stage(a=Actor(run=stubborn), x=fails(), hook=Actor(run=note))
    stage.actors["x"].duration = 1.0
    hook = HookFragment("on-failure", play("hook"), barrier=True)

    stage.run(
        scope("s", parallel(play("a"), play("x", "h2")), hooks=[hook]),
        on_failure="rollback",
        grace=1.0,
    )

    assert pending == [0]


def test_what_was_launched_and_not_begun_when_its_host_is_lost_does_not_begin() -> None:
    """`b` takes the slot that `a` gives back to reconnect, which turns out to be in vain."""
    stage = Stage(a=Actor(run=raising(ConnectionLost("cut"))))
    stage.reconnect = raising(HostUnreachable("gone"))

    result = stage.run(parallel(play("a"), play("b"), play("c", "h2")), per_host=1)

    assert statuses(result) == {"a@h1": "Failed", "b@h1": "Skipped", "c@h2": "Success"}
    assert stage.started() == [("a", "h1"), ("c", "h2")]


def test_a_unit_that_waits_for_a_retry_keeps_its_task_to_itself() -> None:
    async def main() -> set[str]:
        await stage.perform(graph_of(chain(play("a", retry=RetryPolicy(attempts=2)), play("b"))))
        await asyncio.sleep(0)
        return {str(task) for task in asyncio.all_tasks() if "_carry" in str(task)}

    stage = Stage(a=Actor(run=lambda ctx: None if ctx.attempt > 1 else fail(ctx)))

    assert virtual.run(main()) == set()
    assert stage.order() == ["a", "a", "b"]
