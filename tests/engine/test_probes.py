"""Probes: the prechecks of a host in one round trip, also ahead of their turn."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests import virtual
from tests.engine.stage import Actor, ProbedPlay, Stage, fails, graph_of, of, play, statuses

from kubexm.engine import Control
from kubexm.errors import ConnectionLost, KubexmError, StepFailed
from kubexm.plan import Key, chain, link, one_of, parallel, per_host
from kubexm.plan.records import RunState, UnitIntended
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.step.contract import Reader, Verdict


def probed(*names: str) -> dict[str, Actor]:
    return {name: Actor(probes=True) for name in names}


def asked(stage: Stage) -> list[list[str]]:
    """What each batch asked, by node."""
    return [[argv[1] for argv in commands] for _, commands in stage.batches]


# Fusing.


def test_prechecks_asked_at_the_same_time_are_one_round_trip() -> None:
    stage = Stage(**probed("a", "b", "c"))

    stage.run(parallel(play("a"), play("b"), play("c")))

    assert asked(stage) == [["a", "b", "c"]]


def test_each_host_has_its_own_batches() -> None:
    stage = Stage(**probed("a", "b"))

    stage.run(parallel(play("a", "h1", "h2"), play("b", "h1", "h2")))

    assert [host for host, _ in stage.batches] == ["h1", "h2"]


def test_every_unit_gets_its_own_verdict() -> None:
    stage = Stage(**probed("a", "b", "c"))
    stage.unsatisfied = {("b", "h1")}

    result = stage.run(parallel(play("a"), play("b"), play("c")))

    assert statuses(result) == {"a@h1": "Skipped", "b@h1": "Success", "c@h1": "Skipped"}


def test_a_coroutine_precheck_is_never_fused() -> None:
    stage = Stage(a=Actor(satisfied=True), **probed("b"))

    stage.run(parallel(play("a"), play("b")))

    assert asked(stage) == [["b"]]
    assert stage.started("precheck") == [("a", "h1")]


# Ahead.


def test_probing_ahead_saves_round_trips_along_a_lane() -> None:
    names = [f"n{number}" for number in range(40)]
    stage = Stage(**probed(*names))
    stage.round_trip = 0.1

    result = stage.run(per_host(*(play(name) for name in names)))

    assert result.counts == {"Skipped": 40}
    assert len(stage.batches) <= 5


def test_without_probing_ahead_each_unit_is_a_round_trip() -> None:
    names = [f"n{number}" for number in range(10)]
    stage = Stage(**probed(*names))

    stage.run(per_host(*(play(name) for name in names)), probe_ahead=0)

    assert len(stage.batches) == 10


def test_no_more_is_asked_ahead_than_allowed() -> None:
    names = [f"n{number}" for number in range(60)]
    stage = Stage(**probed(*names))

    stage.run(per_host(*(play(name) for name in names)), probe_ahead=8)

    assert max(len(batch) for batch in asked(stage)) == 9


def test_what_waits_for_something_else_is_not_probed_ahead() -> None:
    stage = Stage(x=Actor(duration=5.0), **probed("a", "b"))
    whole = parallel(play("x", "h2"), per_host(play("a"), play("b")))

    stage.run(link(whole, before="x", after="b"))

    assert asked(stage) == [["a"], ["b"]]


def test_a_unit_behind_two_is_probed_ahead_if_both_are_in_the_batch() -> None:
    stage = Stage(**probed("a", "b", "c"))

    stage.run(per_host(parallel(play("a"), play("b")), play("c")))

    assert asked(stage) == [["a", "b", "c"]]


def test_probing_ahead_leads_through_holes() -> None:
    stage = Stage(**probed("a", "b", "c"))

    stage.run(per_host(play("a", "h1", "h2"), play("b", "h2"), play("c", "h1", "h2")))

    assert sorted(asked(stage)) == [["a", "b", "c"], ["a", "c"]]


def test_a_verdict_made_ahead_is_void_after_any_run_on_that_host() -> None:
    """`b` was fine when it was asked ahead; then `a` ran and broke it."""
    stage = Stage(a=Actor(probes=True), b=Actor(probes=True))
    stage.unsatisfied = {("a", "h1")}
    stage.actors["a"].run = lambda ctx: stage.unsatisfied.add(("b", "h1"))

    result = stage.run(per_host(play("a"), play("b")))

    assert of(result, "b").status == "Success"
    assert stage.order() == ["a", "b"]


def test_a_run_in_another_branch_voids_it_too() -> None:
    def spoil(ctx: StepContext) -> None:
        stage.unsatisfied.add(("c", "h1"))

    stage = Stage(x=Actor(run=spoil), a=Actor(probes=True), b=Actor(), c=Actor(probes=True))
    stage.actors["b"] = Actor(probes=True)

    result = stage.run(
        parallel(per_host(play("a"), play("b"), play("c")), play("x")), durations={"x": 99.0}
    )

    assert of(result, "c").status == "Success"


def test_a_verdict_asked_ahead_while_something_runs_is_void_when_that_ends() -> None:
    async def slowly_spoil(ctx: StepContext) -> None:
        await asyncio.sleep(1.0)
        stage.unsatisfied.add(("c", "h1"))

    stage = Stage(x=Actor(run=slowly_spoil), **probed("a", "b", "c"))
    stage.actors["b"] = Actor(probes=True, judge=lambda answers: Verdict.holds())
    stage.round_trip = 0.6

    result = stage.run(parallel(play("x"), per_host(play("a"), play("b"), play("c"))))

    assert of(result, "c").status == "Success"


def test_a_run_on_another_host_voids_nothing() -> None:
    stage = Stage(x=Actor(), **probed("a", "b"))

    stage.run(parallel(play("x", "h2"), per_host(play("a", "h1"), play("b", "h1"))))

    assert asked(stage) == [["a", "b"]]


def test_a_reader_voids_nothing() -> None:
    stage = Stage(r=Actor(role=Reader), **probed("a", "b"))

    stage.run(parallel(play("r"), per_host(play("a"), play("b"))), durations={"r": 99.0})

    assert asked(stage) == [["a", "b"]]


def test_a_verdict_that_says_needed_is_void_as_well() -> None:
    """Both `b` and `c` were missing; `b` brought `c` along."""
    stage = Stage(**probed("a", "b", "c"))
    stage.unsatisfied = {("b", "h1"), ("c", "h1")}
    stage.actors["b"].run = lambda ctx: stage.unsatisfied.clear()

    result = stage.run(per_host(play("a"), play("b"), play("c")))

    assert of(result, "c").satisfied
    assert stage.order() == ["b"]


def test_of_two_units_needed_ahead_the_second_is_asked_again_once_the_first_runs() -> None:
    stage = Stage(**probed("a", "b", "c"))
    stage.unsatisfied = {("b", "h1"), ("c", "h1")}
    stage.actors["b"].run = lambda ctx: stage.unsatisfied.discard(("c", "h1"))

    result = stage.run(per_host(play("a"), parallel(play("b"), play("c"))))

    assert asked(stage)[0] == ["a", "b", "c"]
    assert of(result, "c").satisfied


def test_a_lost_connection_voids_what_was_foreseen() -> None:
    """The host may have been started anew: `c` is asked again."""

    def look(answers: Sequence[Completed]) -> Verdict:
        if not stage.reconnects:
            raise ConnectionLost("it reboots")
        return Verdict.holds()

    stage = Stage(**probed("a", "b", "c"))
    stage.actors["b"] = Actor(probes=True, judge=look)

    stage.run(per_host(play("a"), play("b"), play("c")))

    assert sum(batch.count("c") for batch in asked(stage)) == 2


@pytest.mark.parametrize(
    "second",
    [
        play("b", on=one_of(("h1", "h2"))),
        play("b", needs=["v"]),
    ],
)
def test_what_may_turn_out_otherwise_is_not_asked_ahead(second: Any) -> None:
    stage = Stage(r=Actor(role=Reader, values={"v": 1}), **probed("a", "b"))

    stage.run(chain(play("r", provides=[Key("v")]), per_host(play("a"), second)))

    assert asked(stage) == [["a"], ["b"]]


def test_what_differs_from_host_to_host_is_asked_ahead_too() -> None:
    stage = Stage(**probed("a", "b", "c"))
    stage.actors["b"] = Actor(probes=True, per_unit=True)

    stage.run(per_host(play("a"), play("b"), play("c")))

    assert asked(stage) == [["a", "b", "c"]]


def test_a_condition_that_holds_is_decided_ahead() -> None:
    stage = Stage(**probed("a", "b", "c"))
    stage.actors["b"] = Actor(probes=True, when=lambda view: True)

    result = stage.run(per_host(play("a"), play("b", when="…"), play("c")))

    assert asked(stage) == [["a", "b", "c"]]
    assert of(result, "b").message == "as wanted"


def test_probing_ahead_leads_through_what_is_left_out() -> None:
    stage = Stage(**probed("a", "b", "c"))
    stage.actors["b"] = Actor(probes=True, when=lambda view: False)

    result = stage.run(per_host(play("a"), play("b", when="…"), play("c")))

    assert asked(stage) == [["a", "c"]]
    assert of(result, "b").message == "`when` does not hold"


def test_a_condition_that_can_not_be_decided_ahead_fails_in_its_turn() -> None:
    def undecidable(view: UnitView) -> bool:
        raise StepFailed("what is that?")

    stage = Stage(**probed("a", "b"))
    stage.actors["b"] = Actor(probes=True, when=undecidable)

    result = stage.run(per_host(play("a"), play("b", when="…")))

    assert asked(stage) == [["a"]]
    assert "what is that?" in of(result, "b").message


def test_a_unit_that_an_earlier_life_was_about_to_run_is_not_settled_ahead() -> None:
    stage = Stage(**probed("a", "b"))
    state = RunState.fold([UnitIntended(at=0.0, node="b", host="h1", attempt=1)])

    result = stage.run(per_host(play("a"), play("b")), state=state)

    assert (of(result, "b").status, of(result, "b").changed) == ("Success", True)


# Trouble.


def test_a_batch_that_fails_is_repeated_singly() -> None:
    stage = Stage(**probed("a", "b", "c"))
    stage.breaks_batches = True

    result = stage.run(parallel(play("a"), play("b"), play("c")))

    assert asked(stage) == [["a", "b", "c"], ["a"], ["b"], ["c"]]
    assert result.counts == {"Skipped": 3}


def test_repeated_singly_nothing_is_asked_ahead() -> None:
    stage = Stage(**probed("a", "b"))
    stage.breaks_batches = True

    stage.run(per_host(play("a"), play("b")))

    assert asked(stage) == [["a", "b"], ["a"], ["b"]]


def test_a_single_probe_that_fails_fails_its_unit() -> None:
    class Deaf(Stage):
        def answer(self, host: str, command: Command) -> Completed:
            if command.argv[1] == "b":
                raise KubexmError("no answer")
            return super().answer(host, command)

    stage = Deaf(**probed("a", "b"))

    result = stage.run(parallel(play("a"), play("b")))

    assert (of(result, "a").status, of(result, "b").message) == ("Skipped", "no answer")


BAD: list[Any] = [StepFailed("bad"), KeyError("bad"), StopIteration(), SystemExit(3)]


@pytest.mark.parametrize("error", BAD)
def test_a_judge_that_raises_fails_only_its_own_unit(error: BaseException) -> None:
    def judge(answers: Sequence[Completed]) -> Verdict:
        raise error

    stage = Stage(**probed("a", "c"), b=Actor(probes=True, judge=judge))

    result = stage.run(parallel(play("a"), play("b"), play("c")))

    assert statuses(result) == {"a@h1": "Skipped", "b@h1": "Failed", "c@h1": "Skipped"}
    assert asked(stage) == [["a", "b", "c"]]


def test_a_judge_that_raises_ahead_is_asked_again_in_its_turn() -> None:
    def judge(answers: Sequence[Completed]) -> Verdict:
        if ("a", "h1") not in stage.made:
            raise StepFailed("no such file")
        return Verdict.holds()

    stage = Stage(a=Actor(probes=True), b=Actor(probes=True, judge=judge))
    stage.unsatisfied = {("a", "h1")}

    result = stage.run(per_host(play("a"), play("b")))

    assert of(result, "b").satisfied


class BadProbe(ProbedPlay):
    """A step whose probe is what its actor's `values` say."""

    def probe(self, host: Host) -> Sequence[Command]:
        trouble: Any = self.actor.values["probe"]
        if isinstance(trouble, BaseException):
            raise trouble
        return trouble  # type: ignore[no-any-return]


class BadStage(Stage):
    def load(self, node: Any) -> Any:
        loaded = super().load(node)
        if "probe" in loaded.step.actor.values:
            loaded.static = BadProbe(self, node.id, loaded.step.actor)
            loaded.cls = BadProbe
        return loaded


def with_probe(probe: Any) -> Actor:
    return Actor(probes=True, values={"probe": probe})


@pytest.mark.parametrize("trouble", [*BAD, 42])
def test_a_probe_that_raises_or_is_none_fails_only_its_own_unit(trouble: Any) -> None:
    stage = BadStage(b=with_probe(trouble), **probed("a"))

    result = stage.run(parallel(play("a"), play("b")))

    assert statuses(result) == {"a@h1": "Skipped", "b@h1": "Failed"}
    assert asked(stage) == [["a"]]


def test_a_probe_that_raises_ahead_spoils_nothing() -> None:
    stage = BadStage(b=with_probe(StepFailed("not yet")), **probed("a"))

    result = stage.run(per_host(play("a"), play("b")))

    assert of(result, "a").satisfied
    assert of(result, "b").message == "not yet"


def test_a_step_with_nothing_to_ask_has_no_precheck() -> None:
    stage = BadStage(a=with_probe(None))
    stage.actors["a"].run = lambda ctx: stage.made.add(("a", "h1"))

    result = stage.run(play("a"), dry_run=True)

    assert of(result, "a").message == "has no precheck"
    assert stage.batches == []


def test_a_judge_that_answers_nonsense_fails_its_unit_in_its_turn_and_ahead() -> None:
    nonsense: Any = "yes"
    stage = Stage(a=Actor(probes=True), b=Actor(probes=True, judge=lambda answers: nonsense))

    result = stage.run(per_host(play("a"), play("b"), play("c")))

    assert "'yes', want a Verdict" in of(result, "b").message
    assert of(result, "c").status == "Skipped"


def test_a_run_that_is_over_leaves_no_probe_behind() -> None:
    async def main() -> set[str]:
        control = Control()
        asyncio.get_running_loop().call_later(5.0, control.cancel, "by request")
        await stage.perform(graph_of(play("a")), control=control)
        await asyncio.sleep(0)
        return {str(task.get_coro()) for task in asyncio.all_tasks() if "batch" in str(task)}

    stage = Stage(**probed("a"))
    stage.round_trip = 600.0

    assert virtual.run(main()) == set()


def test_what_was_foreseen_is_void_when_a_failed_unit_has_undone_itself() -> None:
    async def slowly_spoil(ctx: StepContext) -> None:
        await asyncio.sleep(1.0)
        stage.unsatisfied.add(("c", "h1"))

    stage = Stage(x=fails(), **probed("a", "b", "c"))
    stage.actors["x"].undoes_itself, stage.actors["x"].rollback = True, slowly_spoil
    stage.round_trip = 0.6

    result = stage.run(parallel(play("x"), per_host(play("a"), play("b"), play("c"))))

    assert of(result, "c").status == "Success"


def test_foreseen_units_of_a_lost_host_are_held_back() -> None:
    stage = Stage(x=fails("no", on=["h1"]), **probed("a", "b"))

    result = stage.run(
        parallel(chain(play("x", "h1"), play("y", "h1")), per_host(play("a"), play("b"))),
        on_failure="fail-fast",
    )

    assert of(result, "y").status == "Skipped"
    assert result.status == "Failed"


def test_foreseen_units_are_counted_timed_and_told_like_others() -> None:
    stage = Stage(**probed("a", "b"))

    result = stage.run(per_host(play("a"), play("b")))

    unit = of(result, "b")
    assert (unit.attempts, unit.message) == (1, "as wanted")
    assert unit.start_time is not None
