"""Processes that are killed, frozen or starved lose nothing they were promised."""

import asyncio
import getpass
import socket
import time
from pathlib import Path

import pytest
from tests.store.scenario import DOCUMENTS, done, started, stored_numbers
from tests.store.workers import worker

from kubexm.errors import LockHeld
from kubexm.store import Store


async def append_one(store: Store, run: str) -> int:
    with store.acquire(run) as lease:
        kept = store.journal(lease)
        listener = started(kept)
        number = kept.append(done("after"), urgent=True)
        await listener.until_durable(number)
        await kept.close()
        return lease.token


def test_killed_at_any_instant_it_loses_nothing_that_was_reported_durable(
    store: Store, path: Path
) -> None:
    run = store.create_run("demo", DOCUMENTS)
    promised = token = 0
    for turns in (7, 40):
        with worker(path, run.id, "stream") as writer:
            # Each takes over at once: its predecessor is dead, though its lease has not ended.
            ready, number = writer.hear()
            assert (ready, int(number) > token) == ("ready", True)
            token = int(number)
            for _ in range(turns):
                promised = int(writer.hear()[1])
            writer.kill()
            while words := writer.hear():
                promised = int(words[1])
        numbers = stored_numbers(path)
        assert numbers == list(range(1, len(numbers) + 1))
        assert promised <= max(numbers, default=0)

    assert promised > 0
    assert len(store.records(run.id)) == len(stored_numbers(path))


def test_killed_holder_is_taken_over_at_once(store: Store, path: Path) -> None:
    run, other = (store.create_run("demo", DOCUMENTS) for _ in range(2))
    with worker(path, run.id, "obey") as holder:
        _ready, first = holder.hear()
        with pytest.raises(LockHeld):
            store.acquire(other.id)
        holder.kill()

        zombie = store.run(run.id).holder
        with store.acquire(other.id) as lease:
            token = lease.token

    assert zombie is None
    assert token > int(first)


def test_lock_is_refused_with_who_holds_it_and_since_when(store: Store, path: Path) -> None:
    run, other = (store.create_run("demo", DOCUMENTS) for _ in range(2))
    with worker(path, run.id, "obey") as holder:
        holder.hear()
        with pytest.raises(LockHeld) as refused:
            store.acquire(other.id)
        process = store.run(run.id).holder

    text = str(refused.value)
    assert process is not None
    assert f"task {run.id} " in text
    assert f"({getpass.getuser()}@{socket.gethostname()}, pid {holder.process.pid})" in text
    assert f"since {process.since:%Y-%m-%d %H:%M:%S} UTC" in text
    assert f"kubexm task cancel {run.id}" in refused.value.hint


def test_frozen_holder_that_wakes_after_its_lease_can_not_write(store: Store, path: Path) -> None:
    run = store.create_run("demo", DOCUMENTS)
    with worker(path, run.id, "obey") as holder:
        _ready, first = holder.hear()
        holder.tell()
        assert holder.hear() == ["durable"]
        holder.freeze()
        # A minute later its lease has ended, and it gives no sign of life.
        with Store.open(path, clock=lambda: time.time() + 60) as later:
            assert asyncio.run(append_one(later, run.id)) > int(first)

        holder.wake()
        holder.tell()
        assert holder.hear() == ["broken", "lease-lost"]
        assert holder.hear() == ["lost", "True"]

    hosts = [record.host for _number, record in store.records(run.id)]  # type: ignore[union-attr]
    assert hosts == ["obeyed", "after"]


def test_frozen_holder_goes_on_if_nobody_took_over(store: Store, path: Path) -> None:
    run = store.create_run("demo", DOCUMENTS)
    with worker(path, run.id, "obey") as holder:
        holder.hear()
        holder.freeze()
        holder.wake()
        holder.tell()
        assert holder.hear() == ["durable"]


def test_cancel_reaches_the_process_that_works_on_the_run(store: Store, path: Path) -> None:
    run, other = (store.create_run("demo", DOCUMENTS) for _ in range(2))
    with worker(path, run.id, "obey") as holder:
        holder.hear()
        nobody = store.request_cancel(other.id)
        told = store.request_cancel(run.id)

        assert holder.hear() == ["cancelled"]

    assert nobody is None
    assert told is not None
    assert told.process.pid == holder.process.pid
    assert store.request_cancel(run.id) is None


def test_file_that_may_not_grow_breaks_the_journal_and_keeps_what_was_promised(
    store: Store, path: Path
) -> None:
    run = store.create_run("demo", DOCUMENTS)
    said = []
    with worker(path, run.id, "starve") as writer:
        while words := writer.hear():
            said.append(words)
        status = writer.process.wait()

    numbers = stored_numbers(path)
    assert status == 0
    assert said[-1][:2] == ["broken", "store-unusable"]
    assert str(path) in said[-1][2]
    assert "file size limit" in " ".join(said[-1])
    assert numbers == list(range(1, len(numbers) + 1))
    assert int(said[-2][1]) <= numbers[-1]
    asyncio.run(append_one(store, run.id))
