"""The rows of runs: what a list shows, and the documents a run was made from."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from kubexm.common.nearest import did_you_mean
from kubexm.errors import UnknownTask
from kubexm.plan import ExecutionGraph, codec
from kubexm.plan.result import Status
from kubexm.store.lease import Lease
from kubexm.store.lock import Holder, live_holder

Direction = Literal["forward", "back"]


class Documents(msgspec.Struct, frozen=True):
    """What a run was made from; the store does not look into `spec` and `options`."""

    graph: ExecutionGraph
    spec: bytes = b"null"
    options: bytes = b"null"


Encoded = dict[str, bytes]

_SUMMARIES = """
    SELECT
        run.*, run.id AS run_id, lock.run, lock.machine, lock.boot, lock.pid, lock.pid_started,
        lock.user, lock.host, lock.since, lock.lease_until
    FROM run LEFT JOIN lock ON lock.run = run.number
"""
_WITH_ID = _SUMMARIES + "WHERE run.id = ?"
_NEWEST_FIRST = " ORDER BY run.number DESC LIMIT :limit"
_NEWEST = _SUMMARIES + _NEWEST_FIRST
_NEWEST_OF_NAME = _SUMMARIES + "WHERE run.name = :name" + _NEWEST_FIRST


def encoded(documents: Documents) -> Encoded:
    """The documents as they are stored; a large graph takes a while, so not in a transaction."""
    graph = codec.encode(documents.graph)
    return {"graph": graph, "spec": documents.spec, "options": documents.options}


class Run(msgspec.Struct, frozen=True, rename="camel"):
    """One run at a glance; `holder` is the live process that works on it."""

    id: str
    name: str
    status: Status
    direction: Direction
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    message: str = ""
    selected: bool = False
    degraded: bool = False
    world: str | None = None
    holder: Holder | None = None

    @property
    def interrupted(self) -> bool:
        """Whether it was begun, has not ended, and nobody works on it."""
        return self.status == "Running" and self.holder is None


def create(
    connection: sqlite3.Connection,
    encoded: Encoded,
    *,
    name: str,
    selected: bool,
    world: str | None,
    now: float,
) -> str:
    """Add a run that has not begun; its id."""
    id = _new_id(connection, now)
    connection.execute(
        "INSERT INTO run (id, name, status, direction, selected, degraded, message, world, created)"
        " VALUES (?, ?, 'Pending', 'forward', ?, FALSE, '', ?, ?)",
        (id, name, selected, world, now),
    )
    connection.execute(
        "INSERT INTO document (run, graph, spec, options) VALUES (:run, :graph, :spec, :options)",
        {"run": number(connection, id), **encoded},
    )
    return id


def _new_id(connection: sqlite3.Connection, now: float) -> str:
    """Sortable, short enough to type, and not there yet."""
    moment = f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}"
    while True:
        id = f"{moment}-{secrets.token_hex(2)}"
        if _number(connection, id) is None:
            return id


def get(connection: sqlite3.Connection, id: str, now: float) -> Run:
    """The run with this id, or `UnknownTask`."""
    row = connection.execute(_WITH_ID, (id,)).fetchone()
    if row is None:
        raise _unknown(connection, id)
    return _summary(row, now)


def number(connection: sqlite3.Connection, id: str) -> int:
    """What other tables know the run by, or `UnknownTask`."""
    found = _number(connection, id)
    if found is None:
        raise _unknown(connection, id)
    return found


def _number(connection: sqlite3.Connection, id: str) -> int | None:
    row = connection.execute("SELECT number FROM run WHERE id = ?", (id,)).fetchone()
    return None if row is None else row["number"]


def newest(connection: sqlite3.Connection, name: str | None, limit: int, now: float) -> list[Run]:
    """The latest runs, newest first, of one name or of all."""
    chosen = _NEWEST if name is None else _NEWEST_OF_NAME
    rows = connection.execute(chosen, {"name": name, "limit": limit})
    return [_summary(row, now) for row in rows]


def later(connection: sqlite3.Connection, id: str) -> Sequence[str]:
    """The ids of the runs of the same name that were made after this one, newest first."""
    rows = connection.execute(
        "SELECT id FROM run WHERE number > :this"
        " AND name = (SELECT name FROM run WHERE number = :this) ORDER BY number DESC",
        {"this": number(connection, id)},
    )
    return [row["id"] for row in rows]


def documents(connection: sqlite3.Connection, id: str) -> Documents:
    """What the run was made from."""
    chosen = "SELECT graph, spec, options FROM document WHERE run = ?"
    graph, spec, options = connection.execute(chosen, (number(connection, id),)).fetchone()
    return Documents(codec.decode(graph), spec, options)


def options(connection: sqlite3.Connection, id: str) -> bytes:
    """How the run was to be carried out."""
    chosen = "SELECT options FROM document WHERE run = ?"
    found: bytes = connection.execute(chosen, (number(connection, id),)).fetchone()["options"]
    return found


def replace_documents(connection: sqlite3.Connection, lease: Lease, encoded: Encoded) -> None:
    """Give the run a corrected plan."""
    lease.check(connection)
    connection.execute(
        "UPDATE document SET graph = :graph, spec = :spec, options = :options WHERE run = :run",
        {"run": lease.number, **encoded},
    )


def begin(connection: sqlite3.Connection, lease: Lease, now: float) -> None:
    """Mark the run as under way; it started when it was first begun."""
    lease.check(connection)
    connection.execute(
        "UPDATE run SET status = 'Running', started = coalesce(started, ?), ended = NULL,"
        " message = '' WHERE number = ?",
        (now, lease.number),
    )


def turn(connection: sqlite3.Connection, lease: Lease, direction: Direction) -> None:
    """Say which way the run goes from here."""
    lease.check(connection)
    changed = "UPDATE run SET direction = ? WHERE number = ?"
    connection.execute(changed, (direction, lease.number))


def end(
    connection: sqlite3.Connection,
    lease: Lease,
    now: float,
    *,
    status: Status,
    message: str,
    degraded: bool,
) -> None:
    """Mark the run as ended."""
    lease.check(connection)
    connection.execute(
        "UPDATE run SET ended = ?, status = ?, message = ?, degraded = ? WHERE number = ?",
        (now, status, message, degraded, lease.number),
    )


def _summary(row: sqlite3.Row, now: float) -> Run:
    return Run(
        id=row["id"],
        name=row["name"],
        status=row["status"],
        direction=row["direction"],
        created=datetime.fromtimestamp(row["created"], UTC),
        started=_moment(row["started"]),
        ended=_moment(row["ended"]),
        message=row["message"],
        selected=bool(row["selected"]),
        degraded=bool(row["degraded"]),
        world=row["world"],
        holder=live_holder(row, now),
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _unknown(connection: sqlite3.Connection, id: str) -> UnknownTask:
    known = connection.execute("SELECT id FROM run ORDER BY number DESC LIMIT 1000")
    hint = did_you_mean(id, [row["id"] for row in known])
    return UnknownTask(f"there is no task `{id}`", hint=hint)
