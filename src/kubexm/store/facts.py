"""What hosts told of themselves: the last that a run of a name has gathered, host by host."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kubexm.db.glance import glance


class KnownFacts(msgspec.Struct, frozen=True):
    """The facts of a host, and when it told them, in seconds since the epoch."""

    at: float
    facts: dict[str, Any]


def keep(
    connection: sqlite3.Connection, name: str, facts: Mapping[str, Mapping[str, Any]], now: float
) -> None:
    """Put what these hosts told now in place of what they told before."""
    connection.executemany(
        "INSERT INTO host_facts (name, host, at, facts) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (name, host) DO UPDATE SET at = excluded.at, facts = excluded.facts",
        [(name, host, now, msgspec.json.encode(told)) for host, told in facts.items()],
    )


def read(path: Path, name: str) -> dict[str, KnownFacts]:
    """What the hosts of a name told last, from the database as it lies there.

    No file is made or changed by reading; a store from before facts were kept has none.
    """
    with glance(path) as connection:
        if connection is None or not _are_kept(connection):
            return {}
        chosen = "SELECT host, at, facts FROM host_facts WHERE name = ?"
        return {
            host: KnownFacts(at, msgspec.json.decode(facts))
            for host, at, facts in connection.execute(chosen, (name,))
        }


def _are_kept(connection: sqlite3.Connection) -> bool:
    tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'host_facts'"
    return connection.execute(tables).fetchone() is not None
