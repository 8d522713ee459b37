"""Slots: how many units may do what at once, and what never holds one."""

import asyncio
from typing import Any

import pytest
from tests.engine.stage import Actor, Stage, fails, of, play

from kubexm.errors import ConnectionLost, StepFailed
from kubexm.plan import Pool, ResourceConstraints, RetryPolicy, chain, parallel, per_host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import NotYet, Verdict

HOSTS = ("h1", "h2", "h3", "h4")


def alone(**more: Any) -> ResourceConstraints:
    return ResourceConstraints(max_concurrency_per_host=1, **more)


def pooled(*names: str) -> ResourceConstraints:
    return ResourceConstraints(pools=names)


def test_parallelism_bounds_all_units_of_a_run() -> None:
    stage = Stage(a=Actor(duration=1.0))

    stage.run(play("a", *HOSTS), parallelism=2)

    assert (stage.most["all"], stage.end) == (2, 2.0)


def test_at_most_512_units_run_at_once_unless_said_otherwise() -> None:
    stage = Stage(a=Actor(duration=1.0))

    stage.run(play("a", *(f"h{number}" for number in range(600))))

    assert (stage.most["all"], stage.end) == (512, 2.0)


def test_per_host_bounds_the_units_on_each_host() -> None:
    stage = Stage(**{f"n{number}": Actor(duration=1.0) for number in range(6)})

    stage.run(parallel(*(play(f"n{number}", "h1", "h2") for number in range(6))), per_host=3)

    assert (stage.most["host:h1"], stage.most["all"], stage.end) == (3, 6, 2.0)


def test_four_units_run_on_a_host_at_once_unless_said_otherwise() -> None:
    stage = Stage(**{f"n{number}": Actor(duration=1.0) for number in range(5)})

    stage.run(parallel(*(play(f"n{number}") for number in range(5))))

    assert (stage.most["host:h1"], stage.end) == (4, 2.0)


def test_a_node_global_limit_bounds_its_units_and_no_others() -> None:
    stage = Stage(a=Actor(duration=1.0), b=Actor(duration=1.0))
    limits = ResourceConstraints(global_concurrency_limit=1)

    stage.run(parallel(play("a", *HOSTS, limits=limits), play("b", *HOSTS)))

    assert (stage.most["node:a"], stage.most["node:b"], stage.end) == (1, 4, 4.0)


def test_a_node_limit_of_one_per_host_means_alone_on_the_host() -> None:
    stage = Stage(a=Actor(duration=2.0), b=Actor(duration=3.0), c=Actor(duration=1.0))

    stage.run(
        parallel(play("a", limits=alone()), play("b"), play("c", "h2")),
        durations={"a": 9.0},
    )

    assert stage.at("start", "b", "h1") == 2.0
    assert stage.at("start", "c", "h2") == 0.0


def test_a_unit_that_must_be_alone_waits_for_those_that_run_already() -> None:
    stage = Stage(a=Actor(duration=2.0), b=Actor(duration=3.0), c=Actor(duration=5.0))
    late = per_host(play("a"), play("c", limits=alone()))

    stage.run(parallel(late, play("b")))

    assert stage.at("start", "c", "h1") == 3.0


def test_a_node_limit_of_two_per_host_lowers_the_limit_for_all_while_it_runs() -> None:
    stage = Stage(
        a=Actor(duration=2.0), b=Actor(duration=9.0), c=Actor(duration=9.0), d=Actor(duration=1.0)
    )
    pair = ResourceConstraints(max_concurrency_per_host=2)

    stage.run(
        parallel(play("a", limits=pair), play("b"), play("c"), play("d")),
        durations={"a": 4.0, "b": 3.0, "c": 2.0},
    )

    starts = [stage.at("start", name, "h1") for name in "abcd"]
    assert starts == [0.0, 0.0, 2.0, 2.0]


def test_units_waiting_at_a_full_host_start_by_their_own_limit() -> None:
    """While one runs that allows two, another that wants to be alone must not block a third."""
    stage = Stage(a=Actor(duration=5.0), b=Actor(duration=1.0), c=Actor(duration=1.0))

    stage.run(
        parallel(play("a"), play("b", limits=alone()), play("c")),
        durations={"a": 3.0, "b": 2.0},
        per_host=2,
    )

    assert stage.at("start", "c", "h1") == 0.0
    assert stage.at("start", "b", "h1") == 5.0


def test_a_pool_of_the_run_bounds_runs_on_all_hosts_together() -> None:
    stage = Stage(a=Actor(duration=1.0), b=Actor(duration=1.0))

    stage.run(
        parallel(play("a", *HOSTS, limits=pooled("download")), play("b", *HOSTS)),
        graph={"pools": {"download": Pool(2)}},
    )

    assert (stage.most["node:a"], stage.most["node:b"], stage.end) == (2, 4, 2.0)


def test_a_pool_of_the_host_bounds_runs_on_each_host() -> None:
    stage = Stage(a=Actor(duration=1.0), b=Actor(duration=1.0))
    limits = pooled("packages")

    stage.run(
        parallel(play("a", "h1", "h2", limits=limits), play("b", "h1", "h2", limits=limits)),
        graph={"pools": {"packages": Pool(1, "host")}},
    )

    assert (stage.most["host:h1"], stage.most["all"], stage.end) == (1, 2, 2.0)


def test_a_pool_never_guards_a_precheck() -> None:
    stage = Stage(a=Actor(duration=5.0))

    stage.run(play("a", *HOSTS, limits=pooled("p")), graph={"pools": {"p": Pool(1)}})

    assert [stage.at("precheck", "a", host) for host in HOSTS] == [0.0] * 4
    assert stage.end == 20.0


def test_satisfied_units_pass_a_full_pool() -> None:
    stage = Stage(a=Actor(duration=5.0), b=Actor(satisfied=True))
    both = parallel(
        play("a", limits=pooled("p")), per_host(play("b", limits=pooled("p")), play("c"))
    )

    stage.run(both, graph={"pools": {"p": Pool(1)}})

    assert stage.at("start", "c", "h1") == 0.0


def test_a_pool_is_free_while_its_last_holder_verifies() -> None:
    async def slowly(ctx: StepContext) -> Verdict:
        done = ("a", ctx.host.name) in stage.made
        await asyncio.sleep(10.0 if done else 0.0)
        return Verdict.holds() if done else Verdict.needed("not yet")

    stage = Stage(a=Actor(duration=1.0, verifies=True, precheck=slowly))

    stage.run(play("a", "h1", "h2", limits=pooled("p")), graph={"pools": {"p": Pool(1)}})

    assert sorted(stage.at("start", "a", host) for host in ("h1", "h2")) == [0.0, 1.0]


def test_who_waits_for_a_pool_holds_nothing_else() -> None:
    """All slots are taken at once or none: one waiting for the pool leaves its host to others."""
    stage = Stage(a=Actor(duration=5.0), b=Actor(duration=5.0), c=Actor(duration=1.0))

    stage.run(
        parallel(
            play("a", "h1", limits=pooled("p")),
            play("b", "h2", limits=pooled("p")),
            play("c", "h2"),
        ),
        graph={"pools": {"p": Pool(1)}},
        per_host=1,
        durations={"a": 3.0, "b": 2.0},
    )

    assert stage.at("start", "c", "h2") == 0.0
    assert stage.at("start", "b", "h2") == 5.0


def test_two_pools_are_taken_together() -> None:
    stage = Stage(a=Actor(duration=2.0), b=Actor(duration=3.0), c=Actor(duration=1.0))

    stage.run(
        parallel(
            play("a", "h1", limits=pooled("p")),
            play("b", "h2", limits=pooled("p", "q")),
            play("c", "h3", limits=pooled("q")),
        ),
        graph={"pools": {"p": Pool(1), "q": Pool(1)}},
        durations={"a": 3.0, "b": 2.0},
    )

    assert stage.at("start", "c", "h3") == 0.0
    assert stage.at("start", "b", "h2") == 2.0


def test_a_unit_waits_only_if_a_slot_of_its_own_is_full() -> None:
    stage = Stage(**{name: Actor(duration=5.0) for name in "abcd"})

    stage.run(
        parallel(
            play("a", "h1", limits=pooled("p")),
            play("b", "h2", limits=pooled("p")),
            play("c", "h1"),
            play("d", "h2"),
        ),
        graph={"pools": {"p": Pool(1)}},
    )

    assert stage.at("start", "c", "h1") == stage.at("start", "d", "h2") == 0.0


def _at_first(ctx: StepContext) -> None:
    if ctx.attempt == 1:
        raise StepFailed("not yet")


def test_the_pause_before_a_retry_holds_no_slot() -> None:
    stage = Stage(a=Actor(run=_at_first))

    stage.run(
        parallel(play("a", retry=RetryPolicy(attempts=2, delay=60.0)), play("b")),
        parallelism=1,
        durations={"a": 9.0},
    )

    assert stage.at("start", "b", "h1") == 0.0
    assert stage.end == 60.0


def test_the_pause_between_polls_holds_no_slot() -> None:
    looks: list[float] = []

    def poll(ctx: StepContext) -> NotYet | None:
        looks.append(asyncio.get_running_loop().time())
        return NotYet(10.0, "not up") if len(looks) < 3 else None

    stage = Stage(a=Actor(run=poll), b=Actor(duration=4.0))

    stage.run(
        parallel(play("a", limits=alone(pools=("p",))), play("b", limits=alone(pools=("p",)))),
        graph={"pools": {"p": Pool(1)}},
        durations={"a": 9.0},
    )

    assert looks == [0.0, 10.0, 20.0]
    assert stage.at("start", "b", "h1") == 0.0


def test_a_unit_that_reconnects_holds_no_slot() -> None:
    stage = Stage(
        a=Actor(run=lambda ctx: None if stage.reconnects else _lose()), b=Actor(duration=1.0)
    )
    stage.reconnect = lambda name: asyncio.sleep(20.0)

    stage.run(parallel(play("a"), play("b", "h2")), parallelism=1, durations={"a": 9.0})

    assert stage.at("start", "b", "h2") == 0.0


def test_a_unit_that_has_reconnected_takes_its_slots_again() -> None:
    stage = Stage(
        a=Actor(run=lambda ctx: None if stage.reconnects else _lose()), b=Actor(duration=60.0)
    )
    stage.reconnect = lambda name: asyncio.sleep(20.0)

    stage.run(parallel(play("a"), play("b")), per_host=1, durations={"a": 9.0})

    assert [t for t, what, node, _ in stage.notes if (what, node) == ("start", "a")] == [0.0, 60.0]


def _lose() -> None:
    raise ConnectionLost("broken pipe")


def test_slots_come_back_from_units_that_fail() -> None:
    stage = Stage(a=fails(), b=Actor(duration=1.0))

    result = stage.run(
        parallel(play("a", *HOSTS, limits=alone(pools=("p",))), play("b", *HOSTS)),
        graph={"pools": {"p": Pool(1)}},
        parallelism=1,
        durations={"a": 9.0},
    )

    assert {of(result, "b", host).status for host in HOSTS} == {"Success"}


def test_the_most_urgent_of_those_that_wait_gets_the_slot() -> None:
    stage = Stage(**{name: Actor(duration=1.0) for name in "abcd"})

    stage.run(
        parallel(*(play(name, limits=pooled("p")) for name in "abcd")),
        graph={"pools": {"p": Pool(1)}},
        durations={"a": 1.0, "b": 3.0, "c": 2.0, "d": 4.0},
    )

    assert stage.order() == ["d", "b", "c", "a"]


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_a_graph_of_many_limits_ends(parallelism: int) -> None:
    stage = Stage(a=Actor(duration=1.0), b=Actor(duration=2.0), c=Actor(duration=1.0))
    limits = ResourceConstraints(1, 2, ("p", "q"))

    result = stage.run(
        chain(
            parallel(play("a", *HOSTS, limits=limits), play("b", *HOSTS, limits=pooled("q"))),
            play("c", *HOSTS, limits=alone()),
        ),
        graph={"pools": {"p": Pool(1), "q": Pool(1, "host")}},
        parallelism=parallelism,
    )

    assert result.counts == {"Success": 12}
