"""Room in the write-ahead log: there when it can be had, and in nobody's way."""

import sqlite3
from pathlib import Path

import pytest

from kubexm.db import wal
from kubexm.db.database import Database, prepare_file
from kubexm.db.wal import ROOM, make_room


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare_file(tmp_path / "kubexm.db")
    return tmp_path / "kubexm.db"


def opened(path: Path) -> sqlite3.Connection:
    connection = Database(path).driver(busy=0)
    connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
    return connection


def log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def test_log_has_its_full_length_and_keeps_it(path: Path) -> None:
    connection = opened(path)
    make_room(connection, path)

    for number in range(50):
        connection.execute("INSERT INTO t VALUES (?)", (number,))

    assert log(path).stat().st_size == ROOM


def test_what_was_committed_before_and_after_is_found_in_a_copy_as_a_crash_leaves_it(
    path: Path, tmp_path: Path
) -> None:
    connection = opened(path)
    connection.execute("INSERT INTO t VALUES ('before')")
    make_room(connection, path)
    connection.execute("INSERT INTO t VALUES ('after')")
    crashed = tmp_path / "crashed.db"
    for file in (path, log(path)):
        file.with_name(file.name.replace("kubexm", "crashed")).write_bytes(file.read_bytes())

    found = sqlite3.connect(crashed).execute("SELECT x FROM t").fetchall()

    assert found == [("before",), ("after",)]


def test_somebody_who_writes_is_not_waited_for(path: Path) -> None:
    connection, other = opened(path), opened(path)
    other.execute("BEGIN IMMEDIATE")

    make_room(connection, path)

    assert log(path).stat().st_size < ROOM
    assert not connection.in_transaction


def test_disk_that_is_nearly_full_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = opened(path)
    before = log(path).stat().st_size
    monkeypatch.setattr(wal, "SPARE", 1 << 60)

    make_room(connection, path)

    assert log(path).stat().st_size == before
    connection.execute("INSERT INTO t VALUES (1)")
