"""Reads a database without a trace: no file is made beside it, and no table is brought up to date.

Even who only reads an SQLite database with a write-ahead log makes that log. So a database that
nobody has open is read as one that does not change; beside one that is in use the log lies already.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kubexm.db import schema
from kubexm.db.failures import explained

PATIENCE = 5.0
"""Seconds to wait for another process; to plan is not worth more."""


@contextmanager
def glance(path: Path) -> Iterator[sqlite3.Connection | None]:
    """What is in the database of this file, to be read; None if there is nothing in it."""
    with explained(path), closing(_connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection if schema.revision(connection, path) is not None else None


def _connect(path: Path) -> sqlite3.Connection:
    in_use = path.with_name(f"{path.name}-wal").exists()
    how = "mode=ro" if in_use else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{how}"
    return sqlite3.connect(uri, uri=True, timeout=PATIENCE, check_same_thread=False)
