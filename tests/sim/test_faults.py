"""Delays and faults come from the seed: the same in every run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.virtual import run as run_virtually

from kubexm.connector.base import Command, Completed
from kubexm.errors import ConnectionLost, HostUnreachable, StepFailed, TimedOut
from kubexm.sim import (
    Distribution,
    Fault,
    Fixed,
    Lognormal,
    Script,
    SimConnector,
    Uniform,
    World,
    WorldSettings,
)

T = TypeVar("T")
TRUE = Command(("true",))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    """Makes worlds, each in a directory of its own."""
    numbers = count()
    made: list[World] = []

    def make(**settings: Any) -> World:
        made.append(World.create(tmp_path / str(next(numbers)), WorldSettings(**settings)))
        return made[-1]

    yield make
    for world in made:
        world.close()


async def timed(work: Coroutine[Any, Any, T]) -> tuple[float, T]:
    loop = asyncio.get_running_loop()
    start = loop.time()
    done = await work
    return loop.time() - start, done


async def attempt(connector: SimConnector, *argv: str) -> str:
    try:
        done = await connector.exec(Command(argv))
    except ConnectionLost:
        await connector.open()
        return "lost"
    return "ok" if done.ok else "failed"


def test_latency_is_paid_once_per_round_trip(make: Any) -> None:
    world = make(latency=Fixed(0.25))

    async def scenario() -> None:
        connector = world.connector("n1")
        assert (await timed(connector.open()))[0] == pytest.approx(0.25)
        assert (await timed(connector.exec(TRUE)))[0] == pytest.approx(0.25)
        assert (await timed(connector.batch([TRUE] * 10)))[0] == pytest.approx(0.25)
        assert (await timed(connector.put("/srv/f", b"")))[0] == pytest.approx(0.25)

    run_virtually(scenario())


@pytest.mark.parametrize("latency", [Uniform(0.1, 0.2), Lognormal(0.2, 0.7)])
def test_delays_are_the_same_in_every_run_and_differ_by_seed_and_host(
    make: Any, latency: Distribution
) -> None:
    async def delays(world: World, host: str) -> list[float]:
        return [(await timed(world.connector(host).exec(TRUE)))[0] for _ in range(20)]

    first = run_virtually(delays(make(latency=latency, seed=1), "n1"))
    again = run_virtually(delays(make(latency=latency, seed=1), "n1"))
    other_host = run_virtually(delays(make(latency=latency, seed=1), "n2"))
    other_seed = run_virtually(delays(make(latency=latency, seed=2), "n1"))

    assert first == pytest.approx(again)
    assert len(set(first)) == 20
    assert first != pytest.approx(other_host)
    assert first != pytest.approx(other_seed)


def test_a_lognormal_delay_has_its_median() -> None:
    law = Lognormal(0.2, 1.0)

    assert law.at(0.5) == pytest.approx(0.2)
    assert law.at(0.0) < law.at(0.1) < 0.2 < law.at(0.9)


def test_a_scripted_command_takes_its_time_and_has_its_effect_at_the_end(make: Any) -> None:
    world = make(scripts=(Script(("work",), stdout="a\nb\n", duration=Fixed(5.0)),))
    lines: list[str] = []

    async def scenario() -> None:
        connector = world.connector("n1")
        work = connector.exec(Command(("work",)), lambda _, line: lines.append(line))
        assert (await timed(work))[0] == pytest.approx(5.0)
        assert (await timed(connector.exec(Command(("sleep", "3")))))[0] == pytest.approx(3.0)
        with pytest.raises(TimedOut, match=r"`work` did not end within 2 s"):
            await connector.exec(Command(("work",), timeout=2.0))

    run_virtually(scenario())

    assert lines == ["a", "b"]


def test_faults_by_probability_strike_the_same_commands_in_every_run(make: Any) -> None:
    faults = (Fault("connection-lost", probability=0.2), Fault("fail", probability=0.2))

    async def fates(world: World) -> list[str]:
        connector = world.connector("n1")
        return [await attempt(connector, "touch", f"/srv/{number}") for number in range(60)]

    first, again = make(faults=faults, seed=7), make(faults=faults, seed=7)
    fate = run_virtually(fates(first))

    assert fate == run_virtually(fates(again))
    assert set(fate) == {"ok", "lost", "failed"}
    assert first.snapshot() == again.snapshot()
    assert fate != run_virtually(fates(make(faults=faults, seed=8)))
    lost = {f"/srv/{number}" for number, word in enumerate(fate) if word == "lost"}
    assert lost - first.snapshot()["n1"].keys(), "some were not carried out"
    assert lost & first.snapshot()["n1"].keys(), "and some were"


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_connection_may_leave_its_effect(make: Any, applied: bool) -> None:
    fault = Fault("connection-lost", hosts="n1", at=2, applied=applied)
    world = make(faults=(fault,))

    async def scenario() -> list[str]:
        connector = world.connector("n1")
        return [await attempt(connector, "touch", f"/srv/{number}") for number in range(3)]

    assert run_virtually(scenario()) == ["ok", "lost", "ok"]
    assert ("/srv/1" in world.snapshot()["n1"]) == applied


def test_a_fault_strikes_only_the_hosts_and_commands_it_names(make: Any) -> None:
    world = make(faults=(Fault("fail", hosts="n1", argv=("touch", "*/bad"), probability=1.0),))

    async def scenario() -> list[str]:
        return [
            await attempt(world.connector("n1"), "touch", "/srv/bad"),
            await attempt(world.connector("n1"), "touch", "/srv/good"),
            await attempt(world.connector("n2"), "touch", "/srv/bad"),
        ]

    assert run_virtually(scenario()) == ["failed", "ok", "ok"]


def test_a_host_is_unreachable_for_a_time(make: Any) -> None:
    world = make(faults=(Fault("unreachable", at=1, seconds=60.0, applied=False),))

    async def scenario() -> None:
        connector = world.connector("n1")
        with pytest.raises(ConnectionLost):
            await connector.exec(TRUE)
        with pytest.raises(HostUnreachable):
            await connector.open()
        await asyncio.sleep(60)
        await connector.open()
        assert (await connector.exec(TRUE)).ok

    run_virtually(scenario())


def test_a_host_is_unreachable_for_good_also_when_the_world_is_opened_again(make: Any) -> None:
    world = make(faults=(Fault("unreachable", at=1, applied=False),))

    async def lose() -> None:
        with pytest.raises(ConnectionLost):
            await world.connector("n1").exec(TRUE)

    run_virtually(lose())
    world.close()

    with pytest.raises(HostUnreachable):
        run_virtually(World.open(world.path).connector("n1").open())


def test_a_full_disk_fails_writes_and_leaves_what_was_there(make: Any) -> None:
    world = make(faults=(Fault("disk-full", at=2), Fault("disk-full", at=3)))

    async def scenario() -> Completed:
        connector = world.connector("n1")
        await connector.put("/srv/f", b"old")
        with pytest.raises(StepFailed, match="No space left on device"):
            await connector.put("/srv/f", b"new")
        failed: Completed = await connector.exec(Command(("mkdir", "/srv/d")))
        assert await connector.get("/srv/f") == b"old"
        return failed

    failed = run_virtually(scenario())

    assert failed.exit == 1
    assert b"No space left on device" in failed.stderr


def test_a_hang_ends_by_timeout_or_after_its_time_and_slow_is_only_slow(make: Any) -> None:
    world = make(
        faults=(
            Fault("hang", at=1),
            Fault("hang", at=2, seconds=100.0),
            Fault("slow", at=3, seconds=7.0),
        )
    )

    async def scenario() -> None:
        connector = world.connector("n1")
        with pytest.raises(TimedOut):
            await connector.exec(Command(("true",), timeout=10.0))
        assert (await timed(connector.exec(TRUE)))[0] == pytest.approx(100.0)
        assert (await timed(connector.exec(TRUE)))[0] == pytest.approx(7.0)

    run_virtually(scenario())


def test_a_command_that_is_cancelled_has_no_effect(make: Any) -> None:
    world = make(latency=Fixed(10.0))

    async def scenario() -> None:
        writing = asyncio.create_task(world.connector("n1").put("/srv/f", b""))
        await asyncio.sleep(5)
        writing.cancel()
        await asyncio.wait([writing])

    run_virtually(scenario())

    assert world.snapshot() == {}


def test_a_host_that_is_stopped_meanwhile_does_not_answer(make: Any) -> None:
    world = make(latency=Fixed(10.0))

    async def scenario() -> None:
        writing = asyncio.create_task(world.connector("n1").put("/srv/f", b""))
        await asyncio.sleep(5)
        world.host("n1").stop()
        with pytest.raises(ConnectionLost):
            await writing

    run_virtually(scenario())

    assert world.snapshot() == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs either `at` or `probability`"),
        ({"at": 1, "probability": 0.5}, "needs either `at` or `probability`"),
        ({"probability": 2.0}, "want 0 to 1"),
        ({"at": 1, "kind": "slow"}, "fault `slow` needs `seconds`"),
    ],
)
def test_faults_that_cannot_be_meant_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fault(**{"kind": "fail", **settings})
