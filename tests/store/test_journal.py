"""What the journal calls durable is in the file, in order; the rest of it is quick."""

import asyncio
import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import virtual
from tests.store.scenario import begun, done, journal, secret, started, stored_numbers

from kubexm.errors import StoreUnusable
from kubexm.plan import ExecutionNode, StepSpec
from kubexm.plan.events import LogLine, ProducedValue
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.records import (
    HostSeen,
    LedgerDropped,
    LedgerEntry,
    Quarantined,
    Reopened,
    RunState,
    Turned,
    UnitBound,
    UnitDone,
    UnitIntended,
)
from kubexm.plan.result import Cause, HostResult
from kubexm.store import Store

CAUSE = Cause("demo/a", "h1", "no", "unreachable")


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Another process that has the database to itself."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def unexpected(error: BaseException) -> None:
    raise error


def line(text: str, node: str = "demo/a", host: str = "h1") -> LogLine:
    return LogLine(at=2.0, node=node, host=host, stream="stdout", text=text)


def test_number_is_reported_after_its_record_is_in_the_file(store: Store, path: Path) -> None:
    seen: list[tuple[int, list[int]]] = []

    async def scenario() -> None:
        _run, lease = begun(store)
        kept = store.journal(lease)
        finished = asyncio.Event()

        def durable(number: int) -> None:
            seen.append((number, stored_numbers(path)))
            if number == 20:
                finished.set()

        kept.start(durable, unexpected)
        for host in range(20):
            kept.append(done(f"h{host}"), urgent=True)
            await asyncio.sleep(0)
        await finished.wait()
        await kept.close()

    asyncio.run(scenario())

    assert seen[-1][0] == 20
    assert all(stored[-1] >= number for number, stored in seen)


def test_records_that_come_during_a_commit_are_committed_together(store: Store, path: Path) -> None:
    async def scenario() -> list[int]:
        _run, lease = begun(store)
        kept = store.journal(lease)
        listener = started(kept)
        with write_lock(path):
            for host in range(1000):
                kept.append(done(f"h{host}"), urgent=True)
                await asyncio.sleep(0)
        await listener.until_durable(1000)
        await kept.close()
        return listener.durable

    durable = asyncio.run(scenario())

    # One commit that had to wait, and one for all that came meanwhile.
    assert durable[-1] == 1000
    assert len(durable) <= 2
    assert stored_numbers(path) == list(range(1, 1001))


def test_record_nothing_waits_for_rides_along(store: Store, path: Path) -> None:
    async def scenario() -> None:
        _run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        kept.append(done("h1"), urgent=False)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (listener.durable, stored_numbers(path)) == ([], [])

        kept.append(done("h2"), urgent=True)
        await listener.until_durable(2)
        assert listener.durable == [2]
        await kept.close()

    asyncio.run(scenario())

    assert stored_numbers(path) == [1, 2]


def test_record_nothing_waits_for_is_committed_after_a_quarter_of_a_second(store: Store) -> None:
    async def scenario() -> list[float]:
        _run, lease = begun(store)
        kept = store.journal(lease)
        listener = started(kept)
        moments = []
        for number in (1, 2):
            kept.append(done(), urgent=False)
            await listener.until_durable(number)
            moments.append(asyncio.get_running_loop().time())
        await kept.close()
        return moments

    assert virtual.run(scenario(), threads=True) == [0.25, 0.5]


def test_an_urgent_record_may_wait_for_others_soon_after_a_commit(store: Store, path: Path) -> None:
    async def scenario() -> tuple[list[int], float]:
        _run, lease = begun(store)
        kept = journal(path, lease, rest=math.inf)
        listener = started(kept)
        kept.append(done("h1"), urgent=True, within=0.008)
        await listener.until_durable(1)
        kept.append(done("h2"), urgent=True, within=1.0)
        kept.append(done("h3"), urgent=True, within=2.0)
        await listener.until_durable(3)
        await kept.close()
        return listener.durable, asyncio.get_running_loop().time()

    assert virtual.run(scenario(), threads=True) == ([1, 3], 1.0)


@pytest.mark.parametrize("rest", [0.0, math.inf])
def test_a_record_that_may_not_wait_takes_the_waiting_ones_along(
    store: Store, path: Path, rest: float
) -> None:
    async def scenario() -> list[int]:
        _run, lease = begun(store)
        kept = journal(path, lease, rest=rest)
        listener = started(kept)
        kept.append(done("h1"), urgent=True)
        await listener.until_durable(1)
        kept.append(done("h2"), urgent=True, within=3600)
        if rest:
            kept.append(done("h3"), urgent=True)
        await listener.until_durable(3 if rest else 2)
        await kept.close()
        return listener.durable

    assert asyncio.run(scenario()) == ([1, 3] if rest else [1, 2])


def test_close_makes_the_rest_durable(store: Store, path: Path) -> None:
    async def scenario() -> list[int]:
        _run, lease = begun(store)
        kept = store.journal(lease)
        listener = started(kept)
        kept.append(done("h1"), urgent=False)
        kept.append(done("h2"), urgent=True)
        kept.log(line("one"))
        await kept.close()
        return listener.durable

    assert asyncio.run(scenario()) == [2]
    assert stored_numbers(path) == [1, 2]
    assert [found.text for found in store.log_lines(store.runs()[0].id)] == ["one"]


def test_settle_commits_before_it_returns(store: Store, path: Path) -> None:
    async def scenario() -> None:
        _run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)

        assert kept.settle()
        for number in range(1, 51):
            assert kept.append(done(), urgent=True) == number
            assert kept.settle()
            assert listener.durable == list(range(1, number + 1))
            assert stored_numbers(path)[-1] == number
        await kept.close()

        assert listener.durable == list(range(1, 51))

    asyncio.run(scenario())


def test_settle_from_the_callback_goes_on_without_nesting(store: Store, path: Path) -> None:
    async def scenario() -> None:
        _run, lease = begun(store)
        kept = journal(path, lease)

        def durable(number: int) -> None:
            if number < 1500:
                kept.append(done(), urgent=True)
                assert not kept.settle()

        kept.start(durable, unexpected)
        kept.append(done(), urgent=True)
        assert kept.settle()
        await kept.close()

    asyncio.run(scenario())

    assert len(stored_numbers(path)) == 1500


def test_settle_does_not_wait_for_another_process(store: Store, path: Path) -> None:
    async def scenario() -> None:
        _run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        with write_lock(path):
            kept.append(done("h1"), urgent=True)
            assert not kept.settle()
            # The writer has it now; what comes later may not overtake it.
            kept.append(done("h2"), urgent=True)
            assert not kept.settle()
        await listener.until_durable(2)
        await kept.close()

    asyncio.run(scenario())

    assert stored_numbers(path) == [1, 2]


def test_log_lines_keep_their_order_around_a_settle_that_had_to_wait(
    store: Store, path: Path
) -> None:
    async def scenario() -> str:
        run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        kept.log(line("1"))
        kept.append(done("h1"), urgent=True)
        assert kept.settle()
        kept.log(line("2"))
        kept.append(done("h2"), urgent=True)
        with write_lock(path):
            assert not kept.settle()
        kept.log(line("3"))
        await listener.until_durable(kept.append(done("h3"), urgent=True))
        kept.log(line("4"))
        await kept.close()
        return run.id

    found = store.log_lines(asyncio.run(scenario()))

    assert [(one.seq, one.text) for one in found] == [(n, str(n)) for n in (1, 2, 3, 4)]


def test_settle_leaves_slow_commits_to_the_writer(store: Store, path: Path) -> None:
    async def scenario() -> None:
        _run, lease = begun(store)
        kept = journal(path, lease, slow=0.0)
        listener = started(kept)
        kept.append(done(), urgent=True)
        assert kept.settle()  # nothing is known yet of how long it takes
        kept.append(done(), urgent=True)
        assert not kept.settle()
        await listener.until_durable(2)
        await kept.close()

    asyncio.run(scenario())


def test_numbers_go_on_where_an_earlier_journal_ended(store: Store, path: Path) -> None:
    async def part(id: str) -> list[int]:
        with store.acquire(id) as lease:
            kept = store.journal(lease)
            listener = started(kept)
            kept.append(done(), urgent=True)
            kept.log(line("x"))
            await kept.close()
            return listener.durable

    run, lease = begun(store)
    lease.release()

    assert [asyncio.run(part(run.id)) for _ in range(3)] == [[1], [2], [3]]
    assert [found.seq for found in store.log_lines(run.id)] == [1, 2, 3]


def test_every_kind_of_record_comes_back_as_it_was(store: Store) -> None:
    fragment = ExecutionFragment(
        (ExecutionNode("demo/a/@h1/b", "b", StepSpec("assert", {"x": [1, None]}), ("h1",)),)
    )
    failed = HostResult("h1", "Failed", "no", "out\n", "é\x00", failure="failed", cause=CAUSE)
    records: list[Any] = [
        HostSeen(at=0.5, host="h1", boot_id="b"),
        UnitBound(at=1.0, node="demo/a", host="h1"),
        UnitIntended(at=2.0, node="demo/a", host="h1", attempt=2),
        UnitDone(
            at=3.25,
            node="demo/a",
            host="h1",
            result=failed,
            values=(ProducedValue("k", "h1", {"deep": [1.5, "x"]}, expires=9.0),),
            fragment=fragment,
        ),
        Quarantined(at=4.0, host="h1", cause=CAUSE),
        LedgerEntry(at=5.0, host="h1", resource="file:/etc/x", prior={"mode": 420}),
        Turned(at=6.0, cause=CAUSE),
        Reopened(at=7.0, units=(("demo/b", "h2"),)),
    ]

    async def scenario() -> str:
        run, lease = begun(store)
        kept = store.journal(lease)
        started(kept)
        for record in records:
            kept.append(record, urgent=True)
        await kept.close()
        return run.id

    id = asyncio.run(scenario())

    assert store.records(id) == list(enumerate(records, 1))
    assert store.records(id, after=6) == list(enumerate(records, 1))[6:]
    assert store.state(id) == RunState.fold(records)


def test_direction_of_the_run_follows_its_records(store: Store) -> None:
    async def scenario() -> list[str]:
        run, lease = begun(store)
        kept = store.journal(lease)
        listener = started(kept)
        await listener.until_durable(kept.append(Turned(at=1.0, cause=CAUSE), urgent=True))
        found = [store.run(run.id).direction]
        await kept.close()
        store.reopen(lease, Reopened(at=2.0, units=()))
        return [*found, store.run(run.id).direction]

    assert asyncio.run(scenario()) == ["back", "forward"]


def test_first_ledger_entry_of_a_resource_wins(store: Store) -> None:
    async def one_run(name: str, prior: str) -> None:
        _run, lease = begun(store, name)
        with lease:
            kept = store.journal(lease)
            started(kept)
            for host in ("h1", "h2"):
                entry = LedgerEntry(at=1.0, host=host, resource="file:/x", prior={"was": prior})
                kept.append(entry, urgent=True)
            await kept.close()

    for name, prior in (("demo", "first"), ("demo", "second"), ("other", "third")):
        asyncio.run(one_run(name, prior))

    assert store.ledger("demo") == [
        LedgerEntry(at=1.0, host=host, resource="file:/x", prior={"was": "first"})
        for host in ("h1", "h2")
    ]
    assert [entry.prior for entry in store.ledger("other")] == [{"was": "third"}] * 2


def test_what_only_the_host_knew_of_a_resource_is_the_first_entry(store: Store) -> None:
    async def one_run() -> None:
        _run, lease = begun(store, "demo")
        with lease:
            kept = store.journal(lease)
            started(kept)
            kept.append(
                LedgerEntry(1.0, "h1", "file:/x", {"was": "found"}, {"was": "first"}), urgent=True
            )
            await kept.close()

    asyncio.run(one_run())

    assert [entry.prior for entry in store.ledger("demo")] == [{"was": "first"}]
    assert store.in_ledger("demo") == {"h1": {"file:/x"}}


def test_a_dropped_entry_is_gone_and_the_next_one_is_the_first_again(store: Store) -> None:
    records = (
        LedgerEntry(1.0, "h1", "file:/x", {"was": "first"}),
        LedgerEntry(1.0, "h2", "file:/x", {"was": "other"}),
        LedgerDropped(2.0, "h1", "file:/x"),
        LedgerEntry(3.0, "h1", "file:/x", {"was": "anew"}),
    )

    async def one_run() -> str:
        run, lease = begun(store, "demo")
        with lease:
            kept = store.journal(lease)
            started(kept)
            for record in records:
                kept.append(record, urgent=True)
            await kept.close()
        return run.id

    id = asyncio.run(one_run())

    entries = {entry.host: entry.prior for entry in store.ledger("demo")}
    assert entries == {"h1": {"was": "anew"}, "h2": {"was": "other"}}
    assert store.state(id).priors == {
        "h1": {"file:/x": {"was": "anew"}},
        "h2": {"file:/x": {"was": "other"}},
    }


def test_secret_values_are_nowhere_in_the_files(store: Store, path: Path) -> None:
    word = "correct-horse-battery"

    async def scenario() -> str:
        run, lease = begun(store)
        kept = store.journal(lease)
        started(kept)
        values = (secret({"token": word}), ProducedValue("open", "h1", "in clear"))
        kept.append(done(values=values), urgent=True)
        await kept.close()
        return run.id

    id = asyncio.run(scenario())

    everything = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert word.encode() not in everything
    assert b"in clear" in everything
    assert word not in str(store.records(id))
    values = store.state(id).done["demo/a", "h1"].values
    assert [value.value for value in values] == [{"token": word}, "in clear"]


def test_secret_values_need_the_key_file(store: Store, path: Path) -> None:
    async def scenario() -> str:
        run, lease = begun(store)
        kept = store.journal(lease)
        started(kept)
        kept.append(done(values=(secret("x"),)), urgent=True)
        await kept.close()
        return run.id

    id = asyncio.run(scenario())
    path.with_suffix(".key").unlink()

    with Store.open(path) as other, pytest.raises(StoreUnusable, match="key file is missing"):
        other.state(id)


def test_log_lines_are_kept_in_order_and_can_be_chosen(store: Store) -> None:
    async def scenario() -> str:
        run, lease = begun(store)
        kept = store.journal(lease)
        started(kept)
        for number in range(350):
            kept.log(line(f"line {number}", node=f"demo/{number % 2}", host=f"h{number % 5}"))
            if number % 70 == 0:
                await asyncio.sleep(0)
        await kept.close()
        return run.id

    id = asyncio.run(scenario())

    found = store.log_lines(id)
    assert [(one.seq, one.text) for one in found] == [(n + 1, f"line {n}") for n in range(350)]
    assert store.log_lines(id, after=348) == found[348:]
    assert store.log_lines(id, limit=3) == found[:3]
    assert [one.seq for one in store.log_lines(id, node="demo/1", host="h0", limit=2)] == [6, 16]


def test_log_line_of_any_bytes_is_kept(store: Store) -> None:
    texts = ["nul \x00 inside", "half \udcff character", "中文 🌳", ""]

    async def scenario() -> str:
        run, lease = begun(store)
        kept = store.journal(lease)
        started(kept)
        for text in texts:
            kept.log(line(text))
        await kept.close()
        return run.id

    id = asyncio.run(scenario())

    texts[1] = "half ? character"
    assert [one.text for one in store.log_lines(id)] == texts


def test_log_lines_are_left_out_and_counted_when_the_disk_is_too_slow(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubexm.store.journal.WAITING_LINES", 200)

    async def scenario() -> str:
        run, lease = begun(store)
        kept = store.journal(lease)
        listener = started(kept)
        with write_lock(path):
            for number in range(500):
                kept.log(line(f"line {number}"))
                await asyncio.sleep(0)
        # What was waiting is written before this record is, and then there is room again.
        await listener.until_durable(kept.append(done(), urgent=True))
        kept.log(line("last"))
        await kept.close()
        return run.id

    found = [one.text for one in store.log_lines(asyncio.run(scenario()))]

    assert found[:200] == [f"line {number}" for number in range(200)]
    assert found[200:] == ["300 lines were left out: the disk was too slow", "last"]


def test_value_that_is_no_json_is_refused_where_it_is_appended(store: Store, path: Path) -> None:
    async def scenario() -> None:
        _run, lease = begun(store)
        kept = store.journal(lease)
        listener = started(kept)
        with pytest.raises(TypeError):
            kept.append(done(values=(ProducedValue("k", "h1", object()),)), urgent=True)
        await listener.until_durable(kept.append(done(), urgent=True))
        await kept.close()

    asyncio.run(scenario())

    assert len(stored_numbers(path)) == 1
