"""Settling: what a step has to do when all is undone on its host."""

import asyncio
from typing import Any

from tests.engine.stage import (
    Actor,
    Stage,
    back,
    fails,
    play,
    statuses,
)

from kubexm.errors import StepFailed
from kubexm.plan import (
    chain,
    per_host,
    scope,
)
from kubexm.plan.records import RunState, UnitDone
from kubexm.runtime.contexts import StepContext

SETTLING = Actor(settles=True)


def test_a_step_settles_on_a_host_when_all_is_undone_there() -> None:
    stage = Stage(a=Actor(rollback=lambda ctx: asyncio.sleep(5.0)), s=SETTLING, c=fails())
    whole = per_host(play("a", "h1", "h2"), play("s", "h1"), play("b", "h1"))

    result = back(stage, chain(whole, play("c")))

    assert stage.order(what="rollback") == ["b", "s", "a", "a"]
    assert stage.order(what="settle") == ["s"]
    assert stage.at("settle", "s", "h1") == 5.0
    assert result.status == "RolledBack"
    assert statuses(result)["s@h1"] == "RolledBack"


def test_a_step_does_not_settle_where_something_could_not_be_undone() -> None:
    stage = Stage(a=Actor(rollback=raising_on("h1")), s=SETTLING, c=fails())

    result = back(stage, chain(per_host(play("a", "h1", "h2"), play("s", "h1", "h2")), play("c")))

    assert [at for at in stage.notes if at[1] == "settle"] == [(0.0, "settle", "s", "h2")]
    assert result.status == "Failed"


def test_what_a_compensation_took_back_does_not_settle() -> None:
    stage = Stage(s=SETTLING, c=fails())

    back(stage, chain(scope("app", play("s"), compensate=play("reset")), play("c")))

    assert stage.order(what="settle") == []


def test_a_crash_before_it_settles_is_made_good() -> None:
    plan = chain(play("s"), play("c"))
    first = Stage(s=SETTLING, c=fails())
    back(first, plan)
    last = first.records[-1]
    assert isinstance(last, UnitDone)
    assert last.node == "@undo/s/@settle"
    second = Stage(s=SETTLING, c=fails())

    result = second.run(plan, state=RunState.fold(first.records[:-1]), on_failure="rollback")

    assert (second.order(what="rollback"), second.order(what="settle")) == ([], ["s"])
    assert result.status == "RolledBack"


def raising_on(host: str) -> Any:
    def act(ctx: StepContext) -> None:
        if ctx.host.name == host:
            raise StepFailed("stuck")

    return act
