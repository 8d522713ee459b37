"""A run that lost its last records, and takes it up from there, ends as it would have ended."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.stage import Actor, Stage, fails, play, raising, statuses, unreachable

from kubexm.errors import HostUnreachable, Refused, StepFailed
from kubexm.plan import (
    Allowance,
    ExecutionFragment,
    GraphExecutionResult,
    HookFragment,
    HostGroup,
    Key,
    Tolerance,
    chain,
    one_of,
    parallel,
    per_host,
    scope,
)
from kubexm.plan.records import RunState
from kubexm.step.contract import Expander, Minter, Outcome, Reader

H = ("h1", "h2", "h3")
ONE = Tolerance(failed=Allowance(count=1))
Scenario = tuple[Callable[[], Stage], ExecutionFragment | None, dict[str, Any]]


def slow(host: str) -> float:
    return 1.0 if host == "h1" else 0.0


def late(host: str) -> Actor:
    """Fails on this host, when all others are through."""
    return Actor(duration=slow, run=raising(StepFailed("no"), host))


def hooked() -> ExecutionFragment | None:
    moments = ("post", "on-failure", "always")
    hooks = [HookFragment(moment, play(moment, *H)) for moment in moments]  # type: ignore[arg-type]
    return chain(scope("s", chain(play("a", *H), play("b", *H)), hooks=hooks), play("c", *H))


def expanding(stage: Stage) -> Stage:
    stage.actors["e"] = Actor(
        role=Expander, run=lambda ctx: Outcome(fragment=play("x", ctx.host.name))
    )
    return stage


SCENARIOS: dict[str, Scenario] = {
    "success": (Stage, chain(play("a", *H), per_host(play("b", *H), play("c", "h1"))), {}),
    "satisfied": (lambda: Stage(a=Actor(satisfied=True)), chain(play("a"), play("b")), {}),
    "isolated": (
        lambda: Stage(a=fails(on=["h1"])),
        parallel(chain(per_host(play("a", *H), play("b", *H)), play("c", *H)), play("d", *H)),
        {},
    ),
    "fail-fast": (
        lambda: Stage(a=late("h1")),
        parallel(chain(play("a", *H), play("b", *H)), per_host(play("x", *H), play("y", *H))),
        {"on_failure": "fail-fast"},
    ),
    "tolerated": (
        lambda: Stage(a=fails(on=["h1"])),
        chain(play("a", *H, tolerance=ONE), per_host(play("b", *H), play("c", *H)), play("d", *H)),
        {},
    ),
    "too many": (
        lambda: Stage(a=fails(on=["h1", "h2"])),
        chain(play("a", *H, tolerance=ONE), play("b", *H)),
        {},
    ),
    "lost": (
        lambda: Stage(a=unreachable("h1"), x=Actor(duration=2.0)),
        parallel(chain(play("a", *H), play("c", *H)), chain(play("x", "h2"), play("y", *H))),
        {},
    ),
    "ignored": (
        lambda: Stage(a=fails()),
        chain(play("a", *H, ignore_errors=True), play("b", *H)),
        {},
    ),
    "group": (
        lambda: Stage(a=Actor(duration=slow, run=raising(HostUnreachable("no route"), "h1"))),
        chain(play("a", *H), play("b", *H)),
        {"graph": {"groups": (HostGroup("g", H, 3),)}},
    ),
    "one of": (
        lambda: Stage(a=Actor(precheck=raising(HostUnreachable("no route")))),
        chain(play("a", on=one_of(("h1", "h2"))), play("b", "h3")),
        {},
    ),
    "reader": (
        lambda: Stage(r=Actor(role=Reader, values={"v": 1})),
        chain(play("r", provides=[Key("v")]), play("a", *H, needs=["v"])),
        {},
    ),
    "failed minter": (
        lambda: Stage(m=Actor(role=Minter, run=raising(Refused("no")))),
        chain(play("m", provides=[Key("t")]), parallel(play("a", *H, needs=["t"]), play("b", *H))),
        {},
    ),
    "expanded": (
        lambda: expanding(Stage(x=fails(on=["h1"]))),
        chain(play("a", *H), per_host(play("e", *H), play("b", *H)), play("c", "h2")),
        {},
    ),
    "hooks of a success": (Stage, hooked(), {}),
    "hooks of a failure": (lambda: Stage(b=fails(on=["h1"])), hooked(), {}),
    "a failed hook": (lambda: Stage(post=fails(on=["h1"])), hooked(), {}),
    "rolled back": (
        lambda: expanding(Stage(c=fails())),
        chain(per_host(play("a", *H), play("e", *H), play("b", *H)), play("c")),
        {"on_failure": "rollback"},
    ),
    "rolled back with hooks": (
        lambda: Stage(b=late("h1")),
        hooked(),
        {"on_failure": "rollback"},
    ),
    "a failed undo": (
        lambda: Stage(c=fails(), b=Actor(rollback=raising(Refused("no"), "h1"))),
        chain(per_host(play("a", *H), play("b", *H)), play("c")),
        {"on_failure": "rollback"},
    ),
    "lost on the way back": (
        lambda: Stage(c=fails(), b=Actor(rollback=raising(HostUnreachable("no"), "h1"))),
        chain(per_host(play("a", *H), play("b", *H)), play("c")),
        {"on_failure": "rollback"},
    ),
}


def told(result: GraphExecutionResult) -> Any:
    undone = statuses(result.rollback) if result.rollback is not None else None
    nodes = {id: node.status for id, node in result.node_results.items()}
    summary = (result.status, result.degraded, result.message, set(result.quarantined))
    return statuses(result), nodes, summary, undone


@pytest.mark.parametrize("name", SCENARIOS)
def test_taken_up_after_any_record_a_run_ends_as_it_would_have(name: str) -> None:
    make, plan, options = SCENARIOS[name]
    first = make()
    expected = told(first.run(plan, **options))

    for cut in range(len(first.records) + 1):
        again = make().run(plan, state=RunState.fold(first.records[:cut]), **options)
        assert told(again) == expected, f"taken up after {cut} records"


@pytest.mark.parametrize("name", SCENARIOS)
def test_taken_up_after_its_last_record_a_run_touches_nothing(name: str) -> None:
    make, plan, options = SCENARIOS[name]
    first, second = make(), make()
    first.run(plan, **options)

    second.run(plan, state=RunState.fold(first.records), **options)

    assert second.notes == []
