"""Opens a database with the schema this version knows, bringing an older one up to it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

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
    # Alembic takes longer to load than most commands take to run: only who needs it waits.
    from kubexm.db import migration  # noqa: PLC0415

    with _alone(database.path.parent), database.writing() as connection:
        if revision(connection, database.path) != REVISIONS[-1]:
            migration.upgrade(connection)


def revision(connection: Connection, path: Path) -> str | None:
    """The schema of a database, one that we know; None if there is nothing in it."""
    if not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one():
        return None
    if connection.exec_driver_sql("PRAGMA application_id").scalar_one() != APPLICATION_ID:
        raise StoreUnusable(
            "this is the database of another program",
            where=str(path),
            hint="set KUBEXM_HOME to another directory",
        )
    found: str = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
    if found not in REVISIONS:
        raise _newer(found, path)
    return found


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
