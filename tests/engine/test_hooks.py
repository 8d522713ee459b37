"""Hooks of scopes: when they are due, what they see, what their failure means."""

from typing import Any

import pytest
from tests.engine.stage import Actor, Stage, fails, of, play, statuses, unreachable

from kubexm.plan import (
    Allowance,
    ExecutionFragment,
    HookFragment,
    HostGroup,
    Key,
    Tolerance,
    chain,
    parallel,
    per_host,
    scope,
)
from kubexm.plan.fragment import replace
from kubexm.plan.records import RunState, UnitDone
from kubexm.plan.scope import MOMENTS, Moment
from kubexm.step.contract import Expander, Minter

PRE, POST, ON_FAILURE, ALWAYS = MOMENTS
TOLERANT = Tolerance(failed=Allowance(count=1))


def hook(moment: Moment, *hosts: str, name: str = "", barrier: bool = False) -> HookFragment:
    return HookFragment(moment, play(name or moment, *hosts), barrier)


def scoped(body: ExecutionFragment | None, *hooks: HookFragment, name: str = "s") -> Any:
    return scope(name, body, hooks=hooks)


def all_moments(*hosts: str, barrier: bool = False) -> list[HookFragment]:
    return [hook(moment, *hosts, barrier=barrier) for moment in MOMENTS]


def ran(stage: Stage) -> list[str]:
    """The last part of the paths of what ran, in order."""
    return [node.rsplit("/", 1)[-1] for node in stage.order()]


# Moments.


def test_around_a_success_run_pre_post_and_always() -> None:
    stage = Stage()

    stage.run(scoped(play("a"), *all_moments()))

    assert ran(stage) == ["pre", "a", "post", "always"]


def test_around_a_failure_run_pre_on_failure_and_always() -> None:
    stage = Stage(a=fails())

    stage.run(scoped(play("a"), *all_moments()))

    assert ran(stage) == ["pre", "a", "on-failure", "always"]


def test_a_scope_whose_minter_nobody_asked_was_not_entered_in_this_life_or_the_next() -> None:
    plan = scoped(play("m", provides=[Key("token")]), hook(POST))
    first, second = (Stage(m=Actor(role=Minter)) for _ in range(2))

    first.run(plan)
    minter = [record for record in first.records if getattr(record, "node", "") == "s/m"]
    second.run(plan, state=RunState.fold(minter))

    assert (len(minter), ran(first), ran(second)) == (1, [], [])


def test_a_hook_waits_for_the_whole_scope() -> None:
    stage = Stage(b=Actor(duration=5.0))

    stage.run(scoped(parallel(play("a"), play("b")), hook(POST)))

    assert stage.at("start", "s/@post-1/post", "h1") == 5.0


def test_the_scope_waits_for_its_pre_hook() -> None:
    stage = Stage(pre=Actor(duration=5.0))

    stage.run(scoped(parallel(play("a"), play("b")), hook(PRE)))

    assert stage.at("start", "s/b", "h1") == 5.0


def test_what_follows_the_scope_waits_for_its_hooks() -> None:
    stage = Stage(always=Actor(duration=5.0))

    stage.run(chain(scoped(play("a"), hook(ALWAYS)), play("b")))

    assert stage.at("start", "b", "h1") == 5.0


def test_several_hooks_of_one_moment_run_one_after_the_other() -> None:
    stage = Stage()

    stage.run(
        scoped(
            play("a"),
            *(hook(PRE, name="p1"), hook(PRE, name="p2")),
            *(hook(POST, name="q1"), hook(POST, name="q2")),
        )
    )

    assert ran(stage) == ["p1", "p2", "a", "q1", "q2"]


def test_a_scope_that_was_satisfied_succeeded() -> None:
    stage = Stage(a=Actor(satisfied=True))

    stage.run(scoped(play("a"), *all_moments()))

    assert ran(stage) == ["pre", "post", "always"]


def test_ignored_errors_do_not_fail_the_scope() -> None:
    stage = Stage(a=fails())

    stage.run(scoped(play("a", ignore_errors=True), *all_moments()))

    assert ran(stage) == ["pre", "a", "post", "always"]


def test_a_hook_that_is_not_due_is_satisfied_and_says_why() -> None:
    stage = Stage()

    result = stage.run(scoped(play("a"), hook(ON_FAILURE)))

    unit = of(result, "s/@on-failure-1/on-failure")
    assert unit.satisfied
    assert unit.message == "on-failure is not due: the scope succeeded"


def test_a_post_hook_of_a_failed_scope_is_held_back_by_its_failure() -> None:
    stage = Stage(a=fails("no"))

    result = stage.run(scoped(play("a"), hook(POST)))

    unit = of(result, "s/@post-1/post")
    assert (unit.message, unit.skipped) == ("held back by s/a on h1: no", False)


# Levels.


@pytest.mark.parametrize("level", ["pipeline", "pipeline/module", "pipeline/module/task", "step"])
def test_hooks_belong_to_any_level(level: str) -> None:
    body: ExecutionFragment | None = scoped(play("a"), *(all_moments() if level == "step" else []))
    for name in ("task", "module", "pipeline"):
        path = level.rsplit("/", 1)[-1]
        body = scoped(body, *(all_moments() if path == name else []), name=name)
    stage = Stage()

    stage.run(body)

    assert ran(stage) == ["pre", "a", "post", "always"]


def test_inner_hooks_come_before_outer_ones() -> None:
    stage = Stage(a=fails())
    inner = scoped(play("a"), hook(ON_FAILURE, name="in"), hook(ALWAYS, name="in2"), name="inner")

    stage.run(scoped(inner, hook(ON_FAILURE, name="out"), hook(ALWAYS, name="out2"), name="outer"))

    assert ran(stage) == ["a", "in", "in2", "out", "out2"]


def test_a_failure_in_an_inner_scope_is_one_of_the_outer() -> None:
    stage = Stage(a=fails())

    stage.run(scoped(chain(scoped(play("a")), play("b")), hook(ON_FAILURE), name="outer"))

    assert ran(stage) == ["a", "on-failure"]


# Hosts.


def test_hooks_follow_the_scope_on_their_own_host() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(scoped(play("a", "h1", "h2"), *all_moments("h1", "h2")))

    assert statuses(result)["s/@post-1/post@h2"] == "Success"
    assert statuses(result)["s/@on-failure-1/on-failure@h1"] == "Success"
    assert of(result, "s/@post-1/post", "h1").status == "Skipped"
    assert of(result, "s/@on-failure-1/on-failure", "h2").satisfied


def test_a_host_does_not_wait_for_the_hooks_of_others() -> None:
    stage = Stage(a=Actor(duration=lambda host: 9.0 if host == "h2" else 1.0))

    stage.run(scoped(play("a", "h1", "h2"), hook(POST, "h1", "h2")))

    assert stage.at("start", "s/@post-1/post", "h1") == 1.0


def test_a_barrier_hook_waits_for_the_scope_on_all_hosts() -> None:
    stage = Stage(a=Actor(duration=lambda host: 9.0 if host == "h2" else 1.0))

    stage.run(scoped(play("a", "h1", "h2"), hook(POST, "h1", barrier=True)))

    assert stage.at("start", "s/@post-1/post", "h1") == 9.0


def test_a_barrier_hook_hears_of_a_failure_on_any_host() -> None:
    stage = Stage(a=fails(on=["h2"]))

    stage.run(scoped(play("a", "h1", "h2"), *all_moments("h1", barrier=True)))

    assert [name for name in ran(stage) if name != "a"] == ["pre", "on-failure", "always"]


def test_a_hook_on_a_host_where_the_scope_does_nothing_follows_the_whole_scope() -> None:
    stage = Stage(a=Actor(duration=lambda host: 9.0 if host == "h2" else 1.0))

    stage.run(scoped(play("a", "h1", "h2"), hook(POST, "h3")))

    assert stage.at("start", "s/@post-1/post", "h3") == 9.0


def test_a_failure_on_another_host_is_none_of_this_hosts_hooks() -> None:
    stage = Stage(b=fails())
    body = parallel(play("a", "h1"), play("b", "h2"))

    result = stage.run(scoped(body, hook(ON_FAILURE, "h1", "h2")))

    assert of(result, "s/@on-failure-1/on-failure", "h1").satisfied
    assert of(result, "s/@on-failure-1/on-failure", "h2").status == "Success"


def test_a_held_back_part_fails_the_scope_on_hosts_that_entered_it() -> None:
    """`b` waits for `a` everywhere: on `h2`, `a` succeeded and `b` never came."""
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(
        scoped(chain(play("a", "h1", "h2"), play("b", "h1", "h2")), hook(ON_FAILURE, "h1", "h2"))
    )

    assert of(result, "s/@on-failure-1/on-failure", "h2").status == "Success"


def test_hooks_do_not_run_on_a_quarantined_host() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(scoped(play("a", "h1", "h2", tolerance=TOLERANT), *all_moments("h1", "h2")))

    assert of(result, "s/@always-1/always", "h1").message == "held back by s/a on h1: no"
    assert of(result, "s/@post-1/post", "h2").status == "Success"


def test_a_quarantined_host_does_not_fail_the_scope_for_a_barrier_hook() -> None:
    stage = Stage(a=unreachable("h1"))

    stage.run(scoped(play("a", "h1", "h2"), *all_moments("h2", barrier=True)))

    assert [name for name in ran(stage) if name != "a"] == ["pre", "post", "always"]


# Scopes that were not entered.


def test_a_scope_that_was_not_entered_has_no_hooks() -> None:
    stage = Stage(x=fails("no"))

    result = stage.run(chain(play("x"), scoped(play("a"), *all_moments())))

    assert ran(stage) == ["x"]
    assert of(result, "s/@always-1/always").message == "held back by x on h1: no"


def test_a_scope_is_entered_when_anything_in_it_started() -> None:
    stage = Stage(x=fails())
    whole = parallel(play("x"), scoped(chain(play("a"), play("b")), hook(ALWAYS)))
    linked = [node if node.id != "s/b" else _with_edge(node, "x") for node in whole.nodes]

    stage.run(ExecutionFragment(tuple(linked), whole.joins))

    assert "always" in ran(stage)


def _with_edge(node: Any, before: str) -> Any:
    return replace(node, after=(*node.after, before))


# The failure of a hook.


def test_a_failed_pre_hook_holds_the_scope_back_and_leaves_always_to_run() -> None:
    stage = Stage(pre=fails("no"))

    result = stage.run(scoped(play("a"), *all_moments()))

    assert ran(stage) == ["pre", "always"]
    assert of(result, "s/a").message == "held back by s/@pre-1/pre on h1: no"
    why = "on-failure is not due: the scope failed by a hook alone"
    assert of(result, "s/@on-failure-1/on-failure").message == why
    assert result.status == "Failed"


def test_a_failed_pre_hook_leaves_always_to_run_only_where_it_was_tried() -> None:
    stage = Stage(x=fails("no", on=["h1"]), pre=fails(on=["h2"]))
    whole = scoped(play("a", "h1", "h2"), *all_moments("h1", "h2"))

    result = stage.run(per_host(play("x", "h1", "h2"), whole))

    assert of(result, "s/@always-1/always", "h1").message == "held back by x on h1: no"
    assert of(result, "s/@always-1/always", "h2").status == "Success"


def test_a_pre_hook_of_an_inner_scope_enters_the_outer_one() -> None:
    stage = Stage(pre=fails())
    inner = scoped(play("a"), hook(PRE), name="in")

    stage.run(scoped(inner, hook(ON_FAILURE), hook(ALWAYS), name="out"))

    assert ran(stage) == ["pre", "always"]


def test_what_was_locked_before_a_scope_is_unlocked_when_the_scope_itself_can_not_start() -> None:
    stage = Stage(x=fails(), pre=Actor(duration=3.0))
    stage.actors["x"].duration = 2.0
    whole = parallel(play("x"), scoped(play("a"), hook(PRE), hook(ALWAYS)))

    result = stage.run(whole, on_failure="fail-fast")

    assert set(ran(stage)) == {"x", "pre", "always"}
    assert of(result, "s/a").status == "Skipped"


def test_a_pre_hook_that_failed_on_one_host_triggers_no_barrier_hook() -> None:
    stage = Stage(pre=fails(on=["h1"]))
    hooks = [hook(PRE, "h1", "h2"), hook(ON_FAILURE, "h2", barrier=True)]

    result = stage.run(scoped(play("a", "h1", "h2"), *hooks))

    assert of(result, "s/a", "h2").status == "Success"
    assert of(result, "s/@on-failure-1/on-failure", "h2").satisfied
    assert result.status == "Failed"


def test_a_failed_hook_fails_its_scope() -> None:
    stage = Stage(post=fails("no"))

    result = stage.run(chain(scoped(play("a"), hook(POST)), play("b")))

    assert of(result, "b").message == "held back by s/@post-1/post on h1: no"
    assert result.status == "Failed"


def test_a_failed_post_hook_triggers_no_on_failure_hook() -> None:
    stage = Stage(post=fails())

    stage.run(scoped(play("a"), *all_moments()))

    assert ran(stage) == ["pre", "a", "post", "always"]


def test_a_failed_post_hook_keeps_the_next_post_hook_back() -> None:
    stage = Stage(one=fails("no"))

    result = stage.run(scoped(play("a"), hook(POST, name="one"), hook(POST, name="two")))

    assert of(result, "s/@post-2/two").message == "held back by s/@post-1/one on h1: no"


def test_a_failed_hook_of_an_inner_scope_triggers_no_hook_of_the_outer() -> None:
    stage = Stage(post=fails())
    inner = scoped(play("a"), hook(POST), name="in")

    result = stage.run(
        scoped(chain(inner, play("b")), hook(ON_FAILURE), hook(POST, name="p"), name="out")
    )

    assert ran(stage) == ["a", "post"]
    assert of(result, "out/@post-1/p").status == "Skipped"


@pytest.mark.parametrize("moment", [ON_FAILURE, ALWAYS])
def test_a_failed_hook_does_not_keep_the_next_of_its_moment_from_running(moment: Moment) -> None:
    stage = Stage(a=fails(), one=fails())

    stage.run(scoped(play("a"), hook(moment, name="one"), hook(moment, name="two")))

    assert ran(stage) == ["a", "one", "two"]


def test_a_failed_on_failure_hook_leaves_always_to_run() -> None:
    stage = Stage(**{"a": fails(), "on-failure": fails()})

    stage.run(scoped(play("a"), hook(ON_FAILURE), hook(ALWAYS)))

    assert ran(stage) == ["a", "on-failure", "always"]


def test_a_failure_in_a_hook_holds_back_the_rest_of_that_hook() -> None:
    stage = Stage(a=fails(), x=fails("oh"))
    steps = HookFragment(ON_FAILURE, chain(play("x"), parallel(play("y"), play("z"))))

    result = stage.run(scoped(play("a"), steps))

    assert of(result, "s/@on-failure-1/y").message == "held back by s/@on-failure-1/x on h1: oh"


def test_a_failure_in_a_hook_reaches_the_rest_of_it_through_joins() -> None:
    stage = Stage(a=fails(), x=fails("oh"))
    many = chain(parallel(play("w"), play("x")), parallel(play("y"), play("z")))

    result = stage.run(scoped(play("a"), HookFragment(ALWAYS, many)))

    assert of(result, "s/@always-1/z").message == "held back by s/@always-1/x on h1: oh"


def test_a_failure_in_a_hook_on_one_host_leaves_the_other_hosts_hooks_alone() -> None:
    stage = Stage(a=fails(), x=fails(on=["h1"]))
    steps = HookFragment(ON_FAILURE, per_host(play("x", "h1", "h2"), play("y", "h1", "h2")))

    result = stage.run(scoped(play("a", "h1", "h2"), steps))

    assert of(result, "s/@on-failure-1/y", "h1").status == "Skipped"
    assert of(result, "s/@on-failure-1/y", "h2").status == "Success"


def test_a_failure_in_a_hook_reaches_the_rest_of_it_through_holes() -> None:
    stage = Stage(a=fails(), x=fails("oh", on=["h2"]))
    steps = per_host(play("x", "h1", "h2"), play("y", "h1"), play("z", "h1", "h2"))

    result = stage.run(scoped(play("a", "h1", "h2"), HookFragment(ALWAYS, steps)))

    assert of(result, "s/@always-1/z", "h2").message == "held back by s/@always-1/x on h2: oh"
    assert of(result, "s/@always-1/z", "h1").status == "Success"


def test_a_tolerated_failure_in_a_hook_costs_the_host_and_not_the_hook() -> None:
    stage = Stage(x=fails(on=["h1"]))
    steps = chain(play("x", "h1", "h2", tolerance=TOLERANT), play("y", "h1", "h2"), play("z", "h2"))

    result = stage.run(scoped(play("a", "h1", "h2"), HookFragment(ALWAYS, steps, barrier=True)))

    assert of(result, "s/@always-1/y", "h1").status == "Skipped"
    assert of(result, "s/@always-1/y", "h2").status == "Success"
    assert of(result, "s/@always-1/z", "h2").status == "Success"


def test_an_untolerated_failure_in_a_hook_holds_back_what_waits_at_its_barrier() -> None:
    stage = Stage(a=fails(), x=fails("oh", on=["h1"]))
    steps = chain(play("x", "h1", "h2"), play("y", "h2"))

    result = stage.run(scoped(play("a", "h1", "h2"), HookFragment(ALWAYS, steps, barrier=True)))

    assert of(result, "s/@always-1/y", "h2").message == "held back by s/@always-1/x on h1: oh"


def test_a_hook_joined_to_several_ends_of_its_scope_does_not_take_their_failure_for_its_own() -> (
    None
):
    stage = Stage(a=fails())
    steps = HookFragment(ON_FAILURE, parallel(play("x"), play("y")), barrier=True)

    stage.run(scoped(parallel(play("a"), play("b")), steps))

    assert set(ran(stage)) == {"a", "b", "x", "y"}


# What hooks hand on.


@pytest.mark.parametrize("moment", [POST, ON_FAILURE, ALWAYS])
def test_what_follows_a_hook_hears_of_the_scopes_failure(moment: Moment) -> None:
    stage = Stage(a=fails("no"))

    result = stage.run(chain(scoped(play("a"), hook(moment)), play("b")))

    assert of(result, "b").message == "held back by s/a on h1: no"


def test_what_follows_a_successful_scope_runs_after_hooks_that_were_not_due() -> None:
    stage = Stage()

    result = stage.run(chain(scoped(play("a"), hook(ON_FAILURE)), play("b")))

    assert of(result, "b").status == "Success"


# Policies.


def test_fail_fast_runs_the_hooks_that_follow_a_failure_and_no_post_hook() -> None:
    stage = Stage(a=fails(), b=Actor(duration=5.0))
    stage.actors["a"].duration = 1.0
    other = scoped(play("b"), hook(POST, name="p"), hook(ALWAYS, name="q"), name="t")

    result = stage.run(
        parallel(scoped(play("a"), hook(ON_FAILURE), hook(ALWAYS)), other), on_failure="fail-fast"
    )

    assert set(ran(stage)) == {"a", "b", "on-failure", "always", "q"}
    assert of(result, "t/@post-1/p").status == "Skipped"


def test_a_group_below_its_minimum_runs_the_hooks_that_follow_a_failure() -> None:
    stage = Stage(a=unreachable("h1"))
    stage.actors["a"].duration = 1.0
    body = scoped(chain(play("a", "h1", "h2"), play("b", "h2")), hook(ALWAYS, "h2"))

    stage.run(body, graph={"groups": (HostGroup("g", ("h1", "h2"), 2),)})

    assert "always" in ran(stage)
    assert "b" not in ran(stage)


# Journal, dry run, values, expansion.


def test_hooks_run_once_per_run() -> None:
    plan = scoped(play("a"), *all_moments())
    first = Stage(a=fails())
    first.run(plan)
    second = Stage(a=fails())

    second.run(plan, state=RunState.fold(first.records))

    assert second.order() == []


def test_a_hook_that_was_not_due_is_on_record() -> None:
    stage = Stage()

    stage.run(scoped(play("a"), hook(ON_FAILURE)))

    last = stage.records[-1]
    assert isinstance(last, UnitDone)
    assert last.node == "s/@on-failure-1/on-failure"


def test_a_dry_run_looks_at_due_hooks_and_runs_none() -> None:
    stage = Stage()

    result = stage.run(scoped(play("a"), *all_moments()), dry_run=True)

    assert stage.order() == []
    assert of(result, "s/@post-1/post").sign == "+"


def test_a_minter_in_a_hook_runs_when_the_hook_needs_it() -> None:
    stage = Stage(m=Actor(role=Minter, values={"token": "t"}), x=Actor(satisfied=True))
    steps = chain(play("m", provides=[Key("token")]), play("x", needs=["token"]))

    stage.run(scoped(play("a"), HookFragment(POST, steps)))

    assert ran(stage) == ["a"]


def test_what_was_added_to_a_scope_belongs_to_it() -> None:
    stage = Stage(e=Actor(role=Expander, fragment=play("x")), x=fails())

    stage.run(scoped(play("e"), hook(POST), hook(ON_FAILURE)))

    assert ran(stage) == ["e", "x", "on-failure"]


@pytest.mark.parametrize("hosts", [("control-node",), ("h1", "control-node")])
def test_what_was_added_to_the_control_node_belongs_to_the_host_it_was_added_for(
    hosts: tuple[str, ...],
) -> None:
    added = Actor(role=Expander, fragment=play("x", *hosts))
    stage = Stage(e=added, x=fails(on=["control-node"]))

    stage.run(scoped(play("e"), hook(ON_FAILURE)))

    assert list(dict.fromkeys(ran(stage))) == ["e", "x", "on-failure"]
