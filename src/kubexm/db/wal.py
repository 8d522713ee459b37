"""Room in SQLite's write-ahead log.

A commit that makes the log grow waits for the file system to note its new length, and takes half
as long again as one that finds the space there already. So the log gets its full length at once,
filled with zeros. They are no frames: whoever reads the log, after a crash too, stops there.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

ROOM = 1_100 * (4_096 + 24) + 32
"""Bytes: SQLite begins anew at the front once a thousand pages are in the log."""

SPARE = 64 * ROOM
"""Bytes that the disk must have left: the last ones are not for this."""


def make_room(connection: sqlite3.Connection, database: Path) -> None:
    """Lengthen the log; where that can't be done now, commits take a little longer."""
    with suppress(sqlite3.OperationalError, OSError):
        # As the one writer: nobody appends to the log meanwhile.
        connection.execute("BEGIN IMMEDIATE")
        try:
            _lengthen(database.with_name(f"{database.name}-wal"))
        finally:
            connection.execute("ROLLBACK")


def _lengthen(log: Path) -> None:
    with log.open("r+b", buffering=0) as file:
        disk = os.fstatvfs(file.fileno())
        length = file.seek(0, os.SEEK_END)
        if length < ROOM and disk.f_bavail * disk.f_frsize > SPARE:
            file.write(bytes(ROOM - length))
            os.fsync(file.fileno())
