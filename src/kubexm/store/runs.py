"""The rows of runs: what a list shows, and the documents a run was made from."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, Row, Select, func, insert, select, update

from kubexm.common.nearest import did_you_mean
from kubexm.db.tables import document, lock, run
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
    connection: Connection,
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
        insert(run).values(
            id=id,
            name=name,
            status="Pending",
            direction="forward",
            selected=selected,
            degraded=False,
            message="",
            world=world,
            created=now,
        )
    )
    connection.execute(insert(document).values(run=number(connection, id), **encoded))
    return id


def _new_id(connection: Connection, now: float) -> str:
    """Sortable, short enough to type, and not there yet."""
    moment = f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}"
    while True:
        id = f"{moment}-{secrets.token_hex(2)}"
        if connection.execute(select(run.c.number).where(run.c.id == id)).first() is None:
            return id


def get(connection: Connection, id: str, now: float) -> Run:
    """The run with this id, or `UnknownTask`."""
    row = connection.execute(_summaries().where(run.c.id == id)).one_or_none()
    if row is None:
        raise _unknown(connection, id)
    return _summary(row, now)


def number(connection: Connection, id: str) -> int:
    """What other tables know the run by, or `UnknownTask`."""
    row = connection.execute(select(run.c.number).where(run.c.id == id)).one_or_none()
    if row is None:
        raise _unknown(connection, id)
    found: int = row.number
    return found


def newest(connection: Connection, name: str | None, limit: int, now: float) -> list[Run]:
    """The latest runs, newest first, of one name or of all."""
    chosen = _summaries().order_by(run.c.number.desc()).limit(limit)
    if name is not None:
        chosen = chosen.where(run.c.name == name)
    return [_summary(row, now) for row in connection.execute(chosen)]


def later(connection: Connection, id: str) -> Sequence[str]:
    """The ids of the runs of the same name that were made after this one, newest first."""
    this = number(connection, id)
    name = select(run.c.name).where(run.c.number == this).scalar_subquery()
    chosen = select(run.c.id).where(run.c.name == name, run.c.number > this)
    return connection.execute(chosen.order_by(run.c.number.desc())).scalars().all()


def documents(connection: Connection, id: str) -> Documents:
    """What the run was made from."""
    columns = (document.c.graph, document.c.spec, document.c.options)
    chosen = select(*columns).where(document.c.run == number(connection, id))
    graph, spec, options = connection.execute(chosen).one()
    return Documents(codec.decode(graph), spec, options)


def replace_documents(connection: Connection, lease: Lease, encoded: Encoded) -> None:
    """Give the run a corrected plan."""
    lease.check(connection)
    chosen = update(document).where(document.c.run == lease.number)
    connection.execute(chosen.values(**encoded))


def begin(connection: Connection, lease: Lease, now: float) -> None:
    """Mark the run as under way; it started when it was first begun."""
    started = func.coalesce(run.c.started, now)
    change(connection, lease, status="Running", started=started, ended=None, message="")


def change(connection: Connection, lease: Lease, **values: Any) -> None:
    """Set columns of the run's row, if the lease still holds."""
    lease.check(connection)
    connection.execute(update(run).where(run.c.number == lease.number).values(**values))


def _summaries() -> Select[Any]:
    holder = [column for column in lock.c if column.name not in ("name", "token", "cancel")]
    joined = run.outerjoin(lock, lock.c.run == run.c.number)
    return select(run, run.c.id.label("run_id"), *holder).select_from(joined)


def _summary(row: Row[Any], now: float) -> Run:
    return Run(
        id=row.id,
        name=row.name,
        status=row.status,
        direction=row.direction,
        created=datetime.fromtimestamp(row.created, UTC),
        started=_moment(row.started),
        ended=_moment(row.ended),
        message=row.message,
        selected=row.selected,
        degraded=row.degraded,
        world=row.world,
        holder=live_holder(row, now),
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _unknown(connection: Connection, id: str) -> UnknownTask:
    known = connection.execute(select(run.c.id).order_by(run.c.number.desc()).limit(1000))
    return UnknownTask(f"there is no task `{id}`", hint=did_you_mean(id, known.scalars()))
