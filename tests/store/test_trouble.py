"""A disk that is full, read-only or damaged gives a clear error, and nothing half-written."""

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.scenario import DOCUMENTS, begun, done, journal, started, stored_numbers

from kubexm.errors import StoreUnusable
from kubexm.plan.events import LogLine
from kubexm.store import Store


def mount(*arguments: str | Path) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"can't mount here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of two megabytes."""
    (tmp_path / "disk").mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path / "disk")
    try:
        yield tmp_path / "disk"
    finally:
        subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


@pytest.fixture
def read_only(path: Path, tmp_path: Path) -> Iterator[Path]:
    """The state directory, where nothing can be written."""
    if os.getuid() != 0:
        path.chmod(0o400)
        path.parent.chmod(0o500)
        yield path
        path.parent.chmod(0o700)
        return
    view = tmp_path / "view"
    view.mkdir()
    mount("--bind", path.parent, view)
    try:
        mount("-o", "remount,bind,ro", view)
        yield view / path.name
    finally:
        subprocess.run(["umount", "--lazy", view], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on this disk; the file that takes it all."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    return filler


def create_many(store: Store) -> None:
    for _ in range(1000):
        store.create_run("demo", DOCUMENTS)


async def write_until_broken(store: Store, path: Path, *, settles: bool) -> list[int]:
    """What was durable when the disk was full, and stays so."""
    _run, lease = begun(store)
    with lease:
        kept = journal(path, lease)
        listener = started(kept)
        kept.append(done("first"), urgent=True)
        await listener.until_durable(1)
        filler = fill(path.parent)
        number = 1
        # There may be room left in the file itself.
        while await listener.until_known(number):
            number = kept.append(done("x" * 50_000), urgent=True)
            if settles:
                kept.settle()
        kept.append(done("dropped"), urgent=True)
        kept.log(LogLine(at=1.0, node="a", host="h", stream="stdout", text="dropped"))
        await kept.close()
        filler.unlink()
    (error,) = listener.broken
    assert isinstance(error, StoreUnusable)
    assert "the disk is full" in str(error)
    assert str(path) in str(error)
    assert "free some space" in error.hint
    return listener.durable


@pytest.mark.parametrize("settles", [True, False])
def test_full_disk_breaks_the_journal_once_and_keeps_what_was_durable(
    small_disk: Path, settles: bool
) -> None:
    path = small_disk / "kubexm.db"
    with Store.open(path) as store:
        durable = asyncio.run(write_until_broken(store, path, settles=settles))
        stored = stored_numbers(path)

        assert stored == list(range(1, durable[-1] + 1))
        assert len(store.records(store.runs()[0].id)) == len(stored)
        assert begun(store)[1].token > 0


def test_run_that_does_not_fit_on_the_disk_is_not_there_at_all(small_disk: Path) -> None:
    path = small_disk / "kubexm.db"
    with Store.open(path) as store:
        filler = fill(small_disk)
        with pytest.raises(StoreUnusable, match="the disk is full"):
            create_many(store)
        made = [run.id for run in store.runs(limit=2000)]
        filler.unlink()

        assert all(store.documents(id) == DOCUMENTS for id in made)


def test_database_that_can_not_be_made_on_a_full_disk_says_so(small_disk: Path) -> None:
    fill(small_disk)

    with pytest.raises(StoreUnusable, match="the disk is full"):
        Store.open(small_disk / "kubexm.db")


def test_read_only_database_is_refused(path: Path, request: pytest.FixtureRequest) -> None:
    with Store.open(path) as store:
        store.create_run("demo", DOCUMENTS)
    read_only: Path = request.getfixturevalue("read_only")

    with pytest.raises(StoreUnusable) as refused, Store.open(read_only) as store:
        store.create_run("demo", DOCUMENTS)

    assert "read-only" in str(refused.value) or "can't be opened" in str(refused.value)
    assert refused.value.where == str(read_only)
    assert "writ" in refused.value.hint


def test_database_that_becomes_read_only_breaks_the_journal(
    path: Path, request: pytest.FixtureRequest
) -> None:
    async def scenario(store: Store, view: Path) -> BaseException:
        _run, lease = begun(store)
        kept = journal(view, lease)
        listener = started(kept)
        kept.append(done(), urgent=True)
        error = await listener.until_broken()
        await kept.close()
        return error

    with Store.open(path) as store:
        store.create_run("other", DOCUMENTS)
        view: Path = request.getfixturevalue("read_only")
        if os.getuid() != 0:
            pytest.skip("an open file stays writable for who opened it")
        error = asyncio.run(scenario(store, view))

    assert isinstance(error, StoreUnusable)
    assert "read-only" in str(error)
    assert stored_numbers(path) == []


def test_damaged_database_is_told_from_an_empty_one(path: Path) -> None:
    with Store.open(path) as store:
        for _ in range(100):
            store.create_run("demo", DOCUMENTS)
    whole = path.read_bytes()
    # Everything but the first pages, where the schema is.
    keep = 4 * 4096
    path.write_bytes(whole[:keep] + b"\x5a" * (len(whole) - keep))

    with (
        pytest.raises(StoreUnusable, match="the database is damaged") as refused,
        Store.open(path) as store,
    ):
        store.runs()

    assert refused.value.where == str(path)
    assert "backup" in refused.value.hint


def test_record_that_can_not_be_read_names_its_run(store: Store, path: Path) -> None:
    run, _lease = begun(store)
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO record VALUES (4294967297, 1, ?)", (b'{"type":"FromTheFuture"}',)
    )
    connection.commit()
    connection.close()

    with pytest.raises(StoreUnusable, match=run.id) as refused:
        store.state(run.id)

    assert "use the kubexm that wrote it" in refused.value.hint
