"""What happened in runs and what is known from them: records, log lines, ledger, durations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from kubexm.db.current import RUN
from kubexm.plan.history import Span
from kubexm.plan.records import AnyRecord, LedgerEntry, UnitDone, UnitIntended
from kubexm.store.codec import StoredLine, decode, decode_line, encode

_SAMPLES = 10
"""So many runs weigh on a learned duration; older ones fade."""
_RECORDS = "FROM record WHERE place BETWEEN ? AND ?"
_ALL_RECORDS = "SELECT place, body " + _RECORDS + " ORDER BY place"
_NEWEST = "SELECT max(place) " + _RECORDS
_ENDS = "SELECT min(place), max(place) " + _RECORDS + " GROUP BY token"
_TOKENS = "SELECT token " + _RECORDS
_FIRST_TOKEN = _TOKENS + " ORDER BY place LIMIT 1"
_LAST_TOKEN = _TOKENS + " ORDER BY place DESC LIMIT 1"
_LINES = "SELECT place, body FROM log_line WHERE place BETWEEN ? AND ? ORDER BY place"


def records(
    connection: sqlite3.Connection, number: int, id: str, after: int = 0
) -> Iterator[tuple[int, AnyRecord]]:
    """The records of a run after this number, in order, with their numbers; secrets sealed."""
    for place, body in connection.execute(_ALL_RECORDS, _places(number, after)):
        yield place - number * RUN, decode(id, body)


def append(connection: sqlite3.Connection, number: int, token: int, item: AnyRecord) -> None:
    """Add a record together with whatever else the transaction holds."""
    newest = connection.execute(_NEWEST, _places(number)).fetchone()
    connection.execute(
        "INSERT INTO record (place, token, body) VALUES (?, ?, ?)",
        ((newest[0] or number * RUN) + 1, token, encode(item)),
    )


def _places(number: int, after: int = 0) -> tuple[int, int]:
    """The first and the last place that a run has after this number."""
    return number * RUN + after + 1, (number + 1) * RUN - 1


def lives(connection: sqlite3.Connection, number: int, id: str) -> list[Span]:
    """From the first to the last record of each that worked on the run, in order."""
    return sorted(
        Span(*(_moment(connection, id, place) for place in row))
        for row in connection.execute(_ENDS, _places(number)).fetchall()
    )


def has_one_life(connection: sqlite3.Connection, number: int) -> bool:
    """Whether nobody went on with the run, as far as its first and last record tell."""
    first, last = (
        connection.execute(query, _places(number)).fetchone()
        for query in (_FIRST_TOKEN, _LAST_TOKEN)
    )
    return bool(first == last)


def _moment(connection: sqlite3.Connection, id: str, place: int) -> float:
    chosen = "SELECT body FROM record WHERE place = ?"
    return decode(id, connection.execute(chosen, (place,)).fetchone()[0]).at


def may_have_changed(found: Iterable[tuple[int, AnyRecord]]) -> bool:
    """Whether these records tell of a change to a host, or of one that was begun."""
    return any(
        isinstance(item, UnitIntended) or (isinstance(item, UnitDone) and item.result.changed)
        for _seq, item in found
    )


def lines(
    connection: sqlite3.Connection,
    number: int,
    *,
    after: int,
    limit: int,
    node: str | None,
    host: str | None,
) -> list[StoredLine]:
    """Log lines of a run after this number, in order, of one node or host or of all."""
    rows = connection.execute(_LINES, _places(number, after))
    found = (decode_line(place - number * RUN, body) for place, body in rows)
    wanted = (line for line in found if node in (None, line.node) and host in (None, line.host))
    return list(islice(wanted, limit))


def prior_states(connection: sqlite3.Connection, name: str) -> list[LedgerEntry]:
    """The ledger of a name: what each resource was like before our first change."""
    chosen = "SELECT at, host, resource, prior FROM ledger WHERE name = ?"
    return [
        LedgerEntry(at=at, host=host, resource=resource, prior=msgspec.json.decode(prior))
        for at, host, resource, prior in connection.execute(chosen, (name,))
    ]


def known_resources(connection: sqlite3.Connection, name: str) -> dict[str, frozenset[str]]:
    """The resources in the ledger of a name, by host."""
    chosen = "SELECT host, resource FROM ledger WHERE name = ?"
    found: dict[str, set[str]] = {}
    for host, resource in connection.execute(chosen, (name,)):
        found.setdefault(host, set()).add(resource)
    return {host: frozenset(resources) for host, resources in found.items()}


def makers(connection: sqlite3.Connection, name: str) -> dict[str, dict[str, str]]:
    """By host and resource the run that the entry in the ledger of a name is of."""
    chosen = (
        "SELECT ledger.host, ledger.resource, run.id FROM ledger"
        " JOIN run ON run.number = ledger.run WHERE ledger.name = ?"
    )
    found: dict[str, dict[str, str]] = {}
    for host, resource, run in connection.execute(chosen, (name,)):
        found.setdefault(host, {})[resource] = run
    return found


def forget(connection: sqlite3.Connection, name: str, hosts: Iterable[str]) -> None:
    """Drop what the ledger of a name has of these hosts."""
    dropped = "DELETE FROM ledger WHERE name = ? AND host = ?"
    connection.executemany(dropped, [(name, host) for host in hosts])


def durations(connection: sqlite3.Connection, name: str) -> dict[str, float]:
    """How long the nodes of a name usually take, in seconds."""
    chosen = "SELECT node, mean FROM duration WHERE name = ?"
    return dict(connection.execute(chosen, (name,)))


def learn(connection: sqlite3.Connection, name: str, seconds: Mapping[str, float]) -> None:
    """Take into account how long these nodes took this time."""
    chosen = "SELECT node, mean, samples FROM duration WHERE name = ?"
    known = {node: (mean, samples) for node, mean, samples in connection.execute(chosen, (name,))}
    connection.executemany(
        "INSERT INTO duration (name, node, mean, samples) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (name, node) DO UPDATE SET mean = excluded.mean, samples = excluded.samples",
        [
            (name, node, *_learned(took, *known.get(node, (0.0, 0))))
            for node, took in seconds.items()
        ],
    )


def _learned(took: float, mean: float, samples: int) -> tuple[float, int]:
    weight = min(samples + 1, _SAMPLES)
    return mean + (took - mean) / weight, weight
