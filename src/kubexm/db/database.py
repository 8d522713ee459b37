"""One SQLite file, opened the only way we open it: durable, locked early, ours alone."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from kubexm.db.failures import explained, is_busy
from kubexm.db.filesystems import network_filesystem
from kubexm.errors import StoreUnusable

BUSY = 30.0
"""Seconds to wait for another writer before giving up."""


class Database:
    """A database that is open; many threads and processes may use the same file."""

    def __init__(self, path: Path, *, busy: float = BUSY) -> None:
        self.path = path
        self._busy = busy
        self._idle: list[sqlite3.Connection] = []

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A consistent view; neither waits for writers nor holds them up."""
        with explained(self.path), self._lent() as connection:
            connection.execute("BEGIN DEFERRED")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it, or nothing if anything is raised."""
        with explained(self.path), self._lent() as connection:
            # A transaction that takes the write lock late is refused at once when another was
            # faster, whatever the patience; so writers take it first.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.commit()
            finally:
                connection.rollback()  # which is nothing after a commit

    def twin(self, *, busy: float) -> Database:
        """The same file through connections of its own, with another patience."""
        return Database(self.path, busy=busy)

    def driver(self, *, busy: float) -> sqlite3.Connection:
        """A bare connection in autocommit mode, to be used by one thread at a time."""
        with explained(self.path):
            return _connect(self.path, busy)

    def close(self) -> None:
        """Close all connections that `reading` and `writing` have opened."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _lent(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else uses meanwhile."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _connect(self.path, self._busy)
            connection.row_factory = sqlite3.Row
        try:
            yield connection
        finally:
            self._idle.append(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def prepare_file(path: Path) -> None:
    """Make sure of a file that only its owner can read, on a disk of this machine."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_network(path.parent)
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnusable(
            f"the database can't be created ({error.strerror})",
            where=str(path),
            hint="check the directory, its owner and its mode, or set KUBEXM_HOME to another",
        ) from error


def _refuse_network(directory: Path) -> None:
    if (kind := network_filesystem(directory)) is not None:
        raise StoreUnusable(
            f"this directory is on a network file system ({kind}), where locks can't be relied on",
            where=str(directory),
            hint="set KUBEXM_HOME to a directory on a local disk",
        )


def _connect(path: Path, busy: float) -> sqlite3.Connection:
    # No isolation level: transactions begin when we say so, not when the driver guesses.
    connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    try:
        _keep_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA busy_timeout = {int(busy * 1000)}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _keep_write_ahead_log(connection: sqlite3.Connection) -> None:
    # Where two processes switch a new file at once, SQLite refuses one of them without waiting.
    until = time.monotonic() + BUSY
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(0.005)
        else:
            return
