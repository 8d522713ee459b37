"""One stream of events for everyone who listens, and nobody slows the run."""

import asyncio
from typing import Any

from tests import virtual
from tests.engine.stage import Actor, Stage, _Runtime, fails, graph_of, of, play, raising

from kubexm.engine import Bus, MemoryJournal, Options, execute
from kubexm.errors import HostUnreachable, StepFailed
from kubexm.plan import Allowance, RetryPolicy, Tolerance, chain, one_of, parallel, per_host
from kubexm.plan.events import (
    AnyEvent,
    HostQuarantined,
    ListenerLagged,
    LogLine,
    NodeFinished,
    NodeStarted,
    Progress,
    RunFinished,
    RunStarted,
    UnitFinished,
    UnitRetried,
    UnitStarted,
)
from kubexm.plan.records import RunState
from kubexm.runtime.contexts import StepContext


def kinds(stage: Stage) -> list[str]:
    return [type(event).__name__ for event in stage.events]


def test_the_stream_begins_with_the_run_and_ends_with_its_result() -> None:
    stage = Stage()

    result = stage.run(play("a"))

    assert kinds(stage) == [
        "RunStarted",
        "NodeStarted",
        "UnitStarted",
        "UnitFinished",
        "NodeFinished",
        "RunFinished",
    ]
    last = stage.events[-1]
    assert isinstance(last, RunFinished)
    assert last.result == result


def test_the_run_says_what_it_is_about() -> None:
    first = Stage()
    first.run(chain(play("a", "h1", "h2"), play("b")), dry_run=True)
    second = Stage()
    second.run(play("a"), state=RunState.fold(first.records))

    (start,) = first.told(RunStarted)
    assert (start.graph, start.units, start.dry_run, start.resumed) == ("test", 3, True, False)
    assert second.told(RunStarted)[0].resumed


def test_a_node_starts_with_its_first_unit_and_finishes_with_its_last() -> None:
    stage = Stage(a=Actor(duration=lambda host: 5.0 if host == "h2" else 1.0))

    stage.run(play("a", "h1", "h2"))

    assert [event.at for event in stage.told(NodeStarted)] == [0.0]
    assert [(event.at, event.status) for event in stage.told(NodeFinished)] == [(5.0, "Success")]


def test_a_unit_is_finished_before_what_follows_it_starts() -> None:
    stage = Stage()

    stage.run(chain(play("a"), play("b")))

    about = [
        (type(event).__name__, event.node)
        for event in stage.events
        if isinstance(event, UnitStarted | UnitFinished)
    ]
    assert about.index(("UnitFinished", "a")) < about.index(("UnitStarted", "b"))


def test_every_unit_finishes_exactly_once_whatever_becomes_of_it() -> None:
    stage = Stage(a=fails(on=["h1"]), s=Actor(satisfied=True))

    stage.run(parallel(per_host(play("a", "h1", "h2"), play("b", "h1", "h2")), play("s")))

    finished = sorted((event.node, event.host) for event in stage.told(UnitFinished))
    assert finished == [("a", "h1"), ("a", "h2"), ("b", "h1"), ("b", "h2"), ("s", "h1")]


def test_a_finished_unit_carries_its_result() -> None:
    stage = Stage(a=fails("no"))

    result = stage.run(play("a"))

    assert stage.told(UnitFinished)[0].result == of(result, "a")


def test_a_node_whose_failures_are_tolerated_finishes_well() -> None:
    stage = Stage(a=fails(on=["h1"]))

    stage.run(play("a", "h1", "h2", tolerance=Tolerance(failed=Allowance(count=1))))

    assert [event.status for event in stage.told(NodeFinished)] == ["Success"]
    assert [event.host for event in stage.told(HostQuarantined)] == ["h1"]


def test_a_node_held_back_is_told_as_skipped() -> None:
    stage = Stage(a=fails())

    stage.run(chain(play("a"), play("b")))

    assert [event.status for event in stage.told(NodeFinished)] == ["Failed", "Skipped"]


def test_lines_and_progress_of_a_step_are_told_as_they_come() -> None:
    async def talk(ctx: StepContext) -> None:
        ctx.say("stdout", "one")
        await asyncio.sleep(5.0)
        ctx.progress(1.0, 2.0, "half")

    stage = Stage(a=Actor(run=talk))

    stage.run(play("a"))

    assert [(event.at, event.text) for event in stage.told(LogLine)] == [(0.0, "one")]
    assert [(event.at, event.text) for event in stage.told(Progress)] == [(5.0, "half")]


def test_no_event_carries_a_secret() -> None:
    def talk(ctx: StepContext) -> None:
        ctx.say("stdout", "the s3cret")
        ctx.progress(1.0, 2.0, "with s3cret")
        raise StepFailed("bad s3cret")

    stage = Stage(a=Actor(run=talk, diagnose=lambda ctx: "s3cret was wrong"))
    stage.conceal("s3cret")

    stage.run(play("a", retry=RetryPolicy(attempts=2)))

    assert stage.told(UnitRetried)[0].message == "bad ***"
    assert not any("s3cret" in str(event) for event in stage.events)
    assert not any("s3cret" in str(record) for record in stage.records)


def test_the_cause_of_a_quarantine_carries_no_secret() -> None:
    stage = Stage(a=Actor(precheck=raising(HostUnreachable("s3cret"))))
    stage.conceal("s3cret")

    stage.run(play("a", on=one_of(("h1", "h2"))))

    assert not any("s3cret" in str(record) for record in stage.records)


# Listeners.


def listening(size: int, *, plan: Any) -> tuple[list[AnyEvent], list[AnyEvent], MemoryJournal]:
    """What a listener with a small buffer and one with a large one get."""

    async def main() -> tuple[list[AnyEvent], list[AnyEvent], MemoryJournal]:
        stage, bus, journal = Stage(), Bus(), MemoryJournal()
        small, large = bus.subscribe(size), bus.subscribe()
        await execute(
            graph_of(plan), _Runtime(stage), Options(), load=stage.load, journal=journal, bus=bus
        )
        bus.close()
        return [e async for e in small], [e async for e in large], journal

    return virtual.run(main())


def test_a_listener_that_is_too_slow_loses_the_oldest_and_is_told_how_many() -> None:
    hosts = [f"h{number}" for number in range(20)]

    small, large, _ = listening(5, plan=play("a", *hosts))

    assert isinstance(small[0], ListenerLagged)
    assert small[0].dropped == len(large) - 5
    assert small[1:] == large[-5:]


def test_a_listener_that_keeps_up_loses_nothing() -> None:
    _, large, _ = listening(5, plan=play("a", "h1", "h2"))

    assert not any(isinstance(event, ListenerLagged) for event in large)
    assert len(large) == 8


def test_the_journal_gets_everything_while_listeners_lose_much() -> None:
    hosts = [f"h{number}" for number in range(50)]

    small, _, journal = listening(1, plan=play("a", *hosts))

    assert len(small) == 2
    assert len(journal.records) == 50


def test_a_listener_that_stopped_listening_slows_nothing() -> None:
    async def main() -> None:
        stage, bus = Stage(a=Actor(duration=1.0)), Bus()
        bus.subscribe(3)
        await execute(
            graph_of(play("a")),
            _Runtime(stage),
            Options(),
            load=stage.load,
            journal=MemoryJournal(),
            bus=bus,
        )
        assert asyncio.get_running_loop().time() == 1.0

    virtual.run(main())


def test_a_listener_hears_events_while_the_run_goes_on() -> None:
    async def main() -> list[float]:
        stage, bus = Stage(a=Actor(duration=5.0)), Bus()
        clock = asyncio.get_running_loop().time

        async def listen() -> list[float]:
            return [clock() - event.at async for event in subscription]

        subscription = bus.subscribe()
        listener = asyncio.ensure_future(listen())
        await execute(
            graph_of(chain(play("a"), play("b"))),
            _Runtime(stage),
            Options(),
            load=stage.load,
            journal=MemoryJournal(),
            bus=bus,
        )
        bus.close()
        return await listener

    assert set(virtual.run(main())) == {0.0}
