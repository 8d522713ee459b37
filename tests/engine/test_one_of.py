"""Nodes that run on one of several hosts."""

from tests.engine.stage import Actor, Stage, fails, of, play, raising, statuses, unreachable

from kubexm.errors import ConnectionLost, HostUnreachable
from kubexm.plan import Allowance, Tolerance, chain, one_of, parallel, per_host
from kubexm.plan.events import UnitStarted
from kubexm.plan.records import Quarantined, RunState, UnitBound, UnitIntended
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Verdict

ANY = one_of(("h1", "h2", "h3"))


def bound(stage: Stage) -> list[str]:
    return [record.host for record in stage.records if isinstance(record, UnitBound)]


def dark(*hosts: str) -> Actor:
    """An actor whose precheck does not reach these hosts."""
    look = raising(HostUnreachable("no route"), *hosts)
    return Actor(precheck=lambda ctx: look(ctx) or Verdict.needed("not yet"))


def test_it_runs_once_on_the_first_candidate() -> None:
    stage = Stage()

    result = stage.run(play("a", on=ANY))

    assert stage.started() == [("a", "h1")]
    assert list(result.node_results["a"].host_results) == ["h1"]


def test_it_is_bound_when_it_starts_to_the_first_that_is_not_quarantined() -> None:
    stage = Stage(x=unreachable("h1"))

    result = stage.run(chain(play("x", "h1", "h2"), play("a", on=ANY)))

    assert statuses(result)["a@h2"] == "Success"
    assert bound(stage) == ["h2"]


def test_its_binding_is_journaled_under_the_node() -> None:
    stage = Stage()

    stage.run(play("a", on=ANY))

    assert [r.node for r in stage.records if isinstance(r, UnitBound)] == ["a"]
    kinds = [type(record).__name__ for record in stage.records]
    assert kinds.index("UnitBound") < kinds.index("UnitDone")


def test_it_goes_to_the_next_while_nothing_has_run() -> None:
    stage = Stage(a=dark("h1", "h2"))

    result = stage.run(parallel(play("a", on=ANY), play("b", "h1", "h2", "h3")))

    assert ("a", "h3") in stage.started()
    assert bound(stage) == ["h1", "h2", "h3"]
    assert set(result.quarantined) == {"h1", "h2"}
    assert (result.status, result.degraded) == ("Success", True)


def test_a_candidate_lost_before_anything_ran_is_on_record() -> None:
    stage = Stage(a=dark("h1"))

    stage.run(play("a", on=ANY))

    lost = [record for record in stage.records if isinstance(record, Quarantined)]
    assert [(record.host, record.cause.node) for record in lost] == [("h1", "a")]


def test_it_stays_where_it_has_run() -> None:
    stage = Stage(a=unreachable("h1"))

    result = stage.run(chain(play("a", on=ANY), play("b", "h2")))

    assert stage.started() == [("a", "h1")]
    assert of(result, "a", "h1").status == "Failed"
    assert of(result, "b", "h2").status == "Skipped"
    assert result.status == "Failed"


def test_that_it_has_run_is_durable_before_it_does() -> None:
    stage = Stage()

    stage.run(play("a", on=ANY))

    assert [r.host for r in stage.records if isinstance(r, UnitIntended)] == ["*"]


def test_a_resumed_run_keeps_the_binding() -> None:
    stage = Stage()
    state = RunState.fold([UnitBound(at=0.0, node="a", host="h2")])

    stage.run(play("a", on=ANY), state=state)

    assert stage.started() == [("a", "h2")]


def test_a_resumed_run_binds_anew_if_the_host_is_lost_and_nothing_had_run() -> None:
    stage = Stage()
    stage.unreachable = {"h2": "no route"}
    state = RunState.fold([UnitBound(at=0.0, node="a", host="h2")])

    stage.run(play("a", on=ANY), state=state)

    assert stage.started() == [("a", "h1")]


def test_a_resumed_run_does_not_go_elsewhere_if_it_had_run() -> None:
    stage = Stage()
    stage.unreachable = {"h2": "no route"}
    state = RunState.fold(
        [
            UnitBound(at=0.0, node="a", host="h2"),
            UnitIntended(at=0.0, node="a", host="*", attempt=1),
        ]
    )

    result = stage.run(chain(play("a", on=ANY), play("b", "h1")), state=state)

    assert stage.started() == []
    assert of(result, "b").message == "held back by h2, which could not be reached: no route"
    assert result.status == "Failed"


def test_if_all_candidates_are_lost_before_it_starts_it_is_skipped_and_blocks() -> None:
    stage = Stage()
    stage.unreachable = {"h1": "no route", "h2": "no route", "h3": "no route"}

    result = stage.run(chain(play("a", on=ANY), play("b", "h4")))

    assert of(result, "a", "*").status == "Skipped"
    assert of(result, "b", "h4").message == "held back by h1, which could not be reached: no route"
    assert result.status == "Failed"


def test_if_all_candidates_are_lost_while_it_looks_for_one_it_has_failed_and_blocks() -> None:
    stage = Stage(a=dark())

    result = stage.run(chain(play("a", on=ANY), play("b", "h4")))

    assert of(result, "a", "h3").failure == "unreachable"
    assert of(result, "b", "h4").status == "Skipped"
    assert result.status == "Failed"


def test_its_failure_counts_although_its_host_was_quarantined_meanwhile() -> None:
    stage = Stage(a=fails(), x=fails(on=["h1"]))
    stage.actors["a"].duration = 5.0
    tolerant = Tolerance(failed=Allowance(count=1))

    result = stage.run(
        parallel(
            chain(play("a", on=ANY), play("b", "h3")), play("x", "h1", "h2", tolerance=tolerant)
        )
    )

    assert of(result, "b", "h3").status == "Skipped"
    assert result.status == "Failed"


def test_its_loss_is_tolerated_where_its_node_says_so() -> None:
    stage = Stage(a=unreachable())

    result = stage.run(
        chain(
            play("a", on=ANY, tolerance=Tolerance(unreachable=Allowance(count=1))), play("b", "h4")
        )
    )

    assert of(result, "b", "h4").status == "Success"
    assert result.status == "Success"


def test_waiting_for_a_slot_of_a_lost_host_it_goes_to_another() -> None:
    """`h1` is full and then lost: the unit need not wait for what still runs there."""
    stage = Stage(x=Actor(duration=100.0), y=Actor(duration=5.0, run=_lost))

    stage.run(
        parallel(play("x", "h1"), play("y", "h1"), play("a", on=ANY)),
        per_host=2,
        durations={"x": 9.0, "y": 9.0},
    )

    assert stage.at("start", "a", "h2") == 5.0


def _lost(ctx: StepContext) -> None:
    raise HostUnreachable("no route")


def test_a_lost_connection_that_comes_back_keeps_it_where_it_is() -> None:
    def once(ctx: StepContext) -> None:
        if not stage.reconnects:
            raise ConnectionLost("broken pipe")

    stage = Stage(a=Actor(run=once))

    stage.run(play("a", on=ANY))

    assert stage.started() == [("a", "h1"), ("a", "h1")]


def test_another_candidate_begins_with_its_first_attempt() -> None:
    stage = Stage(a=dark("h1"))

    stage.run(play("a", on=ANY))

    starts = [(event.host, event.attempt) for event in stage.told(UnitStarted)]
    assert starts == [("h1", 1), ("h2", 1)]


def test_what_follows_it_waits_for_it_wherever_it_runs() -> None:
    stage = Stage(a=Actor(duration=5.0))

    stage.run(chain(play("a", on=ANY), per_host(play("b", "h1", "h2"), play("c", "h2"))))

    assert stage.at("start", "b", "h2") == 5.0
