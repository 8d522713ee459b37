"""The dry run: same scheduling, prechecks only, nothing changed anywhere."""

from typing import Any

import pytest
from tests.engine.stage import Actor, Stage, fails, noting, of, play, raising, statuses, unreachable

from kubexm.engine import Control
from kubexm.engine.debug import Choice, Debugger, Situation
from kubexm.errors import HostUnreachable, StepFailed
from kubexm.plan import ExecutionFragment, Key, RetryPolicy, chain, parallel, per_host
from kubexm.plan.result import Sign
from kubexm.step.contract import Expander, Reader, Verdict


def wanting(sign: Sign, reason: str = "differs", diff: str = "") -> Actor:
    return Actor(precheck=lambda ctx: Verdict.needed(reason, sign, diff))


def blind(message: str = "no such file") -> Actor:
    return Actor(precheck=raising(StepFailed(message)))


def test_nothing_runs() -> None:
    stage = Stage(b=Actor(satisfied=True))

    result = stage.run(chain(play("a", "h1", "h2"), play("b"), play("c")), dry_run=True)

    assert stage.started() == []
    assert len(stage.started("precheck")) == 4
    assert result.dry_run


@pytest.mark.parametrize("sign", ["+", "~", "-"])
def test_each_unit_reports_what_would_be_done_and_why(sign: Sign) -> None:
    stage = Stage(a=wanting(sign, "mode 0644, want 0600"))

    unit = of(stage.run(play("a"), dry_run=True), "a")

    assert (unit.sign, unit.message) == (sign, "mode 0644, want 0600")
    assert (unit.status, unit.changed) == ("Success", True)


def following() -> Stage:
    """`w` would write a path, which `f` follows; nobody else knows of any."""

    class Filing(Stage):
        def load(self, node: Any) -> Any:
            loaded: Any = super().load(node)
            loaded.static.writes = lambda: ("/etc/x",) if node.name == "w" else ()
            loaded.static.follows = lambda: ("/etc/x",) if node.name == "f" else ()
            return loaded

    return Filing(f=Actor(satisfied=True))


@pytest.mark.parametrize(
    ("plan", "sign"),
    [
        (chain(play("w"), play("a"), play("f")), "~"),
        (per_host(play("w"), play("f")), "~"),
        (parallel(chain(play("w"), play("a")), play("f")), "="),
        (chain(play("w", "h2"), play("f")), "="),
    ],
    ids=["behind", "along a lane", "beside", "elsewhere"],
)
def test_what_follows_a_path_that_would_change_before_it_would_change_too(
    plan: ExecutionFragment, sign: Sign
) -> None:
    unit = of(following().run(plan, dry_run=True), "f")

    assert (unit.sign, unit.changed) == (sign, sign == "~")
    assert (unit.message == "follows /etc/x, which would change") == (sign == "~")


def test_the_same_is_foreseen_with_a_debugger_in_front() -> None:
    async def go_on(situation: Situation) -> Choice:
        return "continue"

    stage = following()
    wrapped = Debugger(go_on, Control(), ()).wrap(stage.load)
    stage.load = wrapped  # type: ignore[method-assign, assignment]  # what a debugged run loads by

    assert of(stage.run(chain(play("w"), play("f")), dry_run=True), "f").sign == "~"


def test_a_satisfied_unit_reports_that_nothing_would_be_done() -> None:
    stage = Stage(a=Actor(satisfied=True))

    unit = of(stage.run(play("a"), dry_run=True), "a")

    assert (unit.sign, unit.changed, unit.satisfied) == ("=", False, True)


def test_a_unit_that_writes_a_file_shows_the_difference() -> None:
    stage = Stage(a=wanting("~", diff="-old\n+new"))

    assert of(stage.run(play("a"), dry_run=True), "a").diff == "-old\n+new"


def test_a_difference_shows_no_secret() -> None:
    stage = Stage(a=wanting("~", diff="+password: s3cret"))
    stage.conceal("s3cret")

    assert of(stage.run(play("a"), dry_run=True), "a").diff == "+password: ***"


def test_a_verdict_that_names_no_sign_means_a_change() -> None:
    stage = Stage(a=Actor(precheck=lambda ctx: Verdict(False, "differs")))

    assert of(stage.run(play("a"), dry_run=True), "a").sign == "~"


@pytest.mark.parametrize("sign", ["=", "?"])
def test_what_would_run_and_change_nothing_is_not_counted_as_a_change(sign: Sign) -> None:
    stage = Stage(a=wanting(sign))

    unit = of(stage.run(play("a"), dry_run=True), "a")

    assert (unit.status, unit.sign, unit.changed) == ("Success", sign, False)


def test_a_dry_run_that_would_change_nothing_says_so() -> None:
    stage = Stage(a=Actor(satisfied=True), b=wanting("="), c=wanting("?"))

    quiet = stage.run(parallel(play("a"), play("b")), dry_run=True)
    unknown = stage.run(parallel(play("a"), play("c")), dry_run=True)

    assert quiet.message == "nothing to do: all 2 units change nothing"
    assert unknown.message == ""


def test_how_many_units_would_change_is_counted() -> None:
    stage = Stage(b=Actor(satisfied=True))

    assert stage.run(chain(play("a", "h1", "h2"), play("b")), dry_run=True).changed == 2


# Prechecks that raise.


def test_a_precheck_that_raises_with_nothing_pending_before_it_is_a_failure() -> None:
    stage = Stage(a=Actor(satisfied=True), b=blind())

    result = stage.run(chain(play("a"), play("b"), play("c")), dry_run=True)

    assert (of(result, "b").status, of(result, "b").sign) == ("Failed", "")
    assert of(result, "c").status == "Skipped"
    assert result.status == "Failed"


def test_a_precheck_that_raises_after_something_that_would_change_is_a_question() -> None:
    stage = Stage(b=blind("no such file"))

    result = stage.run(chain(play("a"), play("b")), dry_run=True)

    unit = of(result, "b")
    assert (unit.sign, unit.message) == ("?", "no such file")
    assert (unit.status, unit.changed) == ("Success", False)
    assert result.status == "Success"


def test_doubt_reaches_further_than_the_next_unit() -> None:
    stage = Stage(b=Actor(satisfied=True), c=blind(), d=blind())

    result = stage.run(chain(play("a"), play("b"), play("c"), play("d")), dry_run=True)

    assert [of(result, name).sign for name in "abcd"] == ["+", "=", "?", "?"]


def test_doubt_travels_along_lanes_and_not_between_them() -> None:
    stage = Stage(a=Actor(satisfied=lambda host: host == "h1"), b=blind())

    result = stage.run(per_host(play("a", "h1", "h2"), play("b", "h1", "h2")), dry_run=True)

    assert of(result, "b", "h1").status == "Failed"
    assert of(result, "b", "h2").sign == "?"


def test_doubt_passes_barriers_joins_and_holes() -> None:
    stage = Stage(x=Actor(satisfied=True), y=Actor(satisfied=True), d=blind())
    first = parallel(play("a", "h2"), play("x", "h1"))
    lane = per_host(play("y", "h2"), play("d", "h1"))

    result = stage.run(chain(first, lane), dry_run=True)

    assert of(result, "d").sign == "?"


def test_a_question_is_asked_once() -> None:
    """Trying again is for what runs: the answer would be the same."""
    stage = Stage(b=blind())

    result = stage.run(
        chain(play("a"), play("b", retry=RetryPolicy(attempts=9, delay=60.0))), dry_run=True
    )

    assert (of(result, "b").sign, stage.end) == ("?", 0.0)


def test_an_unreachable_host_is_no_question() -> None:
    stage = Stage(b=Actor(precheck=raising(HostUnreachable("no route"))))

    result = stage.run(chain(play("a", "h1", "h2"), play("b", "h1")), dry_run=True)

    assert of(result, "b").failure == "unreachable"
    assert set(result.quarantined) == {"h1"}


# Readers and expanders.


def test_readers_run_in_a_dry_run_too() -> None:
    seen: list[object] = []
    stage = Stage(r=Actor(role=Reader, values={"v": 1}))
    stage.actors["a"] = Actor(precheck=noting(seen, lambda ctx: ctx.values["v"], Verdict.holds()))

    result = stage.run(chain(play("r", provides=[Key("v")]), play("a", needs=["v"])), dry_run=True)

    assert seen == [1]
    assert of(result, "r").sign == "="


def test_a_reader_of_something_not_there_yet_is_a_question_and_so_is_who_needs_it() -> None:
    reads: list[int] = []
    no_file = StepFailed("no such file")
    stage = Stage(r=Actor(role=Reader, run=noting(reads, lambda ctx: 1, no_file)))

    result = stage.run(
        chain(play("a"), play("r", provides=[Key("v")]), play("b", "h1", "h2", needs=["v"])),
        dry_run=True,
    )

    assert (of(result, "r").sign, of(result, "b").sign, of(result, "b", "h2").sign) == (*"???",)
    assert "left none: no such file" in of(result, "b").message
    assert reads == [1]


def test_an_expander_of_something_not_there_yet_is_a_question() -> None:
    stage = Stage(e=Actor(role=Expander, run=raising(StepFailed("no such file"))))

    result = stage.run(chain(play("a"), play("e"), play("b")), dry_run=True)

    assert of(result, "e").sign == "?"
    assert of(result, "b").sign == "+"


def test_a_reader_that_fails_with_nothing_pending_is_a_failure() -> None:
    stage = Stage(r=fails("no"))
    stage.actors["r"].role = Reader

    assert stage.run(play("r"), dry_run=True).status == "Failed"


# Nothing else happens either.


def test_a_dry_run_intends_nothing_and_verifies_nothing() -> None:
    stage = Stage(a=Actor(declares_intent=True, verifies=True))

    stage.run(play("a"), dry_run=True)

    assert [type(record).__name__ for record in stage.records] == ["UnitDone"]
    assert len(stage.started("precheck")) == 1


def test_a_dry_run_never_undoes() -> None:
    stage = Stage(b=blind())
    stage.actors["b"].undoes_itself = True

    stage.run(parallel(play("a"), play("b")), dry_run=True, on_failure="rollback")

    assert stage.started("rollback") == []


def test_a_failed_reader_of_a_dry_run_undoes_nothing() -> None:
    stage = Stage(r=fails("no"))
    stage.actors["r"].role, stage.actors["r"].undoes_itself = Reader, True

    stage.run(play("r"), dry_run=True)

    assert stage.started("rollback") == []


def test_a_dry_run_schedules_as_a_run_does() -> None:
    stage = Stage(a=unreachable())
    stage.actors["a"] = Actor(precheck=raising(HostUnreachable("no route"), "h1"))

    result = stage.run(chain(play("a", "h1"), play("b", "h2")), dry_run=True)

    assert statuses(result) == {"a@h1": "Failed", "b@h2": "Success"}


def test_a_step_is_told_that_it_is_a_dry_run() -> None:
    told: list[bool] = []
    stage = Stage(r=Actor(role=Reader, run=noting(told, lambda ctx: ctx.dry_run)))

    stage.run(play("r"), dry_run=True)

    assert told == [True]


def test_probed_units_are_foreseen_in_a_dry_run_too() -> None:
    stage = Stage(**{name: Actor(probes=True) for name in "abc"})
    stage.unsatisfied = {("a", "h1"), ("c", "h1")}

    result = stage.run(per_host(play("a"), play("b"), play("c")), dry_run=True)

    assert [of(result, name).sign for name in "abc"] == ["+", "=", "+"]
    assert len(stage.batches) == 1
