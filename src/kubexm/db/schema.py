"""Opens a database with the schema this version knows, bringing an older one up to it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubexm.db import current
from kubexm.db.database import BUSY, Database, prepare_file
from kubexm.errors import NewerSchema, StoreUnusable

REVISIONS = ("0001", "0002", "0003")
"""Every schema there ever was, oldest first; the last is the current one."""

APPLICATION_ID = 0x6B786D31
"""Tells a file of ours from the SQLite files of other programs."""


def open_database(path: Path) -> Database:
    """The database in this file, made or migrated first if need be."""
    prepare_file(path)
    database = Database(path)
    try:
        _ensure_current(database)
    except BaseException:
        database.close()
        raise
    return database


def _ensure_current(database: Database) -> None:
    with database.reading() as connection:
        if revision(connection, database.path) == REVISIONS[-1]:
            return
    with _alone(database.path.parent), database.writing() as connection:
        found = revision(connection, database.path)
        if found is None:
            _create(connection)
        elif found != REVISIONS[-1]:
            # Alembic takes longer to load than most commands take to run: only who needs it waits.
            from kubexm.db import migration  # noqa: PLC0415

            migration.upgrade(connection)


def _create(connection: sqlite3.Connection) -> None:
    for statement in current.STATEMENTS:
        connection.execute(statement)
    connection.execute("INSERT INTO alembic_version VALUES (?)", (REVISIONS[-1],))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def revision(connection: sqlite3.Connection, path: Path) -> str | None:
    """The schema of a database, one that we know; None if there is nothing in it."""
    if not _one(connection, "SELECT count(*) FROM sqlite_master"):
        return None
    if _one(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise StoreUnusable(
            "this is the database of another program",
            where=str(path),
            hint="set KUBEXM_HOME to another directory",
        )
    found: str = _one(connection, "SELECT version_num FROM alembic_version")
    if found not in REVISIONS:
        raise _newer(found, path)
    return found


def _one(connection: sqlite3.Connection, query: str) -> Any:
    """What a query that has one answer says."""
    return connection.execute(query).fetchone()[0]


def _newer(found: str, path: Path) -> NewerSchema:
    return NewerSchema(
        f"the database has schema `{found}`, this version knows schemas up to `{REVISIONS[-1]}`",
        where=str(path),
        hint="use the kubexm that wrote it or a newer one, or set KUBEXM_HOME to another place",
    )


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One process at a time makes or changes tables; the kernel frees the lock of a dead one."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _wait_for(handle, directory)
        yield
    finally:
        os.close(handle)


def _wait_for(handle: int, directory: Path) -> None:
    until = time.monotonic() + BUSY
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreUnusable(
                    "another process has been changing the tables for a long time",
                    where=str(directory),
                    hint="a kubexm may be suspended: `fuser -v` on the directory names it",
                ) from None
            time.sleep(0.02)
