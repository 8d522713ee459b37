"""What hosts told of themselves: the last that a run of a name has gathered, host by host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, insert, select

from kubexm.db.glance import glance
from kubexm.db.tables import host_facts


class KnownFacts(msgspec.Struct, frozen=True):
    """The facts of a host, and when it told them, in seconds since the epoch."""

    at: float
    facts: dict[str, Any]


def keep(
    connection: Connection, name: str, facts: Mapping[str, Mapping[str, Any]], now: float
) -> None:
    """Put what these hosts told now in place of what they told before."""
    rows = [
        {"name": name, "host": host, "at": now, "facts": msgspec.json.encode(told)}
        for host, told in facts.items()
    ]
    if rows:
        same = (host_facts.c.name == bindparam("name"), host_facts.c.host == bindparam("host"))
        connection.execute(delete(host_facts).where(*same), rows)
        connection.execute(insert(host_facts), rows)


def read(path: Path, name: str) -> dict[str, KnownFacts]:
    """What the hosts of a name told last, from the database as it lies there.

    No file is made or changed by reading; a store from before facts were kept has none.
    """
    chosen = select(host_facts).where(host_facts.c.name == name)
    with glance(path) as connection:
        if connection is None or not connection.dialect.has_table(connection, host_facts.name):
            return {}
        return {
            row.host: KnownFacts(row.at, msgspec.json.decode(row.facts))
            for row in connection.execute(chosen)
        }
