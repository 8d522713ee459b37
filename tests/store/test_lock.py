"""One run per name at a time; who lost the right to write can't write."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.store.scenario import DOCUMENTS, begun, done, journal, started, stored_numbers

from kubexm.db.database import Database
from kubexm.errors import LeaseLost, LockHeld
from kubexm.plan.events import LogLine
from kubexm.plan.records import Reopened
from kubexm.store import Process, Store
from kubexm.store.lease import elapsed


def unexpected(*reason: object) -> None:
    raise AssertionError(reason)


def test_second_run_of_a_name_is_refused_until_the_first_has_ended(store: Store) -> None:
    _run, lease = begun(store)
    with pytest.raises(LockHeld):
        begun(store)
    _other, elsewhere = begun(store, "other")
    lease.release()
    _next, again = begun(store)

    assert again.token > lease.token
    assert elsewhere.token > 0


def test_lease_that_was_not_renewed_is_taken_over_with_a_greater_token(path: Path) -> None:
    now = 1000.0
    with Store.open(path, clock=lambda: now) as store:
        run, lease = begun(store)
        now += 14.9
        with pytest.raises(LockHeld):
            store.acquire(run.id)
        now += 0.2

        assert store.run(run.id).holder is None
        assert store.acquire(run.id).token > lease.token


def test_tokens_grow_with_every_holder_and_from_one_store_to_the_next(tmp_path: Path) -> None:
    now = 1000.0
    with Store.open(tmp_path / "old.db", clock=lambda: now) as store:
        run, lease = begun(store)
        tokens = [lease.token]
        for _ in range(3):
            lease.release()
            lease = store.acquire(run.id)
            tokens.append(lease.token)
    now += 60
    with Store.open(tmp_path / "new.db", clock=lambda: now) as store:
        tokens.append(begun(store)[1].token)

    assert tokens == [1_000_000, 1_000_001, 1_000_002, 1_000_003, 1_060_000]


@pytest.mark.parametrize("settles", [True, False])
def test_who_was_taken_over_writes_nothing_and_is_told_once(path: Path, settles: bool) -> None:
    now = 1000.0

    async def scenario(store: Store) -> None:
        nonlocal now
        run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        kept.append(done("before"), urgent=True)
        assert kept.settle()
        now += 60
        store.acquire(run.id)

        for number in (2, 3):
            assert kept.append(done(), urgent=True) == number
            assert not (settles and kept.settle())
            assert isinstance(await listener.until_broken(), LeaseLost)
        await kept.close()

        assert listener.durable == [1]
        assert len(listener.broken) == 1
        assert stored_numbers(path) == [1]

    with Store.open(path, clock=lambda: now) as store:
        asyncio.run(scenario(store))


def test_log_line_of_who_was_taken_over_is_not_kept(path: Path) -> None:
    now = 1000.0

    async def scenario(store: Store) -> str:
        nonlocal now
        run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        now += 60
        store.acquire(run.id)
        kept.log(LogLine(at=2.0, node="demo/a", host="h1", stream="stdout", text="too late"))
        await kept.close()
        assert [type(error) for error in listener.broken] == [LeaseLost]
        return run.id

    with Store.open(path, clock=lambda: now) as store:
        assert store.log_lines(asyncio.run(scenario(store))) == []


def test_who_was_taken_over_can_not_end_the_run_nor_free_its_lock(path: Path) -> None:
    now = 1000.0
    with Store.open(path, clock=lambda: now) as store:
        run, lost = begun(store)
        now += 60
        store.acquire(run.id)

        with pytest.raises(LeaseLost, match="taken over") as refused:
            store.finish(lost, "Success")
        with pytest.raises(LeaseLost):
            store.begin(lost)
        with pytest.raises(LeaseLost):
            store.reopen(lost, Reopened(at=1.0, units=()), DOCUMENTS)
        lost.release()

        assert f"kubexm task show {run.id}" in refused.value.hint
        assert store.run(run.id).status == "Pending"
        assert store.run(run.id).holder is not None


def test_journal_that_is_abandoned_takes_no_more_and_says_so_once(path: Path) -> None:
    async def scenario(store: Store) -> tuple[list[BaseException], list[BaseException]]:
        _run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        kept.append(done("before"), urgent=True)
        kept.settle()
        for text in ("not renewed", "taken over"):
            kept.abandon(LeaseLost(text))
        kept.append(done("after"), urgent=True)
        await kept.close()

        early = journal(path, lease)
        early.abandon(LeaseLost("before it began"))
        other = started(early)
        await other.until_broken()
        await early.close()
        return listener.broken, other.broken

    with Store.open(path) as store:
        broken, early = asyncio.run(scenario(store))

    assert [str(error) for error in broken] == ["not renewed"]
    assert [str(error) for error in early] == ["before it began"]
    assert stored_numbers(path) == [1]


def test_nothing_is_written_after_the_lease_was_given_back(store: Store, path: Path) -> None:
    async def scenario() -> None:
        _run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        lease.release()
        kept.append(done(), urgent=True)
        assert isinstance(await listener.until_broken(), LeaseLost)
        await kept.close()

    asyncio.run(scenario())

    assert stored_numbers(path) == []


def test_lease_is_renewed_for_as_long_as_it_is_kept(path: Path) -> None:
    renewed = threading.Semaphore(0)

    def clock() -> float:
        if threading.current_thread().name == "lease":
            renewed.release()
        return time.time()

    with Store.open(path, clock=clock, lease=0.3) as store:
        _run, lease = begun(store)
        first = lease.deadline
        lease.keep(unexpected, unexpected)
        for _ in range(3):
            assert renewed.acquire(timeout=10)
        lease.release()

        assert lease.deadline > first


def test_lease_that_had_ended_is_renewed_if_nobody_took_over(path: Path) -> None:
    renewed = threading.Event()

    def clock() -> float:
        if threading.current_thread().name == "lease":
            renewed.set()
        return 1000.0

    with Store.open(path, clock=clock, lease=0.3) as store:
        _run, lease = begun(store)
        lease.deadline = elapsed() - 100
        lease.keep(unexpected, unexpected)
        assert renewed.wait(10)
        lease.release()

        assert lease.deadline > elapsed() - 100


def test_holder_that_was_taken_over_is_told_so(path: Path) -> None:
    told: list[LeaseLost] = []
    lost = threading.Event()

    def on_lost(error: LeaseLost) -> None:
        told.append(error)
        lost.set()

    now = 1000.0
    with Store.open(path, clock=lambda: now) as store:
        run, lease = begun(store)
        now += 60
        store.acquire(run.id)
        lease.keep(on_lost, unexpected)
        assert lost.wait(10)
        lease.release()

    assert "was taken over by another process" in str(told[0])


def test_holder_that_can_not_renew_is_told_why_and_how_to_go_on(path: Path) -> None:
    told: list[LeaseLost] = []
    lost = threading.Event()

    def on_lost(error: LeaseLost) -> None:
        told.append(error)
        lost.set()

    with Store.open(path, lease=1.5) as store, Database(path) as other:
        run, lease = begun(store)
        with other.writing():
            lease.keep(on_lost, unexpected)
            assert lost.wait(10)
        lease.release()

    assert "could not be renewed in time" in str(told[0])
    assert f"kubexm task resume {run.id}" in told[0].hint


def test_holder_that_can_not_renew_is_told_while_a_fifth_of_its_lease_is_left(path: Path) -> None:
    told: list[float] = []
    lost = threading.Event()

    def on_lost(error: LeaseLost) -> None:
        told.append(lease.deadline - elapsed())
        lost.set()

    with Store.open(path, lease=5000.0) as store:
        _run, lease = begun(store)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("ALTER TABLE lock RENAME TO out_of_reach")
        lease.deadline = elapsed() + 990.0
        lease.keep(on_lost, unexpected)
        assert lost.wait(10)
        lease.release()

    assert told[0] > 0.0


def test_journal_that_can_not_write_gives_up_when_its_lease_has_ended(path: Path) -> None:
    async def scenario(store: Store, other: Database) -> BaseException:
        _run, lease = begun(store)
        kept = journal(path, lease)
        listener = started(kept)
        with other.writing():
            kept.append(done(), urgent=True)
            error = await listener.until_broken()
        await kept.close()
        return error

    with Store.open(path, lease=0.2) as store, Database(path) as other:
        error = asyncio.run(scenario(store, other))

    assert isinstance(error, LeaseLost)
    assert "until its lease ran out" in str(error)
    assert stored_numbers(path) == []


def test_cancel_that_was_asked_of_an_earlier_holder_is_not_meant_for_the_next(
    store: Store,
) -> None:
    run, lease = begun(store)
    assert store.request_cancel(run.id) is not None
    lease.release()

    with store.acquire(run.id) as again:
        asked = again._touch(store._database)

    assert not asked


class TestProcess:
    def test_running_process_is_not_dead(self) -> None:
        assert not Process.current().is_dead

    def test_process_is_dead_when_its_pid_is_free(self) -> None:
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            pass

        assert replace(Process.current(), pid=ended.pid).is_dead

    def test_process_is_dead_when_its_pid_is_in_new_hands(self) -> None:
        assert replace(Process.current(), pid_started=1).is_dead

    def test_nothing_is_certain_about_a_process_of_another_machine_or_boot(self) -> None:
        gone = replace(Process.current(), pid=2**22 + 1)

        assert gone.is_dead
        assert not replace(gone, machine="another").is_dead
        assert not replace(gone, boot="another").is_dead
        assert not replace(gone, boot="").is_dead

    def test_process_of_another_user_is_not_dead(self) -> None:
        # Every system has a first process; who is not root may not signal it.
        started = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19])

        assert not replace(Process.current(), pid=1, pid_started=started).is_dead

    def test_process_knows_itself(self) -> None:
        current = Process.current()

        assert current.pid == os.getpid()
        assert str(current) == f"{current.user}@{current.host}, pid {os.getpid()}"
