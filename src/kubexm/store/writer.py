"""The journal's hot path: a few fixed statements on a bare connection, all fenced.

A batch travels as one parameter, a JSON array of encoded rows, and a statement alone is a
transaction. So the thread that commits lets go of the interpreter a few times per batch and
not a few times per row; beside a busy event loop each time can cost it milliseconds.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from kubexm.db.current import RUN
from kubexm.store.codec import encode
from kubexm.store.lease import Lease, taken_over

Statement = tuple[str, tuple[Any, ...]]

# Without the lease the fence lets no row through.
_FENCED = "WHERE EXISTS (SELECT 1 FROM lock WHERE name = ? AND token = ? AND run = ?)"
_ROWS = "FROM json_each(?) " + _FENCED
_RECORD = "INSERT INTO record (token, place, body) SELECT ?, ?, ? " + _FENCED
_RECORDS = "INSERT INTO record (token, place, body) SELECT ?, ? + key, CAST(value AS BLOB) " + _ROWS
_LINES = "INSERT INTO log_line (place, body) SELECT ? + key, CAST(value AS BLOB) " + _ROWS

KEEP_PRIOR = (
    "INSERT INTO ledger (name, host, resource, at, run, prior) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT DO NOTHING"
)
DROP_PRIOR = "DELETE FROM ledger WHERE name = ? AND host = ? AND resource = ?"
TURN_BACK = "UPDATE run SET direction = 'back' WHERE number = ?"


class Batch:
    """What is written in one transaction: encoded rows with consecutive numbers."""

    __slots__ = ("asides", "last", "last_line", "lines", "records")

    def __init__(self, last: int, last_line: int) -> None:
        self.records: list[bytes] = []
        self.lines: list[bytes] = []
        self.asides: list[Statement] = []
        self.last = last
        """The number of the last record, here or before."""
        self.last_line = last_line
        """The number of the last log line, here or before."""

    def __bool__(self) -> bool:
        return bool(self.records or self.lines)

    def extend(self, later: Batch) -> None:
        """Write what came right after this along with it."""
        self.records += later.records
        self.lines += later.lines
        self.asides += later.asides
        self.last, self.last_line = later.last, later.last_line


class FencedWriter:
    """Writes batches, each whole or not at all, for as long as the lease is ours."""

    def __init__(self, connection: sqlite3.Connection, lease: Lease) -> None:
        self.connection = connection
        self._cursor = connection.cursor()
        self._lease = lease
        self._fence = (lease.name, lease.token, lease.number)
        self._zero = lease.number * RUN

    def last_record(self) -> int:
        """The number of the run's last record; 0 if there is none."""
        return self._last("SELECT max(place) FROM record WHERE place BETWEEN ? AND ?")

    def last_line(self) -> int:
        """The number of the run's last log line; 0 if there is none."""
        return self._last("SELECT max(place) FROM log_line WHERE place BETWEEN ? AND ?")

    def write(self, batch: Batch) -> None:
        """Commit; nothing was written if this raises `LeaseLost` or an error of the driver."""
        if batch.lines or batch.asides:
            self._transact(batch)
        else:
            self.insert(batch.records, batch.last)

    def insert(self, records: list[bytes], last: int) -> None:
        """The same for records alone, the number of the last given."""
        token, place = self._lease.token, self._zero + last
        if len(records) == 1:
            self._insert(_RECORD, (token, place, records[0], *self._fence))
            return
        first = place - len(records) + 1
        self._insert(_RECORDS, (token, first, _array(records), *self._fence))

    def close(self) -> None:
        self.connection.close()

    def _last(self, query: str) -> int:
        mine = (self._zero, self._zero + RUN - 1)
        found: int | None = self._cursor.execute(query, mine).fetchone()[0]
        return found - self._zero if found is not None else 0

    def _transact(self, batch: Batch) -> None:
        self._cursor.execute("BEGIN IMMEDIATE")
        try:
            if batch.records:
                self.insert(batch.records, batch.last)
            if batch.lines:
                self._insert_lines(batch)
            for sql, parameters in batch.asides:
                self._cursor.execute(sql, parameters)
            self._cursor.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self._cursor.execute("ROLLBACK")
            raise

    def _insert_lines(self, batch: Batch) -> None:
        first = self._zero + batch.last_line - len(batch.lines) + 1
        self._insert(_LINES, (first, _array(batch.lines), *self._fence))

    def _insert(self, sql: str, parameters: tuple[Any, ...]) -> None:
        if self._cursor.execute(sql, parameters).rowcount == 0:
            raise taken_over(self._lease.run)


def _array(rows: list[bytes]) -> str:
    # As strings: SQLite then hands each on as it is, however deep and wherever it came from.
    return encode([row.decode() for row in rows]).decode()
