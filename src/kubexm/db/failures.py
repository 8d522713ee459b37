"""What SQLite's errors mean to a user, and what to do about them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubexm.errors import StoreUnusable

# Less than this is a full disk to SQLite: it can't even grow its shared memory.
_NO_ROOM = 128 * 1024

_MEANING = {
    sqlite3.SQLITE_FULL: (
        "the disk is full",
        "free some space there; what is in the database is intact",
    ),
    sqlite3.SQLITE_READONLY: (
        "the database is read-only",
        "make the file and its directory writable for this user, or set KUBEXM_HOME to another",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the database can't be opened",
        "check that this user may read and write the file and its directory",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the database is damaged",
        "restore it from a backup, or move it away and begin a new one",
    ),
    sqlite3.SQLITE_NOTADB: (
        "this is not a database, or a damaged one",
        "restore it from a backup, or move it away and begin a new one",
    ),
    sqlite3.SQLITE_BUSY: (
        "another process keeps the database locked",
        "a kubexm may be suspended amid a write: `fuser -v` on the file names it; end it",
    ),
    sqlite3.SQLITE_IOERR: (
        "the database can't be read or written",
        "look for a full disk, a quota or a file size limit, or a failing disk in the system log",
    ),
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the driver into `StoreUnusable`, with the path and a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path) from error


def explain(error: sqlite3.Error, path: Path) -> StoreUnusable:
    """The error that a user can do something about."""
    code = primary_code(error)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _has_no_room(path.parent):
        code = sqlite3.SQLITE_FULL
    meaning, hint = _MEANING.get(code, ("the database refused", "see the text of the error"))
    return StoreUnusable(f"{meaning} ({error})", where=str(path), hint=hint)


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's error code without its finer distinctions; 0 if Python itself complained."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection was in the way, so that trying again may help."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _has_no_room(directory: Path) -> bool:
    try:
        room = os.statvfs(directory)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _NO_ROOM
