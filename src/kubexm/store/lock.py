"""One run per name at a time: who holds a name, and who may have it next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from kubexm.db.database import Database
from kubexm.errors import LockHeld
from kubexm.store.lease import Lease
from kubexm.store.process import Process

_TAKE = """
    INSERT INTO lock (
        name, token, run, machine, boot, pid, pid_started, user, host, since, lease_until, cancel
    ) VALUES (
        :name, :token, :run, :machine, :boot, :pid, :pid_started, :user, :host, :since,
        :lease_until, FALSE
    ) ON CONFLICT (name) DO UPDATE SET
        token = excluded.token, run = excluded.run, machine = excluded.machine,
        boot = excluded.boot, pid = excluded.pid, pid_started = excluded.pid_started,
        user = excluded.user, host = excluded.host, since = excluded.since,
        lease_until = excluded.lease_until, cancel = excluded.cancel
"""


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """Who works on a name, and since when."""

    run: str
    process: Process
    since: datetime

    def __str__(self) -> str:
        return f"task {self.run} ({self.process}) since {self.since:%Y-%m-%d %H:%M:%S} UTC"


def acquire(
    database: Database, name: str, id: str, *, seconds: float, clock: Callable[[], float]
) -> Lease:
    """Take the lock of a name for a run, or raise `LockHeld` with who has it."""
    with database.writing() as connection:
        now = clock()
        refuse_if_held(connection, name, now)
        number, token = take(connection, name, id, seconds=seconds, now=now)
    return Lease(
        database, name=name, run=id, number=number, token=token, seconds=seconds, clock=clock
    )


def refuse_if_held(connection: sqlite3.Connection, name: str, now: float) -> None:
    """Raise `LockHeld` if a live process works on this name."""
    row = _row(connection, name)
    if row is not None and (holder := live_holder(row, now)) is not None:
        raise _held(name, holder)


def take(
    connection: sqlite3.Connection, name: str, id: str, *, seconds: float, now: float
) -> tuple[int, int]:
    """Give a free name to a run; the run's number and its token."""
    row = _row(connection, name)
    number: int = connection.execute("SELECT number FROM run WHERE id = ?", (id,)).fetchone()[0]
    # Hosts compare tokens of all stores there ever were, so a new store must not begin at 1.
    token = max(int(now * 1000), 0 if row is None else row["token"] + 1)
    _put(connection, name, token=token, run=number, now=now, seconds=seconds)
    return number, token


def request_cancel(database: Database, name: str, id: str, now: float) -> Holder | None:
    """Tell whoever works on this run to stop; None if nobody does."""
    with database.writing() as connection:
        row = _row(connection, name)
        holder = None if row is None else live_holder(row, now)
        if holder is None or holder.run != id:
            return None
        connection.execute("UPDATE lock SET cancel = TRUE WHERE name = ?", (name,))
    return holder


def live_holder(row: sqlite3.Row, now: float) -> Holder | None:
    """Who holds this lock; None if it is free, or its holder is dead or has not renewed it."""
    if row["run"] is None or now >= row["lease_until"]:
        return None
    process = Process(*(row[field] for field in Process.__struct_fields__))
    if process.is_dead:
        return None
    return Holder(row["run_id"], process, datetime.fromtimestamp(row["since"], UTC))


def _row(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    chosen = (
        "SELECT lock.*, run.id AS run_id FROM lock LEFT JOIN run ON lock.run = run.number"
        " WHERE lock.name = ?"
    )
    row: sqlite3.Row | None = connection.execute(chosen, (name,)).fetchone()
    return row


def _put(
    connection: sqlite3.Connection,
    name: str,
    *,
    token: int,
    run: int,
    now: float,
    seconds: float,
) -> None:
    values = {
        "name": name,
        **msgspec.structs.asdict(Process.current()),
        "token": token,
        "run": run,
        "since": now,
        "lease_until": now + seconds,
    }
    connection.execute(_TAKE, values)


def _held(name: str, holder: Holder) -> LockHeld:
    return LockHeld(
        f"`{name}` is being worked on by {holder}",
        hint=f"wait until it has ended (kubexm task show {holder.run}),"
        f" or stop it: kubexm task cancel {holder.run}",
    )
