"""Saga: after a failure, what this run changed is taken back in reverse order."""

import asyncio
from typing import Any

import pytest
from tests.engine.stage import (
    Actor,
    Stage,
    back,
    fails,
    of,
    play,
    raising,
    statuses,
    undone,
    unreachable,
)

from kubexm.engine import Control
from kubexm.engine.debug import Choice, Debugger, Situation
from kubexm.engine.way_back import way_back
from kubexm.errors import HostUnreachable, StepFailed
from kubexm.plan import (
    Allowance,
    ExecutionFragment,
    HookFragment,
    Key,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    Tolerance,
    chain,
    node,
    one_of,
    parallel,
    per_host,
    scope,
)
from kubexm.plan.events import TurnedBack, UnitFinished
from kubexm.plan.records import AnyRecord, HostSeen, RunState, Turned, UnitDone, UnitIntended
from kubexm.plan.result import Cause, HostResult
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Expander, Minter, Outcome, Reader

# The order.


def test_what_was_changed_is_undone_in_reverse_order() -> None:
    stage = Stage(c=fails())

    result = back(stage, chain(play("a"), play("b"), play("c")))

    assert stage.order(what="rollback") == ["b", "a"]
    assert result.status == "RolledBack"
    assert statuses(result) == {"a@h1": "RolledBack", "b@h1": "RolledBack", "c@h1": "Failed"}


def test_barriers_are_reversed() -> None:
    """`a` is undone nowhere before `b` is undone everywhere."""
    stage = Stage(c=fails())
    stage.actors["b"] = Actor(rollback=_slowly)

    back(stage, chain(play("a", "h1", "h2"), play("b", "h1", "h2"), play("c")))

    assert {stage.at("rollback", "a", host) for host in ("h1", "h2")} == {9.0}


async def _slowly(ctx: StepContext) -> None:
    await asyncio.sleep(9.0 if ctx.host.name == "h2" else 1.0)


def test_same_host_edges_are_reversed_per_host() -> None:
    stage = Stage(b=Actor(rollback=_slowly), c=fails())

    back(stage, chain(per_host(play("a", "h1", "h2"), play("b", "h1", "h2")), play("c")))

    assert stage.at("rollback", "a", "h1") == 1.0
    assert stage.at("rollback", "a", "h2") == 9.0


def test_the_order_holds_across_what_changed_nothing() -> None:
    stage = Stage(
        b=Actor(satisfied=True), c=Actor(rollback=lambda ctx: asyncio.sleep(5.0)), d=fails()
    )

    back(stage, chain(play("a"), play("b"), play("c"), play("d")))

    assert undone(stage) == [("c", "h1"), ("a", "h1")]
    assert stage.at("rollback", "a", "h1") == 5.0


def test_the_order_holds_across_holes() -> None:
    stage = Stage(y=Actor(), b=Actor(rollback=lambda ctx: asyncio.sleep(5.0)), c=fails())
    lane = per_host(play("y", "h1", "h2"), play("a", "h1"))

    back(stage, chain(lane, play("b", "h1"), play("c")))

    assert stage.at("rollback", "y", "h2") == 5.0


# What is undone, and what is not.


def test_satisfied_units_are_not_undone() -> None:
    stage = Stage(a=Actor(satisfied=True), c=fails())

    result = back(stage, chain(play("a"), play("b"), play("c")))

    assert undone(stage) == [("b", "h1")]
    assert of(result, "a").status == "Skipped"


def test_units_that_ran_and_changed_nothing_are_not_undone() -> None:
    stage = Stage(a=Actor(changed=False), b=fails())

    result = back(stage, chain(play("a"), play("b")))

    assert undone(stage) == []
    assert (result.status, result.rollback) == ("Failed", None)
    assert stage.told(TurnedBack) == []


def test_only_the_hosts_that_changed_are_undone() -> None:
    stage = Stage(a=Actor(satisfied=lambda host: host == "h1"), b=fails())

    back(stage, chain(play("a", "h1", "h2"), play("b")))

    assert undone(stage) == [("a", "h2")]


def test_a_failed_unit_is_not_undone_by_the_run() -> None:
    stage = Stage(b=fails())

    back(stage, chain(play("a"), play("b")))

    assert undone(stage) == [("a", "h1")]


def test_what_a_minter_made_is_undone() -> None:
    stage = Stage(mint=Actor(role=Minter, values={"token": "t"}), b=Actor(), c=fails())
    minted = play("mint", provides=[Key("token")])

    back(stage, chain(minted, play("b", needs=["token"]), play("c")))

    assert stage.order(what="rollback") == ["b", "mint"]


def test_a_minter_that_nobody_needed_is_told_once_and_not_undone() -> None:
    stage = Stage(mint=Actor(role=Minter, values={"token": "t"}), b=Actor(satisfied=True))
    stage.actors["d"] = fails()
    minted = play("mint", provides=[Key("token")])

    back(stage, chain(minted, play("b", needs=["token"]), play("c"), play("d")))

    assert [event.node for event in stage.told(UnitFinished)].count("mint") == 1
    assert stage.order(what="rollback") == ["c"]


LASTING = Actor(can_be_undone=False)


def test_what_has_no_undo_is_left_and_told_apart_from_what_is_undone() -> None:
    stage = Stage(b=LASTING, d=fails())

    result = back(stage, chain(play("a"), play("b"), play("c"), play("d")))

    assert stage.order(what="rollback") == ["c", "a"]
    assert statuses(result) == {
        "a@h1": "RolledBack", "b@h1": "Success", "c@h1": "RolledBack", "d@h1": "Failed",
    }  # fmt: skip
    left = of(result, "b")
    assert (left.changed, left.message) == (True, "left as it is: the step has no undo")
    assert result.status == "RolledBack"
    assert result.rollback is not None
    assert of(result.rollback, "@undo/b").satisfied


def test_a_run_of_which_nothing_could_be_undone_is_not_rolled_back() -> None:
    result = back(Stage(a=LASTING, b=fails()), chain(play("a"), play("b")))

    assert result.status == "Failed"
    assert statuses(result) == {"a@h1": "Success", "b@h1": "Failed"}


def test_the_journal_tells_what_was_undone_from_what_was_left() -> None:
    stage = Stage(b=LASTING, c=fails())

    back(stage, chain(play("a"), play("b"), play("c")))

    found = way_back(RunState.fold(stage.records), ())
    why = "left as it is: the step has no undo"
    assert (found.is_taken_back("a", "h1"), found.why_left("a", "h1")) == (True, None)
    assert (found.is_taken_back("b", "h1"), found.why_left("b", "h1")) == (False, why)


def test_what_an_undo_may_not_touch_is_left_and_says_why() -> None:
    stage = Stage(b=Actor(rollback=lambda ctx: "others use it"), c=fails())

    result = back(stage, chain(play("a"), play("b"), play("c")))

    assert result.status == "RolledBack"
    assert statuses(result) == {"a@h1": "RolledBack", "b@h1": "Success", "c@h1": "Failed"}
    assert of(result, "b").message == "left as it is: others use it"


def test_a_compensation_that_has_not_come_to_its_end_has_taken_nothing_back() -> None:
    stage = Stage(c=fails())
    undo = chain(play("one"), play("two"))
    body = scope("app", play("b"), compensate=undo)
    back(stage, chain(body, play("c")))
    done = [r for r in stage.records if isinstance(r, UnitDone)]
    assert done[-1].node == "@undo/app/@compensate/two"

    assert body is not None
    found = way_back(
        RunState.fold(stage.records[: stage.records.index(done[-1])]), body.compensations
    )

    assert not found.is_taken_back("app/b", "h1")


def test_a_debugged_step_can_be_undone_as_the_step_can() -> None:
    async def go_on(situation: Situation) -> Choice:
        return "run"

    stage = Stage(a=LASTING, b=Actor(), c=fails())
    stage.load = Debugger(go_on, Control(), ["nowhere"]).wrap(stage.load)  # type: ignore[method-assign, assignment]
    stage.actors["c"].run = raising(StepFailed("no"))

    result = back(stage, chain(play("a"), play("b"), play("c")), journal=stage.journal)

    assert statuses(result) == {"a@h1": "Success", "b@h1": "RolledBack", "c@h1": "Failed"}


def test_readers_are_not_undone() -> None:
    stage = Stage(read=Actor(role=Reader, values={"v": 1}), c=fails())

    back(stage, chain(play("read", provides=[Key("v")]), play("b", needs=["v"]), play("c")))

    assert stage.order(what="rollback") == ["b"]


def test_an_undo_sees_the_values_its_step_had_and_makes_none_anew() -> None:
    seen: list[Any] = []
    stage = Stage(
        mint=Actor(role=Minter, values={"token": "t"}),
        b=Actor(rollback=lambda ctx: seen.append(ctx.values["token"])),
        c=Actor(duration=60.0, run=raising(StepFailed("no"))),
    )
    minted = play("mint", provides=[Key("token", ttl=5.0)])

    back(stage, chain(minted, play("b", needs=["token"]), play("c")))

    assert seen == ["t"]
    assert stage.order("mint") == ["mint"]


def test_a_one_of_unit_is_undone_where_it_ran() -> None:
    stage = Stage(x=unreachable("h1"), b=fails())

    back(stage, chain(play("x", "h1", "h3"), play("a", on=one_of(("h1", "h2"))), play("b", "h3")))

    assert ("a", "h2") in undone(stage)


def test_a_unit_that_another_attempt_finds_done_was_changed_by_this_run() -> None:
    def half(ctx: StepContext) -> None:
        stage.made.add(("a", "h1"))
        raise StepFailed("lost track")

    stage = Stage(a=Actor(run=half), b=fails())

    back(stage, chain(play("a", retry=RetryPolicy(attempts=2)), play("b")))

    assert undone(stage) == [("a", "h1")]


def test_what_this_run_changed_before_a_reboot_is_undone_though_it_is_only_looked_at_since() -> (
    None
):
    stage = Stage(a=Actor(satisfied=True), b=fails())
    stage.facts = {"h1": {"boot_id": "second"}}
    changed = HostResult("h1", "Success", changed=True)
    records: list[AnyRecord] = [
        HostSeen(at=0.0, host="h1", boot_id="first"),
        UnitDone(at=0.0, node="a", host="h1", result=changed),
    ]

    result = back(stage, chain(play("a"), play("b")), state=RunState.fold(records))

    assert stage.order() == ["b"]
    assert undone(stage) == [("a", "h1")]
    assert result.status == "RolledBack"


def test_what_an_earlier_life_was_about_to_change_is_undone_though_it_is_held_back_now() -> None:
    stage = Stage(a=fails())
    state = RunState.fold([UnitIntended(at=0.0, node="b", host="h1", attempt=1)])

    result = back(
        stage, parallel(play("a"), play("b")), state=state, parallelism=1, durations={"a": 9.0}
    )

    assert stage.order() == ["a"]
    assert undone(stage) == [("b", "h1")]
    assert result.status == "RolledBack"


# Failed undos.


def test_a_failed_undo_stops_the_undos_of_what_it_stood_on() -> None:
    stage = Stage(b=Actor(rollback=raising(StepFailed("stuck"))), c=fails())

    result = back(stage, chain(play("a"), play("b"), play("c")))

    assert undone(stage) == [("b", "h1")]
    assert statuses(result) == {"a@h1": "Success", "b@h1": "Success", "c@h1": "Failed"}
    assert result.status == "Failed"
    assert result.rollback is not None
    assert result.rollback.message == "@undo/b on h1: stuck"


def test_the_rest_of_the_undos_go_on() -> None:
    stage = Stage(b=Actor(rollback=raising(StepFailed("stuck"), "h1")), c=fails())
    lanes = per_host(play("a", "h1", "h2"), play("b", "h1", "h2"))

    result = back(stage, chain(parallel(lanes, play("x", "h3")), play("c")))

    assert set(undone(stage)) == {("b", "h1"), ("b", "h2"), ("a", "h2"), ("x", "h3")}
    assert of(result, "a", "h1").status == "Success"
    assert of(result, "a", "h2").status == "RolledBack"


def test_every_undo_is_reported() -> None:
    stage = Stage(b=Actor(rollback=raising(StepFailed("stuck"))), c=fails())

    result = back(stage, chain(play("a"), play("b"), play("c")))

    assert result.rollback is not None
    assert statuses(result.rollback) == {"@undo/b@h1": "Failed", "@undo/a@h1": "Skipped"}
    assert of(result.rollback, "@undo/a").message == "held back by @undo/b on h1: stuck"


def test_an_undo_is_retried_as_its_step_is() -> None:
    tries: list[float] = []

    def undo(ctx: StepContext) -> None:
        tries.append(asyncio.get_running_loop().time())
        if len(tries) < 3:
            raise StepFailed("busy")

    stage = Stage(a=Actor(rollback=undo), b=fails())

    result = back(stage, chain(play("a", retry=RetryPolicy(attempts=3, delay=5.0)), play("b")))

    assert tries == [0.0, 5.0, 10.0]
    assert result.status == "RolledBack"


def test_an_undo_has_the_timeout_of_its_step() -> None:
    stage = Stage(a=Actor(rollback=lambda ctx: asyncio.sleep(60.0)), b=fails())

    result = back(stage, chain(play("a", timeout=7.0), play("b")))

    assert result.rollback is not None
    assert of(result.rollback, "@undo/a").message == "did not finish within 7 s"


def test_undos_have_the_limits_of_their_nodes() -> None:
    stage = Stage(a=Actor(rollback=a_second), c=fails())
    limits = ResourceConstraints(global_concurrency_limit=1)

    back(stage, chain(play("a", "h1", "h2", limits=limits), play("c")))

    assert sorted(at for at, what, *_ in stage.notes if what == "rollback") == [0.0, 1.0]


def test_undos_take_the_pools_of_their_nodes() -> None:
    stage = Stage(a=Actor(rollback=a_second), b=Actor(rollback=a_second), c=fails())
    limits = ResourceConstraints(pools=("packages",))
    both = parallel(play("a", limits=limits), play("b", "h2", limits=limits))

    back(stage, chain(both, play("c")), graph={"pools": {"packages": Pool(1)}})

    assert sorted(at for at, what, *_ in stage.notes if what == "rollback") == [0.0, 1.0]


async def a_second(ctx: StepContext) -> None:
    await asyncio.sleep(1.0)


def test_a_host_lost_on_the_way_back_is_not_taken_for_undone() -> None:
    stage = Stage(a=Actor(rollback=raising(HostUnreachable("no route"), "h1")), b=fails())

    result = back(stage, chain(play("a", "h1", "h2"), play("b")))

    assert result.status == "Failed"
    assert of(result, "a", "h1").status == "Success"
    assert of(result, "a", "h2").status == "RolledBack"


def test_a_host_quarantined_on_the_way_there_is_undone_all_the_same() -> None:
    stage = Stage(b=fails(on=["h1"]), c=Actor(duration=5.0, run=raising(StepFailed("no"))))
    tolerant = Tolerance(failed=Allowance(count=1))

    result = back(
        stage,
        parallel(
            per_host(play("a", "h1", "h2"), play("b", "h1", "h2", tolerance=tolerant)),
            play("c", "h2"),
        ),
    )

    assert ("a", "h1") in undone(stage)
    assert result.status == "RolledBack"


# Ending what runs.


def test_nothing_new_starts_and_waiting_units_end_at_once() -> None:
    patient = RetryPolicy(attempts=9, delay=600.0)
    stage = Stage(a=late_failure(), b=fails(), c=Actor(duration=2.0))

    result = back(
        stage, parallel(play("a"), play("b", retry=patient), per_host(play("c"), play("d")))
    )

    assert statuses(result)["b@h1"] == "Cancelled"
    assert of(result, "b").cause == Cause("a", "h1", "no", "failed")
    assert of(result, "d").status == "Skipped"
    assert stage.end == 2.0


def late_failure() -> Actor:
    return Actor(duration=1.0, run=raising(StepFailed("no")))


def test_running_units_that_end_within_their_grace_are_undone() -> None:
    stage = Stage(a=late_failure(), b=Actor(duration=9.0))

    result = back(stage, parallel(play("a"), play("b")), grace=10.0)

    assert of(result, "b").status == "RolledBack"
    assert undone(stage) == [("b", "h1")]


def test_running_units_are_ended_when_their_grace_is_over_and_what_they_began_is_undone() -> None:
    stage = Stage(a=late_failure(), b=Actor(duration=600.0))

    result = back(stage, parallel(play("a"), play("b")), grace=10.0)

    assert of(result, "b").status == "RolledBack"
    assert ("b", "h1") in stage.started("rollback")
    assert stage.end == 11.0


def test_uninterruptible_units_are_awaited() -> None:
    stage = Stage(a=late_failure(), b=Actor(duration=600.0, uninterruptible=True))

    result = back(stage, parallel(play("a"), play("b")), grace=10.0)

    assert of(result, "b").status == "RolledBack"
    assert stage.at("end", "b", "h1") == 600.0


# Units that undo themselves.


def test_a_failed_unit_undoes_itself_if_its_step_says_so_after_diagnostics() -> None:
    actor = fails("half done")
    actor.undoes_itself = True
    actor.diagnose = lambda ctx: "disk full"
    stage = Stage(a=actor)

    result = stage.run(play("a"))

    kinds = [what for _, what, _, _ in stage.notes]
    assert kinds == ["precheck", "start", "end", "diagnose", "rollback"]
    assert of(result, "a").message == "half done\ndisk full"
    assert of(result, "a").status == "Failed"


def test_a_failed_unit_whose_undo_needs_what_goes_undoes_itself_before_the_others() -> None:
    stage = Stage(a=Actor(), b=fails())
    stage.actors["b"].undoes_itself = "going back"

    back(stage, chain(play("a"), play("b")))

    assert undone(stage) == [("b", "h1"), ("a", "h1")]


def test_where_nothing_goes_back_such_a_unit_stays_as_it_is() -> None:
    stage = Stage(b=fails())
    stage.actors["b"].undoes_itself = "going back"

    stage.run(chain(play("a"), play("b")))

    assert undone(stage) == []


def test_a_failed_unit_does_not_undo_itself_unasked() -> None:
    stage = Stage(a=fails())

    stage.run(play("a"))

    assert undone(stage) == []


def test_a_unit_whose_precheck_failed_has_nothing_to_undo() -> None:
    stage = Stage(a=Actor(precheck=raising(StepFailed("no")), undoes_itself=True))

    stage.run(play("a"))

    assert undone(stage) == []


def test_diagnostics_that_fail_keep_no_unit_from_undoing_itself() -> None:
    actor = fails("half done")
    actor.undoes_itself, actor.diagnose = True, raising(StepFailed("no logs"))
    stage = Stage(a=actor)

    result = stage.run(play("a"))

    assert undone(stage) == [("a", "h1")]
    assert of(result, "a").message == "half done\nafterwards: no logs"


def test_an_undo_of_itself_that_fails_is_told_beside_the_failure() -> None:
    actor = fails("half done")
    actor.undoes_itself, actor.rollback = True, raising(StepFailed("stuck"))
    stage = Stage(a=actor)

    assert of(stage.run(play("a")), "a").message == "half done\nafterwards: stuck"


# Expanders.


def expanding(fragment: ExecutionFragment) -> Actor:
    return Actor(role=Expander, fragment=fragment)


def test_what_an_expander_added_is_undone_between_its_neighbours() -> None:
    stage = Stage(e=expanding(per_host(play("x"), play("y"))), c=fails())

    result = back(stage, chain(play("a"), play("e"), play("b"), play("c")))

    assert stage.order(what="rollback") == ["b", "e/@h1/y", "e/@h1/x", "a"]
    assert result.status == "RolledBack"
    assert statuses(result)["e/@h1/x@h1"] == "RolledBack"


def test_what_expanders_added_to_lanes_is_undone_along_the_lanes() -> None:
    stage = Stage(b=Actor(rollback=_slowly), c=fails())
    stage.actors["e"] = Actor(
        role=Expander, run=lambda ctx: Outcome(fragment=play("x", ctx.host.name))
    )
    lanes = per_host(play("a", "h1", "h2"), play("e", "h1", "h2"), play("b", "h1", "h2"))

    back(stage, chain(lanes, play("c")))

    assert stage.at("rollback", "a", "h1") == stage.at("rollback", "e/@h1/x", "h1") == 1.0
    assert stage.at("rollback", "a", "h2") == stage.at("rollback", "e/@h2/x", "h2") == 9.0


def test_what_an_expander_added_may_need_values_and_be_undone() -> None:
    stage = Stage(read=Actor(role=Reader, values={"v": 1}), c=fails())
    stage.actors["e"] = expanding(play("x", needs=["v"]))

    result = back(stage, chain(play("read", provides=[Key("v")]), play("e"), play("c")))

    assert result.status == "RolledBack"


def test_a_compensation_that_an_expander_added_counts() -> None:
    stage = Stage(c=fails())
    stage.actors["e"] = expanding(
        scope("app", play("x"), compensate=play("reset")) or ExecutionFragment()
    )

    result = back(stage, chain(play("e"), play("c")))

    assert "e/@h1/app/@compensate/reset" in stage.order()
    assert undone(stage) == []
    assert result.status == "RolledBack"


def test_expansions_of_expansions_are_undone_before_what_they_stand_on() -> None:
    inner = Actor(role=Expander, fragment=play("y"))
    stage = Stage(c=fails(), inner=inner)
    stage.actors["e"] = expanding(per_host(play("x"), play("inner")))

    back(stage, chain(play("a"), play("e"), play("b"), play("c")))

    assert stage.order(what="rollback") == ["b", "e/@h1/inner/@h1/y", "e/@h1/x", "a"]


def test_what_an_expander_added_to_the_control_node_is_undone() -> None:
    stage = Stage(c=fails())
    stage.actors["e"] = expanding(play("x", "control-node"))

    back(stage, chain(play("a"), play("e"), play("b"), play("c")))

    assert undone(stage) == [("b", "h1"), ("e/@h1/x", "control-node"), ("a", "h1")]


# Hooks.


def with_hooks(name: str, body: ExecutionFragment, **hooks: ExecutionFragment) -> Any:
    return scope(
        name,
        body,
        hooks=[HookFragment(m.replace("_", "-"), f) for m, f in hooks.items()],  # type: ignore[arg-type]
    )


def test_on_failure_hooks_come_first_then_the_rollback_then_always() -> None:
    stage = Stage(b=fails(), H=Actor(changed=False), A=Actor(changed=False))
    body = with_hooks("s", chain(play("a"), play("b")), on_failure=play("H"), always=play("A"))

    back(stage, body)

    marks = [(what, node) for _, what, node, _ in stage.notes if what in ("start", "rollback")]
    assert marks == [
        ("start", "s/a"),
        ("start", "s/b"),
        ("start", "s/@on-failure-1/H"),
        ("rollback", "s/a"),
        ("start", "s/@always-1/A"),
    ]


def test_always_waits_for_the_rollback_also_where_more_follows_its_scope() -> None:
    stage = Stage(b=fails())
    body = with_hooks("s", chain(play("a"), play("b")), always=play("A"))

    result = back(stage, chain(body, play("c")))

    assert stage.order(what="rollback") == ["s/a"]
    assert of(result, "s/@always-1/A").status == "Success"
    assert of(result, "c").status == "Skipped"


def test_on_failure_of_an_outer_scope_does_not_wait_for_always_of_an_inner() -> None:
    stage = Stage(b=fails(), H=Actor(changed=False))
    inner = with_hooks("in", chain(play("a"), play("b")), always=play("A"))
    outer = with_hooks("out", inner, on_failure=play("H"), always=play("B"))

    back(stage, outer)

    marks = [node for _, what, node, _ in stage.notes if what in ("start", "rollback")]
    assert marks[2:] == [
        "out/@on-failure-1/H",
        "out/in/a",
        "out/in/@always-1/A",
        "out/@always-1/B",
    ]


def test_the_nodes_of_a_deferred_hook_keep_their_order() -> None:
    stage = Stage(b=fails(), A=Actor(duration=3.0))
    body = with_hooks("s", chain(play("a"), play("b")), always=per_host(play("A"), play("B")))

    back(stage, body)

    assert stage.at("start", "s/@always-1/B", "h1") == 3.0


def test_a_deferred_hook_whose_first_node_failed_stops_there() -> None:
    stage = Stage(b=fails(), A=fails("oh"))
    body = with_hooks("s", chain(play("a"), play("b")), always=per_host(play("A"), play("B")))

    result = back(stage, body)

    assert of(result, "s/@always-1/B").message == "held back by s/@always-1/A on h1: oh"


def test_an_always_hook_of_a_compensated_scope_runs_after_that_and_stays() -> None:
    stage = Stage(c=fails())
    body = scope(
        "app", play("b"), hooks=[HookFragment("always", play("A"))], compensate=play("reset")
    )
    outer = scope("out", chain(body, play("c")), hooks=[HookFragment("always", play("B"))])

    result = back(stage, outer)

    assert stage.order("out/app/@compensate/reset", "out/@always-1/B") == [
        "out/app/@compensate/reset",
        "out/@always-1/B",
    ]
    assert of(result, "out/@always-1/B").status == "Success"
    assert of(result, "out/app/@always-1/A").status == "RolledBack"


# The record.


def test_the_direction_is_committed_before_anything_is_undone() -> None:
    stage = Stage(b=fails())

    back(stage, chain(play("a"), play("b")))

    kinds = [r.node if isinstance(r, UnitDone) else type(r).__name__ for r in stage.records]
    start = "UnitIntended"
    assert kinds == [start, "a", start, "b", "Turned", "@undo/a"]


def test_what_was_under_way_when_a_crash_came_is_undone_whatever_its_step_declares() -> None:
    plan = parallel(play("c", "h1"), play("a", "h2"), play("b", "h3"))

    def stage() -> Stage:
        found = Stage(a=fails("boom"), b=Actor(duration=600.0))
        found.actors["a"].duration = 1.0
        return found

    first = stage()
    whole = statuses(first.run(plan, on_failure="rollback", grace=2.0))

    assert whole["b@h3"] == "RolledBack"
    for kept in range(len(first.records)):
        state = RunState.fold(first.records[:kept])
        again = stage().run(plan, state=state, on_failure="rollback", grace=2.0)
        assert statuses(again) == whole


def test_the_undo_is_told_with_its_graph() -> None:
    stage = Stage(b=fails("no"))

    back(stage, chain(play("a"), play("b")))

    (event,) = stage.told(TurnedBack)
    assert (event.cause.node, event.undo) == ("b", {"@undo/a": 1})


def crashed_on_the_way_back() -> RunState:
    """`a` and `b` changed, `c` failed, and `b` is undone already."""

    def done(node: str, status: Any = "Success", **more: Any) -> UnitDone:
        result = HostResult("h1", status, changed=status == "Success", **more)
        return UnitDone(at=0.0, node=node, host="h1", result=result, blocks=status == "Failed")

    cause = Cause("c", "h1", "no")
    return RunState.fold(
        [
            *(done("a"), done("b"), done("c", "Failed", message="no", failure="failed")),
            Turned(at=0.0, cause=cause),
            done("@undo/b"),
        ]
    )


def test_a_run_that_crashed_on_its_way_back_goes_on_backwards() -> None:
    stage = Stage()

    result = back(
        stage, chain(play("a"), play("b"), play("c"), play("d")), state=crashed_on_the_way_back()
    )

    assert undone(stage) == [("a", "h1")]
    assert stage.started() == []
    assert (result.status, result.message) == ("RolledBack", "c on h1: no")


def cancelled_at_once() -> Control:
    control = Control()
    control.cancel("by request")
    return control


@pytest.mark.parametrize("has_turned", [True, False])
def test_a_life_that_is_cancelled_at_once_leaves_the_way_back_to_the_next(
    has_turned: bool,
) -> None:
    plan = chain(play("a"), play("b"), play("c"))
    first, second = Stage(b=fails()), Stage()
    back(first, plan)
    turned = next(at for at, r in enumerate(first.records) if isinstance(r, Turned))
    state = RunState.fold(first.records[: turned + has_turned])

    result = back(second, plan, state=state, control=cancelled_at_once())
    resumed = back(Stage(), plan, state=state)

    assert (result.status, undone(second)) == ("Cancelled", [])
    assert of(result, "b").status == "Failed"
    assert resumed.status == "RolledBack"


def test_what_was_ended_when_a_run_turned_stays_so_when_the_way_back_is_resumed() -> None:
    plan = parallel(chain(play("x"), play("a")), play("b", "h2"))
    first = Stage(a=late_failure(), b=Actor(duration=600.0))
    whole = back(first, plan, grace=1.0)
    turned = next(at for at, r in enumerate(first.records, 1) if isinstance(r, Turned))
    second = Stage()

    resumed = back(second, plan, state=RunState.fold(first.records[:turned]))

    assert of(whole, "b", "h2").status == "RolledBack"
    assert statuses(resumed) == statuses(whole)
    assert second.order() == []


def test_a_run_on_its_way_back_stays_on_it_whatever_the_policy_says_now() -> None:
    stage = Stage()

    result = stage.run(
        chain(play("a"), play("b"), play("c")),
        state=crashed_on_the_way_back(),
        on_failure="isolate",
    )

    assert undone(stage) == [("a", "h1")]
    assert result.status == "RolledBack"


def test_a_host_that_is_gone_when_the_way_back_is_resumed_is_not_taken_for_undone() -> None:
    stage = Stage()
    stage.unreachable = {"h1": "no route"}

    result = back(stage, chain(play("a"), play("b"), play("c")), state=crashed_on_the_way_back())

    assert result.status == "Failed"
    assert of(result, "b").status == "RolledBack"
    assert of(result, "a").status == "Success"


def test_a_dry_run_rolls_nothing_back() -> None:
    stage = Stage(b=Actor(precheck=raising(StepFailed("no"))))

    result = back(stage, parallel(play("a"), play("b")), dry_run=True)

    assert undone(stage) == []
    assert result.status == "Failed"


@pytest.mark.parametrize("policy", ["isolate", "fail-fast"])
def test_other_policies_undo_nothing(policy: str) -> None:
    stage = Stage(b=fails())

    result = stage.run(chain(play("a"), play("b")), on_failure=policy)

    assert undone(stage) == []
    assert of(result, "a").status == "Success"


def test_nodes_of_a_compensation_know_their_own_hosts() -> None:
    stage = Stage(c=fails())
    reset = node("reset", play("x").nodes[0].step, on=("h2",))

    back(stage, chain(scope("app", play("b"), compensate=reset), play("c")))

    assert ("app/@compensate/reset", "h2") in stage.started()
