"""What happened in runs and what is known from them: records, log lines, ledger, durations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, Table, bindparam, delete, func, insert, select

from kubexm.db.tables import RUN, duration, ledger, log_line, record
from kubexm.plan.history import Span
from kubexm.plan.records import AnyRecord, LedgerEntry, UnitDone, UnitIntended
from kubexm.store.codec import StoredLine, decode, decode_line, encode

_SAMPLES = 10
"""So many runs weigh on a learned duration; older ones fade."""


def records(
    connection: Connection, number: int, id: str, after: int = 0
) -> Iterator[tuple[int, AnyRecord]]:
    """The records of a run after this number, in order, with their numbers; secrets sealed."""
    for row in connection.execute(_of_run(record, number, after)):
        yield row.place - number * RUN, decode(id, row.body)


def append(connection: Connection, number: int, token: int, item: AnyRecord) -> None:
    """Add a record together with whatever else the transaction holds."""
    places = _of_run(record, number).with_only_columns(func.max(record.c.place)).order_by(None)
    last = connection.execute(places).scalar_one() or number * RUN
    connection.execute(insert(record).values(place=last + 1, token=token, body=encode(item)))


def _of_run(table: Table, number: int, after: int = 0) -> Select[Any]:
    """The rows of a run after this number, in order."""
    place = table.c.place
    mine = place.between(number * RUN + after + 1, (number + 1) * RUN - 1)
    return select(place, table.c.body).where(mine).order_by(place)


def lives(connection: Connection, number: int, id: str) -> list[Span]:
    """From the first to the last record of each that worked on the run, in order."""
    place = record.c.place
    ends = _of_run(record, number).with_only_columns(func.min(place), func.max(place))
    return sorted(
        Span(*(_moment(connection, id, place) for place in row))
        for row in connection.execute(ends.order_by(None).group_by(record.c.token)).all()
    )


def has_one_life(connection: Connection, number: int) -> bool:
    """Whether nobody went on with the run, as far as its first and last record tell."""
    tokens = _of_run(record, number).with_only_columns(record.c.token).limit(1)
    first = connection.execute(tokens).scalar()
    last = connection.execute(tokens.order_by(None).order_by(record.c.place.desc())).scalar()
    return first == last


def _moment(connection: Connection, id: str, place: int) -> float:
    chosen = select(record.c.body).where(record.c.place == place)
    return decode(id, connection.execute(chosen).scalar_one()).at


def may_have_changed(found: Iterable[tuple[int, AnyRecord]]) -> bool:
    """Whether these records tell of a change to a host, or of one that was begun."""
    return any(
        isinstance(item, UnitIntended) or (isinstance(item, UnitDone) and item.result.changed)
        for _seq, item in found
    )


def lines(
    connection: Connection,
    number: int,
    *,
    after: int,
    limit: int,
    node: str | None,
    host: str | None,
) -> list[StoredLine]:
    """Log lines of a run after this number, in order, of one node or host or of all."""
    rows = connection.execute(_of_run(log_line, number, after))
    found = (decode_line(row.place - number * RUN, row.body) for row in rows)
    wanted = (line for line in found if node in (None, line.node) and host in (None, line.host))
    return list(islice(wanted, limit))


def prior_states(connection: Connection, name: str) -> list[LedgerEntry]:
    """The ledger of a name: what each resource was like before our first change."""
    chosen = select(ledger).where(ledger.c.name == name)
    return [
        LedgerEntry(
            at=row.at, host=row.host, resource=row.resource, prior=msgspec.json.decode(row.prior)
        )
        for row in connection.execute(chosen)
    ]


def known_resources(connection: Connection, name: str) -> dict[str, frozenset[str]]:
    """The resources in the ledger of a name, by host."""
    chosen = select(ledger.c.host, ledger.c.resource).where(ledger.c.name == name)
    found: dict[str, set[str]] = {}
    for row in connection.execute(chosen):
        found.setdefault(row.host, set()).add(row.resource)
    return {host: frozenset(resources) for host, resources in found.items()}


def durations(connection: Connection, name: str) -> dict[str, float]:
    """How long the nodes of a name usually take, in seconds."""
    chosen = select(duration.c.node, duration.c.mean).where(duration.c.name == name)
    return {row.node: row.mean for row in connection.execute(chosen)}


def learn(connection: Connection, name: str, seconds: Mapping[str, float]) -> None:
    """Take into account how long these nodes took this time."""
    chosen = select(duration).where(duration.c.name == name)
    known = {row.node: (row.mean, row.samples) for row in connection.execute(chosen)}
    rows = [
        {"name": name, "node": node, **_learned(took, *known.get(node, (0.0, 0)))}
        for node, took in seconds.items()
    ]
    if rows:
        same = (duration.c.name == bindparam("name"), duration.c.node == bindparam("node"))
        connection.execute(delete(duration).where(*same), rows)
        connection.execute(insert(duration), rows)


def _learned(took: float, mean: float, samples: int) -> dict[str, float]:
    weight = min(samples + 1, _SAMPLES)
    return {"mean": mean + (took - mean) / weight, "samples": weight}
