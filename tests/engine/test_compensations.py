"""Compensations: what undoes a scope as a whole."""

import asyncio
from typing import Any

from tests.engine.stage import (
    Actor,
    Stage,
    back,
    fails,
    play,
    statuses,
    undone,
)

from kubexm.plan import (
    Key,
    chain,
    per_host,
    scope,
)
from kubexm.step.contract import Expander, Minter, Reader


def test_a_compensation_takes_the_place_of_its_scopes_undos() -> None:
    stage = Stage(c=fails())
    body = scope("app", per_host(play("a"), play("b")), compensate=play("reset"))

    result = back(stage, chain(play("x"), body, play("c")))

    assert stage.order("app/@compensate/reset") == ["app/@compensate/reset"]
    assert undone(stage) == [("x", "h1")]
    assert statuses(result)["app/a@h1"] == "RolledBack"


def test_a_compensation_has_the_values_of_the_run_as_they_are() -> None:
    """What was created has to be known to be removed; it is not created a second time."""
    got: list[Any] = []
    stage = Stage(m=Actor(role=Minter, values={"vm": "vm-7"}), c=fails())
    stage.actors["remove"] = Actor(run=lambda ctx: got.append(ctx.values["vm"]))
    body = scope(
        "app",
        chain(play("m", provides=[Key("vm", ttl=1.0)]), play("b", needs=["vm"])),
        compensate=play("remove", needs=["vm"]),
    )
    stage.actors["b"] = Actor(duration=60.0)  # the value expires meanwhile

    result = back(stage, chain(body, play("c")))

    assert (got, result.status) == (["vm-7"], "RolledBack")
    assert stage.order("app/m") == ["app/m"]


def test_a_compensation_that_needs_a_value_which_was_never_made_fails() -> None:
    """With an empty text in its place it could remove what is none of its business."""
    got: list[Any] = []
    stage = Stage(m=Actor(role=Minter, values={"vm": "vm-7"}), b=fails("no"))
    stage.actors["remove"] = Actor(run=lambda ctx: got.append(ctx.values))
    made = chain(play("m", provides=[Key("vm")]), play("u", needs=["vm"]))
    body = scope("app", chain(play("a"), play("b"), made), compensate=play("remove", needs=["vm"]))

    result = back(stage, body)

    assert (got, result.status) == ([], "Failed")
    assert result.rollback is not None
    assert "needs the value `vm`, which nothing provides" in result.rollback.message


def test_a_compensation_stands_where_its_scope_stood() -> None:
    stage = Stage(d=fails(), reset=Actor(duration=5.0))
    body = scope("app", play("b"), compensate=play("reset"))

    back(stage, chain(play("a"), body, play("c"), play("d")))

    assert stage.at("rollback", "c", "h1") == 0.0
    assert stage.at("start", "app/@compensate/reset", "h1") == 0.0
    assert stage.at("rollback", "a", "h1") == 5.0


def test_a_compensation_waits_for_all_hosts_and_all_hosts_for_it_though_lanes_led_through() -> None:
    slowly = Actor(rollback=lambda ctx: asyncio.sleep(9.0 if ctx.host.name == "h2" else 1.0))
    stage = Stage(b=Actor(), c=slowly, d=fails())
    stage.actors["reset"] = Actor(duration=lambda host: 5.0 if host == "h2" else 0.0)
    hosts = ("h1", "h2")
    body = scope("app", play("b", *hosts), compensate=play("reset", *hosts))

    back(stage, chain(per_host(play("a", *hosts), body, play("c", *hosts)), play("d")))

    assert {stage.at("start", "app/@compensate/reset", host) for host in hosts} == {9.0}
    assert {stage.at("rollback", "a", host) for host in hosts} == {14.0}


def test_a_scope_that_changed_nothing_is_not_compensated() -> None:
    stage = Stage(b=Actor(satisfied=True), c=fails())
    body = scope("app", play("b"), compensate=play("reset"))

    back(stage, chain(play("a"), body, play("c")))

    assert "app/@compensate/reset" not in stage.order()


def test_the_outermost_compensation_wins() -> None:
    stage = Stage(c=fails())
    inner = scope("inner", play("b"), compensate=play("small"))
    outer = scope("outer", chain(play("a"), inner), compensate=play("big"))

    back(stage, chain(outer, play("c")))

    assert stage.order("outer/@compensate/big") == ["outer/@compensate/big"]
    assert undone(stage) == []
    assert "outer/inner/@compensate/small" not in stage.order()


def test_a_compensation_that_fails_leaves_its_scope_as_it_is() -> None:
    stage = Stage(c=fails(), reset=fails("stuck"))
    body = scope("app", play("b"), compensate=play("reset"))

    result = back(stage, chain(play("a"), body, play("c")))

    assert result.status == "Failed"
    assert statuses(result)["app/b@h1"] == "Success"
    assert undone(stage) == []


def test_a_compensation_that_fails_on_one_host_has_taken_back_the_others() -> None:
    stage = Stage(c=fails(), reset=fails("stuck", on=["h2"]))
    body = scope("app", play("b", "h1", "h2"), compensate=play("reset", "h1", "h2"))

    result = back(stage, chain(body, play("c")))

    assert result.status == "Failed"
    assert statuses(result)["app/b@h1"] == "RolledBack"
    assert statuses(result)["app/b@h2"] == "Success"


def test_a_host_is_taken_back_only_if_what_its_compensation_does_elsewhere_went_well() -> None:
    stage = Stage(c=fails(), forget=fails("stuck", on=["h3"]))
    undo = chain(play("reset", "h1", "h2"), play("forget", "h1", "h3"))
    body = scope("app", play("b", "h1", "h2"), compensate=undo)

    result = back(stage, chain(body, play("c")))

    assert statuses(result)["app/b@h1"] == "RolledBack"
    assert statuses(result)["app/b@h2"] == "Success"


def test_a_compensation_may_add_to_itself() -> None:
    stage = Stage(c=fails(), look=Actor(role=Expander, fragment=play("reset")))
    body = scope("app", play("b"), compensate=play("look"))

    result = back(stage, chain(body, play("c")))

    assert "@undo/app/@compensate/look/@h1/reset" in stage.order()
    assert statuses(result)["app/b@h1"] == "RolledBack"


def test_a_compensation_may_read_values_of_its_own() -> None:
    stage = Stage(look=Actor(role=Reader, values={"v": 1}), c=fails())
    undo = per_host(play("look", provides=[Key("v")]), play("reset", needs=["v"]))

    result = back(stage, chain(scope("app", play("b"), compensate=undo), play("c")))

    assert result.status == "RolledBack"
