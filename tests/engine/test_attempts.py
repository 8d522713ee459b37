"""The life of a unit: precheck, run, verify, and how often."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.stage import Actor, LoadedPlay, Play, Stage, fails, of, play, raising

from kubexm.errors import ConnectionLost, HostUnreachable, Refused, StepFailed
from kubexm.plan import Pool, ResourceConstraints, RetryPolicy, chain, parallel, per_host
from kubexm.plan.events import UnitRetried, UnitStarted
from kubexm.plan.node import ExecutionNode
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import NotYet, Outcome, Verdict


def until(attempt: int, error: BaseException | None = None) -> Callable[[StepContext], None]:
    """Fails in every attempt before this one."""

    def act(ctx: StepContext) -> None:
        if ctx.attempt < attempt:
            raise error or StepFailed(f"attempt {ctx.attempt}")

    return act


def test_a_unit_is_checked_run_and_checked_again_where_the_step_says_so() -> None:
    stage = Stage(a=Actor(verifies=True))

    result = stage.run(play("a"))

    assert [what for _, what, _, _ in stage.notes] == ["precheck", "start", "end", "precheck"]
    assert of(result, "a").status == "Success"


def test_a_step_that_does_not_say_so_is_not_verified() -> None:
    stage = Stage()

    stage.run(play("a"))

    assert stage.started("precheck") == [("a", "h1")]


def test_a_satisfied_unit_does_not_run() -> None:
    stage = Stage(a=Actor(satisfied=True))

    result = stage.run(per_host(play("a"), play("b")))

    unit = of(result, "a")
    assert (unit.status, unit.skipped, unit.changed) == ("Skipped", True, False)
    assert unit.message == "as wanted"
    assert stage.order() == ["b"]


def test_a_run_after_which_the_precheck_still_says_needed_has_failed() -> None:
    stage = Stage(
        a=Actor(verifies=True, precheck=lambda ctx: Verdict.needed("mode 0644, want 0600"))
    )

    result = stage.run(play("a"))

    assert of(result, "a").message == "ran, but mode 0644, want 0600"
    assert of(result, "a").status == "Failed"


def test_a_failed_attempt_is_followed_by_another() -> None:
    stage = Stage(a=Actor(run=until(3)))

    result = stage.run(play("a", retry=RetryPolicy(attempts=3, delay=0.0)))

    assert (of(result, "a").status, of(result, "a").attempts) == ("Success", 3)


def test_after_the_last_attempt_the_unit_has_failed_with_its_last_failure() -> None:
    stage = Stage(a=Actor(run=until(9)))

    result = stage.run(play("a", retry=RetryPolicy(attempts=3, delay=0.0)))

    assert (of(result, "a").status, of(result, "a").message) == ("Failed", "attempt 3")


def test_every_attempt_starts_at_the_precheck() -> None:
    """The first attempt did its work before it failed, so the second finds nothing to do."""

    def half(ctx: StepContext) -> None:
        stage.made.add(("a", "h1"))
        raise StepFailed("lost track")

    stage = Stage(a=Actor(run=half))

    result = stage.run(play("a", retry=RetryPolicy(attempts=2, delay=0.0)))

    assert stage.started("precheck") == [("a", "h1")] * 2
    assert stage.started() == [("a", "h1")]
    assert (of(result, "a").status, of(result, "a").changed) == ("Success", True)


def test_a_precheck_that_raises_fails_the_attempt() -> None:
    stage = Stage(a=Actor(precheck=raising(StepFailed("can't look"))))

    result = stage.run(play("a", retry=RetryPolicy(attempts=2, delay=3.0)))

    assert (of(result, "a").message, of(result, "a").attempts) == ("can't look", 2)
    assert stage.end == 3.0


def test_a_verification_that_fails_is_tried_again() -> None:
    verdicts = [Verdict.needed("1"), Verdict.needed("2"), Verdict.needed("3"), Verdict.holds()]
    stage = Stage(a=Actor(verifies=True, precheck=lambda ctx: verdicts.pop(0)))

    result = stage.run(play("a", retry=RetryPolicy(attempts=2, delay=0.0)))

    assert (of(result, "a").status, of(result, "a").attempts) == ("Success", 2)


def test_the_pause_is_the_delay() -> None:
    stage = Stage(a=Actor(run=until(3)))

    stage.run(play("a", retry=RetryPolicy(attempts=3, delay=7.0)))

    assert [stage.notes[index][0] for index in (0, 3, 6)] == [0.0, 7.0, 14.0]


def test_exponential_backoff_doubles_the_pause_up_to_its_bound() -> None:
    stage = Stage(a=Actor(run=until(5)))
    retry = RetryPolicy(attempts=5, delay=2.0, exponential_backoff=True, max_delay=5.0)

    stage.run(play("a", retry=retry))

    assert [event.delay for event in stage.told(UnitRetried)] == [2.0, 4.0, 5.0, 5.0]


def test_backoff_stays_bounded_after_very_many_attempts() -> None:
    retry = RetryPolicy(attempts=5000, delay=2.0, exponential_backoff=True, max_delay=5.0)

    assert retry.pause(4000, 0.0) == 5.0


def test_jitter_spreads_the_herd_within_its_share() -> None:
    hosts = [f"h{number}" for number in range(20)]
    stage = Stage(a=Actor(run=until(2)))

    stage.run(play("a", *hosts, retry=RetryPolicy(attempts=2, delay=10.0, jitter=0.5)))

    delays = [event.delay for event in stage.told(UnitRetried)]
    assert all(10.0 <= delay <= 15.0 for delay in delays)
    assert len(set(delays)) == 20


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(StepFailed("x"), 3), (KeyError("x"), 3), (Refused("x"), 1), (HostUnreachable("x"), 1)],
)
def test_only_failures_are_tried_again_by_default(error: Exception, attempts: int) -> None:
    stage = Stage(a=Actor(run=raising(error)))

    result = stage.run(play("a", retry=RetryPolicy(attempts=3, delay=0.0)))

    assert of(result, "a").attempts == attempts


def test_retry_on_says_which_classes_are_tried_again() -> None:
    stage = Stage(a=Actor(run=raising(Refused("x"))), b=fails())
    retry = RetryPolicy(attempts=3, delay=0.0, retry_on=("refused", "unreachable"))

    result = stage.run(parallel(play("a", retry=retry), play("b", retry=retry)))

    assert (of(result, "a").attempts, of(result, "b").attempts) == (3, 1)


def test_a_run_that_takes_longer_than_its_timeout_has_failed() -> None:
    stage = Stage(a=Actor(duration=10.0))

    result = stage.run(play("a", timeout=4.0))

    assert of(result, "a").message == "did not finish within 4 s"
    assert stage.end == 4.0


def test_the_timeout_is_that_of_one_attempt() -> None:
    stage = Stage(a=Actor(duration=3.0, run=until(3)))

    result = stage.run(play("a", timeout=4.0, retry=RetryPolicy(attempts=3, delay=9.0)))

    assert of(result, "a").status == "Success"
    assert stage.end == 27.0


def test_precheck_run_and_verification_share_the_time_of_an_attempt() -> None:
    async def look(ctx: StepContext) -> Verdict:
        await asyncio.sleep(2.0)
        return Verdict.needed("not yet")

    stage = Stage(a=Actor(duration=2.0, verifies=True, precheck=look))

    result = stage.run(play("a", timeout=5.0))

    assert of(result, "a").message == "did not finish within 5 s"
    assert stage.end == 5.0


def test_a_timeout_reaches_over_polls_and_names_what_was_not_yet() -> None:
    stage = Stage(a=Actor(run=lambda ctx: NotYet(4.0, "port 6443 is closed")))

    result = stage.run(play("a", timeout=10.0))

    assert of(result, "a").message == "port 6443 is closed, still after 10 s"
    assert stage.end == 10.0


@pytest.mark.parametrize(("waits_again", "attempts"), [(True, 3), (False, 1)])
def test_a_wait_that_took_all_of_its_time_begins_anew_unless_the_policy_says_otherwise(
    waits_again: bool, attempts: int
) -> None:
    stage = Stage(a=Actor(run=lambda ctx: NotYet(4.0, "not ready: `n3`")))
    retry = RetryPolicy(attempts=3, delay=1.0, waits_again=waits_again)

    result = stage.run(play("a", timeout=10.0, retry=retry))

    assert (of(result, "a").status, of(result, "a").attempts) == ("Failed", attempts)
    assert of(result, "a").message == "not ready: `n3`, still after 10 s"


def test_what_failed_otherwise_is_tried_again_also_where_waits_are_not() -> None:
    answers = [NotYet(4.0, "not up"), StepFailed("no answer"), None]

    def act(ctx: StepContext) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, StepFailed):
            raise answer
        return answer

    stage = Stage(a=Actor(run=act))
    retry = RetryPolicy(attempts=2, delay=1.0, waits_again=False)

    result = stage.run(play("a", timeout=10.0, retry=retry))

    assert (of(result, "a").status, of(result, "a").attempts) == ("Success", 2)


def test_a_wait_that_was_too_long_is_explained_and_nothing_is_undone() -> None:
    actor = Actor(run=lambda ctx: NotYet(4.0, "0 of 2 pods are available"), undoes_itself=True)
    actor.diagnose = lambda ctx: "pod dns-1: no such image"
    stage = Stage(a=actor)

    result = stage.run(play("a", timeout=10.0))

    expected = "0 of 2 pods are available, still after 10 s\npod dns-1: no such image"
    assert of(result, "a").message == expected
    assert stage.started("rollback") == []


def test_who_explains_a_failure_is_told_how_long_its_unit_took() -> None:
    actor = Actor(run=lambda ctx: NotYet(4.0, "not yet"))
    actor.diagnose = lambda ctx: f"after {ctx.took:g} s"
    stage = Stage(a=actor, b=Actor(duration=5.0))

    result = stage.run(chain(play("b"), play("a", timeout=10.0)))

    assert of(result, "a").message == "not yet, still after 10 s\nafter 10 s"


def test_waiting_for_slots_does_not_count_against_the_timeout() -> None:
    stage = Stage(a=Actor(duration=30.0), b=Actor(duration=3.0))
    limits = ResourceConstraints(pools=("p",))

    result = stage.run(
        parallel(play("a", limits=limits), play("b", "h2", limits=limits, timeout=5.0)),
        graph={"pools": {"p": Pool(1)}},
        durations={"a": 9.0},
    )

    assert stage.at("start", "b", "h2") == 30.0
    assert of(result, "b", "h2").status == "Success"


def test_a_step_that_swallows_its_end_has_timed_out_nevertheless() -> None:
    async def stubborn(ctx: StepContext) -> Outcome:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60.0)
        return Outcome()

    stage = Stage(a=Actor(run=stubborn))

    result = stage.run(play("a", timeout=5.0))

    assert of(result, "a").message == "did not finish within 5 s"


def test_a_timeout_that_a_step_raises_itself_is_its_own() -> None:
    stage = Stage(a=Actor(run=raising(TimeoutError("of my own"))))

    result = stage.run(play("a", timeout=5.0))

    assert of(result, "a").message == "TimeoutError: of my own"


def test_polling_ends_when_the_precheck_is_satisfied() -> None:
    looks = iter([Verdict.needed("1"), Verdict.needed("2"), Verdict.holds("it is up")])
    stage = Stage(a=Actor(run=lambda ctx: NotYet(5.0, "wait"), precheck=lambda ctx: next(looks)))

    result = stage.run(play("a"))

    assert (of(result, "a").status, of(result, "a").message) == ("Success", "it is up")
    assert (stage.end, of(result, "a").attempts) == (10.0, 1)


def lost_until(reconnects: int, stage: Stage) -> Callable[[StepContext], None]:
    def act(ctx: StepContext) -> None:
        if len(stage.reconnects) < reconnects:
            raise ConnectionLost("broken pipe")

    return act


def test_a_step_is_told_how_long_it_has_waited() -> None:
    waited: list[float] = []

    def run(ctx: StepContext) -> NotYet | None:
        waited.append(ctx.waited)
        return NotYet(4.0, "not up") if ctx.waited < 8.0 else None

    Stage(a=Actor(run=run)).run(play("a"))

    assert waited == [0.0, 4.0, 8.0]


def test_a_lost_connection_is_no_attempt() -> None:
    stage = Stage()
    stage.actors["a"] = Actor(run=lost_until(1, stage))

    result = stage.run(play("a"))

    assert (of(result, "a").status, of(result, "a").attempts) == ("Success", 1)
    assert stage.reconnects == ["h1"]


def test_after_a_reconnect_the_unit_starts_at_its_precheck() -> None:
    stage = Stage()
    stage.actors["a"] = Actor(run=lost_until(1, stage))

    stage.run(play("a"))

    assert [what for _, what, _, _ in stage.notes if what != "end"] == [
        *("precheck", "start"),
        *("precheck", "start"),
    ]


def test_a_connection_lost_in_a_precheck_is_no_attempt_either() -> None:
    def look(ctx: StepContext) -> Verdict:
        lost_until(1, stage)(ctx)
        return Verdict.holds()

    stage = Stage(a=Actor(precheck=look))

    assert of(stage.run(play("a")), "a").attempts == 1


def test_a_host_that_can_not_be_reached_again_is_unreachable() -> None:
    stage = Stage(a=Actor(run=raising(ConnectionLost("broken pipe"))))
    stage.reconnect = raising(HostUnreachable("host key changed"))

    result = stage.run(per_host(play("a", "h1"), play("b", "h1", "h2")))

    unit = of(result, "a")
    assert (unit.status, unit.failure, unit.message) == (
        *("Failed", "unreachable"),
        "host key changed",
    )
    assert set(result.quarantined) == {"h1"}


def test_a_host_that_comes_back_within_30_seconds_goes_on() -> None:
    stage = Stage()
    stage.actors["a"] = Actor(run=lost_until(1, stage))
    stage.reconnect = lambda name: asyncio.sleep(29.0)

    assert of(stage.run(play("a")), "a").status == "Success"


def test_a_host_that_hangs_while_connecting_is_unreachable_after_30_seconds() -> None:
    stage = Stage(a=Actor(run=raising(ConnectionLost("broken pipe"))))
    stage.reconnect = lambda name: asyncio.sleep(3600.0)

    result = stage.run(play("a"))

    assert of(result, "a").message == "broken pipe; no connection again within 30 s"


def test_a_connection_that_is_lost_again_and_again_is_given_up() -> None:
    stage = Stage(a=Actor(run=raising(ConnectionLost("broken pipe"))))

    result = stage.run(play("a"))

    assert of(result, "a").failure == "unreachable"
    assert len(stage.reconnects) == 10


def test_whatever_goes_wrong_while_connecting_again_means_unreachable() -> None:
    stage = Stage(a=Actor(run=raising(ConnectionLost("broken pipe"))))
    stage.reconnect = raising(OSError("no such interface"))

    assert of(stage.run(play("a")), "a").failure == "unreachable"


def test_every_attempt_and_retry_is_told() -> None:
    stage = Stage(a=Actor(run=until(2)))

    stage.run(play("a", retry=RetryPolicy(attempts=2, delay=5.0)))

    assert [event.attempt for event in stage.told(UnitStarted)] == [1, 2]
    assert [(event.message, event.delay) for event in stage.told(UnitRetried)] == [
        ("attempt 1", 5.0)
    ]


def test_when_is_decided_per_unit() -> None:
    stage = Stage(a=Actor(when=lambda view: view.host["name"] == "h2"))

    result = stage.run(per_host(play("a", "h1", "h2", when="…"), play("b", "h1", "h2")))

    assert of(result, "a", "h1").message == "`when` does not hold"
    assert of(result, "a", "h1").satisfied
    assert sorted(stage.started()) == [("a", "h2"), ("b", "h1"), ("b", "h2")]


def test_a_step_is_made_for_each_unit_where_it_differs() -> None:
    class Bound(Stage):
        def load(self, node: ExecutionNode) -> LoadedPlay:
            loaded: Any = super().load(node)
            loaded.static = None
            loaded.bind = lambda view: Play(self, f"{node.id} of {view.host['name']}", Actor())
            return loaded  # type: ignore[no-any-return]  # it is one, changed

    stage = Bound()

    stage.run(play("a", "h1", "h2"))

    assert set(stage.started()) == {("a of h1", "h1"), ("a of h2", "h2")}


def test_a_unit_reports_what_its_step_said() -> None:
    outcome = Outcome(changed=False, message="did it", stdout="out", stderr="err")
    stage = Stage(a=Actor(run=lambda ctx: outcome))

    unit = of(stage.run(play("a")), "a")

    assert (unit.message, unit.stdout, unit.stderr) == ("did it", "out", "err")
    assert (unit.status, unit.changed) == ("Success", False)


def test_none_stands_for_a_plain_change() -> None:
    class Terse(Stage):
        def load(self, node: ExecutionNode) -> LoadedPlay:
            loaded: Any = super().load(node)
            loaded.static.run = _nothing
            return loaded  # type: ignore[no-any-return]  # it is one, changed

    unit = of(Terse().run(play("a")), "a")

    assert (unit.status, unit.changed) == ("Success", True)


async def _nothing(ctx: StepContext) -> None:
    pass


def test_long_output_keeps_its_head_and_its_tail() -> None:
    stage = Stage(a=Actor(run=lambda ctx: Outcome(stdout="a" * 50 + "b" * 100 + "c" * 50)))

    unit = of(stage.run(play("a"), output_limit=100), "a")

    assert unit.stdout == "a" * 50 + "\n… 100 characters left out …\n" + "c" * 50
