"""Reads a database without a trace: no file is made beside it, and no table is brought up to date.

Even who only reads an SQLite database with a write-ahead log makes that log. So a database that
nobody has open is read as one that does not change; beside one that is in use the log lies already.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.pool import NullPool

from kubexm.db import schema
from kubexm.db.failures import explained

PATIENCE = 5.0
"""Seconds to wait for another process; to plan is not worth more."""


@contextmanager
def glance(path: Path) -> Iterator[Connection | None]:
    """What is in the database of this file, to be read; None if there is nothing in it."""
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, creator=lambda: _connect(path), poolclass=NullPool)
    with explained(path), engine.connect() as connection:
        yield connection if schema.revision(connection, path) is not None else None


def _connect(path: Path) -> sqlite3.Connection:
    in_use = path.with_name(f"{path.name}-wal").exists()
    how = "mode=ro" if in_use else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{how}"
    return sqlite3.connect(uri, uri=True, timeout=PATIENCE, check_same_thread=False)
