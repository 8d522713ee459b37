"""What follows from a failure, for its host, its dependents and the run."""

import pytest
from tests.engine.stage import Actor, Stage, fails, of, play, raising, statuses, unreachable

from kubexm.errors import CommandFailed, HostUnreachable, Refused, StepFailed
from kubexm.plan import (
    Allowance,
    Cause,
    HostGroup,
    Tolerance,
    chain,
    link,
    one_of,
    parallel,
    per_host,
)
from kubexm.plan.events import HostQuarantined
from kubexm.plan.fragment import ExecutionFragment, replace
from kubexm.plan.records import Quarantined, RunState, UnitDone
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import NotYet, Verdict

HOSTS = ("h1", "h2", "h3", "h4")
ONE_FAILED = Tolerance(failed=Allowance(count=1))
NONE_UNREACHABLE = Tolerance(unreachable=Allowance())


def test_a_step_that_waits_is_told_which_hosts_are_lost_meanwhile() -> None:
    seen = list[list[str]]()

    def wait(ctx: StepContext) -> NotYet | None:
        seen.append(sorted(ctx.lost))
        return None if ctx.lost else NotYet(1.0, "not ready")

    gone = raising(HostUnreachable("no route"))
    stage = Stage(a=Actor(run=wait), b=Actor(duration=1.5, run=gone))

    stage.run(parallel(play("a", "h1"), play("b", "h2")))

    assert (seen[0], seen[-1]) == ([], ["h2"])


# Classes.


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (HostUnreachable("x"), "unreachable"),
        (Refused("x"), "refused"),
        (StepFailed("x"), "failed"),
        (CommandFailed(["false"], 1), "failed"),
        (ZeroDivisionError("x"), "failed"),
    ],
)
def test_every_failure_has_a_class(error: Exception, failure: str) -> None:
    stage = Stage(a=Actor(run=raising(error)))

    assert of(stage.run(play("a")), "a").failure == failure


def test_a_failed_command_brings_its_output_along() -> None:
    error = CommandFailed(["make"], 2, stdout="building", stderr="no rule\n")
    stage = Stage(a=Actor(run=raising(error)))

    unit = of(stage.run(play("a")), "a")

    assert (unit.stdout, unit.stderr) == ("building", "no rule\n")
    assert unit.message == "`make` exited with 2: no rule"


def test_the_failure_of_a_command_shows_it_as_it_would_be_typed() -> None:
    assert str(CommandFailed(["sh", "-c", "exit 3"], 3)) == "`sh -c 'exit 3'` exited with 3"


def test_a_failure_message_ends_with_what_to_do() -> None:
    stage = Stage(a=Actor(run=raising(StepFailed("no space", hint="free some"))))

    assert of(stage.run(play("a")), "a").message == "no space (hint: free some)"


# Policies.


def test_isolate_skips_only_what_depends_on_the_failed_unit() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(
        parallel(per_host(play("a", "h1", "h2"), play("b", "h1", "h2")), play("c", "h1"))
    )

    assert statuses(result) == {
        "a@h1": "Failed",
        "a@h2": "Success",
        "b@h1": "Skipped",
        "b@h2": "Success",
        "c@h1": "Success",
    }
    assert result.status == "Failed"


def test_isolate_is_the_default_and_the_run_names_its_first_failure() -> None:
    stage = Stage(a=fails("no space"))

    result = stage.run(parallel(play("a"), chain(play("b"), play("c"))))

    assert result.message == "a on h1: no space"
    assert stage.order("c") == ["c"]


def test_the_run_names_its_first_failure() -> None:
    stage = Stage(a=fails("first"), b=Actor(duration=1.0, run=raising(StepFailed("second"))))

    assert stage.run(parallel(play("a"), play("b"))).message == "a on h1: first"


def test_an_untolerated_failure_does_not_quarantine_its_host() -> None:
    stage = Stage(a=fails())

    result = stage.run(parallel(play("a"), chain(play("b"), play("c"))))

    assert result.quarantined == {}
    assert of(result, "c").status == "Success"


def test_fail_fast_starts_nothing_new_and_lets_what_runs_end() -> None:
    stage = Stage(a=fails(), b=Actor(duration=5.0))

    result = stage.run(parallel(play("a"), per_host(play("b"), play("c"))), on_failure="fail-fast")

    assert statuses(result) == {"a@h1": "Failed", "b@h1": "Success", "c@h1": "Skipped"}
    assert of(result, "c").message == "held back by a on h1: no"


def test_fail_fast_stops_at_the_first_failure_whatever_fails_later() -> None:
    stage = Stage(
        a=fails("first"),
        b=Actor(duration=1.0, run=raising(StepFailed("second"))),
        x=Actor(duration=2.0),
    )

    result = stage.run(
        parallel(play("a"), play("b"), per_host(play("x"), play("c"))), on_failure="fail-fast"
    )

    assert of(result, "c").message == "held back by a on h1: first"


def test_fail_fast_holds_back_what_waits_for_a_slot() -> None:
    stage = Stage(a=fails())

    result = stage.run(
        parallel(play("a"), play("b")),
        parallelism=1,
        durations={"a": 9.0},
        on_failure="fail-fast",
    )

    assert of(result, "b").status == "Skipped"


def test_the_graph_says_the_policy_and_the_options_override_it() -> None:
    plan = parallel(play("a"), chain(play("b"), play("c")))

    graph = {"on_failure": "fail-fast"}
    first = Stage(a=fails(), b=Actor(duration=1.0)).run(plan, graph=graph)
    second = Stage(a=fails(), b=Actor(duration=1.0)).run(plan, graph=graph, on_failure="isolate")

    assert of(first, "c").status == "Skipped"
    assert of(second, "c").status == "Success"


# Who is held back, and by what.


def test_what_is_held_back_names_the_root_cause_and_not_its_neighbour() -> None:
    stage = Stage(a=fails("no space"))

    result = stage.run(chain(play("a"), play("b"), per_host(play("c"), play("d"))))

    unit = of(result, "d")
    assert unit.message == "held back by a on h1: no space"
    assert unit.cause == Cause("a", "h1", "no space", "failed")
    assert (unit.status, unit.skipped, unit.attempts) == ("Skipped", False, 0)
    assert result.node_results["d"].message == "a on h1: no space"
    assert result.node_results["d"].status == "Skipped"


@pytest.mark.slow
def test_20000_held_back_units_are_no_recursion() -> None:
    stage = Stage(n0=fails())
    nodes = [play(f"n{number}").nodes[0] for number in range(20_000)]
    linked = [
        replace(node, after_same_host=(nodes[at - 1].id,)) for at, node in enumerate(nodes) if at
    ]

    result = stage.run(ExecutionFragment((nodes[0], *linked)))

    assert result.counts == {"Failed": 1, "Skipped": 19_999}


def test_a_failure_on_one_host_skips_all_of_what_waits_at_the_barrier() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(chain(play("a", "h1", "h2"), play("b", "h1", "h2", "h3")))

    assert {of(result, "b", host).status for host in ("h1", "h2", "h3")} == {"Skipped"}


def test_a_failure_before_a_barrier_reaches_it_through_skipped_units() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(
        chain(per_host(play("a", "h1", "h2"), play("b", "h1", "h2")), play("c", "h2"))
    )

    assert of(result, "c", "h2").cause == Cause("a", "h1", "no", "failed")


# Tolerance and quarantine.


def test_a_tolerated_failure_quarantines_its_host_and_the_rest_go_on() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(chain(play("a", "h1", "h2", tolerance=ONE_FAILED), play("b", "h1", "h2")))

    assert statuses(result) == {
        "a@h1": "Failed",
        "a@h2": "Success",
        "b@h1": "Skipped",
        "b@h2": "Success",
    }
    assert (result.status, result.degraded) == ("Success", True)
    assert result.node_results["a"].status == "Success"
    assert result.quarantined == {"h1": Cause("a", "h1", "no", "failed")}


def test_a_quarantined_host_is_skipped_in_every_branch_with_that_root_cause() -> None:
    stage = Stage(a=fails(on=["h1"]), x=Actor(duration=5.0))

    result = stage.run(
        parallel(
            play("a", "h1", "h2", tolerance=ONE_FAILED),
            chain(play("x", "h2"), play("y", "h1", "h2")),
        )
    )

    assert of(result, "y", "h1").message == "held back by a on h1: no"
    assert of(result, "y", "h2").status == "Success"


def test_a_quarantined_host_loses_what_waits_for_a_slot() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(
        parallel(play("a", "h1", "h2", tolerance=ONE_FAILED), play("b", "h1")),
        per_host=1,
        durations={"a": 9.0},
    )

    assert of(result, "b").status == "Skipped"


def test_a_unit_that_runs_when_its_host_is_quarantined_may_end() -> None:
    stage = Stage(a=fails(on=["h1"]), b=Actor(duration=5.0))

    result = stage.run(
        parallel(play("a", "h1", "h2", tolerance=ONE_FAILED), per_host(play("b"), play("c")))
    )

    assert (of(result, "b").status, of(result, "c").status) == ("Success", "Skipped")


def test_a_quarantined_host_no_longer_counts_at_barriers() -> None:
    """Its unit of `b` is skipped, and what follows `b` runs all the same."""
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(
        chain(play("a", "h1", "h2", tolerance=ONE_FAILED), play("b", "h1", "h2"), play("c", "h2"))
    )

    assert of(result, "c", "h2").status == "Success"


def test_a_failure_on_a_host_quarantined_before_does_not_count() -> None:
    stage = Stage(a=fails(on=["h1"]), b=Actor(duration=5.0, run=raising(StepFailed("late"), "h1")))

    result = stage.run(
        parallel(
            play("a", "h1", "h2", tolerance=ONE_FAILED),
            chain(play("b", "h1", "h2"), play("c", "h2")),
        )
    )

    assert of(result, "b", "h1").status == "Failed"
    assert of(result, "c", "h2").status == "Success"
    assert result.node_results["b"].status == "Success"
    assert (result.status, result.degraded) == ("Success", True)


def test_exceeding_the_tolerance_skips_all_of_what_follows() -> None:
    stage = Stage(a=fails(on=["h1", "h2"]))

    result = stage.run(chain(play("a", *HOSTS, tolerance=ONE_FAILED), play("b", *HOSTS)))

    assert {of(result, "b", host).status for host in HOSTS} == {"Skipped"}
    assert result.node_results["a"].status == "Failed"
    assert result.status == "Failed"


@pytest.mark.parametrize(("percent", "status"), [(50.0, "Success"), (49.0, "Failed")])
def test_tolerance_may_be_a_share_of_the_hosts(percent: float, status: str) -> None:
    stage = Stage(a=fails(on=["h1", "h2"]))
    tolerance = Tolerance(failed=Allowance(percent=percent))

    result = stage.run(play("a", *HOSTS, tolerance=tolerance))

    assert result.status == status


def test_tolerance_is_per_class() -> None:
    stage = Stage(a=Actor(run=raising(Refused("no"), "h1")))

    result = stage.run(chain(play("a", "h1", "h2", tolerance=ONE_FAILED), play("b", "h2")))

    assert of(result, "b", "h2").status == "Skipped"


def test_each_class_has_a_count_of_its_own() -> None:
    def mixed(ctx: StepContext) -> None:
        if ctx.host.name == "h1":
            raise Refused("no")
        if ctx.host.name == "h2":
            raise StepFailed("no")

    one_each = Tolerance(refused=Allowance(count=1), failed=Allowance(count=1))
    stage = Stage(a=Actor(run=mixed))

    result = stage.run(chain(play("a", *HOSTS, tolerance=one_each), play("b", *HOSTS)))

    assert set(result.quarantined) == {"h1", "h2"}
    assert of(result, "b", "h3").status == "Success"


def test_the_rest_of_a_node_runs_although_one_of_its_units_failed() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(play("a", *HOSTS), parallelism=1)

    assert result.counts == {"Failed": 1, "Success": 3}


# Unreachable.


def test_an_unreachable_host_is_tolerated_and_quarantined_by_default() -> None:
    stage = Stage(a=unreachable("h1"))

    result = stage.run(chain(play("a", "h1", "h2"), play("b", "h1", "h2")))

    assert statuses(result) == {
        "a@h1": "Failed",
        "a@h2": "Success",
        "b@h1": "Skipped",
        "b@h2": "Success",
    }
    assert (result.status, result.degraded) == ("Success", True)


def test_an_unreachable_host_that_its_node_does_not_tolerate_is_quarantined_too() -> None:
    stage = Stage(a=unreachable("h1"), x=Actor(duration=5.0))

    result = stage.run(
        parallel(
            chain(play("a", "h1", "h2", tolerance=NONE_UNREACHABLE), play("b", "h2")),
            chain(play("x", "h2"), play("y", "h1", "h2")),
        )
    )

    assert of(result, "b", "h2").status == "Skipped"
    assert of(result, "y", "h1").status == "Skipped"
    assert of(result, "y", "h2").status == "Success"
    assert result.status == "Failed"


def test_a_host_that_could_not_be_opened_is_quarantined_from_the_start() -> None:
    stage = Stage()
    stage.unreachable = {"h1": "no route to host"}

    result = stage.run(chain(play("a", "h1", "h2"), play("b", "h2")))

    assert (
        of(result, "a", "h1").message
        == "held back by h1, which could not be reached: no route to host"
    )
    assert of(result, "b", "h2").status == "Success"
    assert (result.status, result.degraded) == ("Success", True)
    assert [event.host for event in stage.told(HostQuarantined)] == ["h1"]


def test_a_run_that_lost_all_its_hosts_has_failed() -> None:
    stage = Stage(a=unreachable())

    result = stage.run(chain(play("a", "h1", "h2"), play("b", "h1", "h2")))

    assert result.status == "Failed"
    assert "no host is left" in result.message


# The minimum of a group.


def test_a_group_below_its_minimum_stops_the_run() -> None:
    stage = Stage(a=unreachable("h1", "h2"), x=Actor(duration=5.0))
    group = HostGroup("etcd", ("h1", "h2", "h3"), minimum=2)

    result = stage.run(
        parallel(play("a", *HOSTS), chain(play("x", "h4"), play("y", "h4"))),
        graph={"groups": (group,)},
    )

    assert of(result, "x", "h4").status == "Success"
    assert of(result, "y", "h4").status == "Skipped"
    assert result.status == "Failed"
    assert "group `etcd` has 1 hosts left, needs 2" in result.message


def test_a_group_at_its_minimum_goes_on() -> None:
    stage = Stage(a=unreachable("h1"))
    group = HostGroup("etcd", ("h1", "h2", "h3"), minimum=2)

    result = stage.run(chain(play("a", *HOSTS), play("b", *HOSTS)), graph={"groups": (group,)})

    assert (result.status, result.degraded) == ("Success", True)


def test_hosts_that_could_not_be_opened_count_against_the_minimum() -> None:
    stage = Stage()
    stage.unreachable = {"h1": "no route"}
    group = HostGroup("etcd", ("h1",), minimum=1)

    result = stage.run(play("a", "h1", "h2"), graph={"groups": (group,)})

    assert stage.started() == []
    assert result.status == "Failed"


def test_hosts_that_an_earlier_life_lost_count_against_the_minimum() -> None:
    stage = Stage()
    lost = Quarantined(at=0.0, host="h1", cause=Cause("a", "h1", "no route", "unreachable"))
    group = HostGroup("etcd", ("h1", "h2"), minimum=2)

    result = stage.run(
        play("b", "h2"), graph={"groups": (group,), "hosts": HOSTS}, state=RunState.fold([lost])
    )

    assert stage.started() == []
    assert "group `etcd` has 1 hosts left, needs 2" in result.message


def test_failures_of_an_earlier_life_use_up_tolerance() -> None:
    first, second = Stage(a=fails(on=["h1"])), Stage(a=fails(on=["h2"]))
    plan = chain(play("a", *HOSTS, tolerance=ONE_FAILED), play("b", *HOSTS))
    first.run(plan)
    before = [r for r in first.records if isinstance(r, UnitDone) and r.host in ("h1", "h3")]

    result = second.run(plan, state=RunState.fold(before[:2]))

    assert of(result, "b", "h4").status == "Skipped"
    assert result.status == "Failed"


# Ignored errors.


def test_with_ignore_errors_the_unit_is_failed_and_nothing_else_follows() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(
        chain(play("a", "h1", "h2", ignore_errors=True), play("b", "h1", "h2")),
        on_failure="fail-fast",
    )

    assert statuses(result) == {
        "a@h1": "Failed",
        "a@h2": "Success",
        "b@h1": "Success",
        "b@h2": "Success",
    }
    assert (result.status, result.degraded) == ("Success", False)


def test_ignored_errors_use_up_no_tolerance() -> None:
    stage = Stage(a=fails())

    result = stage.run(
        chain(play("a", *HOSTS, ignore_errors=True, tolerance=ONE_FAILED), play("b", *HOSTS))
    )

    assert result.quarantined == {}
    assert result.counts == {"Failed": 4, "Success": 4}


# Where several rules meet.


def test_the_failure_of_a_node_in_two_branches_is_told_once_per_branch() -> None:
    stage = Stage(a=fails("no"))
    whole = parallel(play("a"), play("b"), play("c"))
    whole = link(link(whole, before="a", after="b"), before="a", after="c", same_host=True)

    result = stage.run(whole)

    assert {of(result, name).message for name in "bc"} == {"held back by a on h1: no"}


def test_a_node_is_skipped_only_if_none_of_its_units_started() -> None:
    stage = Stage(a=fails(on=["h1"]))

    result = stage.run(per_host(play("a", "h1", "h2"), play("b", "h1", "h2")))

    assert result.node_results["b"].status == "Success"
    assert result.node_results["a"].status == "Failed"


def test_a_precheck_is_all_it_takes_to_fail() -> None:
    stage = Stage(a=Actor(precheck=raising(StepFailed("can't look"))))

    result = stage.run(chain(play("a"), play("b")))

    assert of(result, "b").message == "held back by a on h1: can't look"
    assert stage.started() == []


def test_a_satisfied_node_between_hands_no_failure_on() -> None:
    stage = Stage(a=fails(on=["h1"]), b=Actor(precheck=lambda ctx: Verdict.holds("there already")))

    result = stage.run(parallel(play("a", "h1"), chain(play("b", "h2"), play("c", "h2"))))

    assert of(result, "c", "h2").status == "Success"


def test_units_of_healthy_hosts_that_nobody_can_serve_fail_the_run() -> None:
    """All candidates of a `one_of` are lost: what waits for it is not done on `h3` either."""
    stage = Stage(a=unreachable("h1", "h2"))

    result = stage.run(
        chain(play("a", "h1", "h2"), play("b", on=one_of(("h1", "h2"))), play("c", "h3"))
    )

    assert of(result, "c", "h3").status == "Skipped"
    assert result.status == "Failed"
