"""A glance at a database leaves no trace of itself."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kubexm.db import migration
from kubexm.db.database import Database
from kubexm.db.glance import glance
from kubexm.db.schema import open_database
from kubexm.errors import NewerSchema, StoreUnusable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "kubexm.db"


def durations(connection: sqlite3.Connection | None) -> list[str]:
    assert connection is not None
    found = connection.execute("SELECT node FROM duration ORDER BY node")
    return [row[0] for row in found]


def add(database: Database, node: str) -> None:
    with database.writing() as connection:
        connection.execute(f"INSERT INTO duration VALUES ('demo', '{node}', 1.0, 1)")


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def test_of_a_database_that_nobody_has_open_no_file_is_made_or_changed(path: Path) -> None:
    with open_database(path) as database:
        add(database, "a")
    before = files(path)
    path.chmod(0o400)
    path.parent.chmod(0o500)

    with glance(path) as connection:
        found = durations(connection)
        during = files(path)

    path.parent.chmod(0o700)
    assert found == ["a"]
    assert during == files(path) == before


def test_of_a_database_in_use_all_that_is_committed_is_seen(path: Path) -> None:
    with open_database(path) as database:
        add(database, "a")
        names = files(path).keys()
        with database.writing() as writer:
            writer.execute("INSERT INTO duration VALUES ('demo', 'b', 1.0, 1)")
            with glance(path) as connection:
                assert durations(connection) == ["a"]

        assert files(path).keys() == names


def test_an_older_schema_is_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    with Database(path) as old, old.writing() as connection:
        migration.upgrade(connection, "0001")
    before = files(path)

    with glance(path) as connection:
        assert durations(connection) == []

    assert files(path) == before


def test_an_empty_file_holds_nothing(path: Path) -> None:
    path.parent.mkdir()
    path.touch()

    with glance(path) as connection:
        assert connection is None


def test_what_can_not_be_read_is_explained(path: Path) -> None:
    with pytest.raises(StoreUnusable, match="can't be opened"), glance(path):
        pass
    path.parent.mkdir()
    path.write_bytes(b"my diary\n" * 1000)
    with pytest.raises(StoreUnusable, match="not a database"), glance(path):
        pass


def test_a_newer_schema_is_refused(path: Path) -> None:
    with open_database(path) as database, database.writing() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(NewerSchema), glance(path):
        pass
