"""Brings the tables up to date with Alembic, inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool


def upgrade(connection: sqlite3.Connection, revision: str = "head") -> None:
    """Apply every migration that the database has not seen, up to a revision."""
    with _as_alembic_wants_it(connection) as wrapped:
        command.upgrade(configuration(wrapped), revision)


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's view of our migrations, which lie inside the package."""
    config = Config()
    location = str(files("kubexm.db") / "migrations")
    config.set_main_option("script_location", location.replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _as_alembic_wants_it(connection: sqlite3.Connection) -> Iterator[Connection]:
    factory, connection.row_factory = connection.row_factory, None
    engine = create_engine("sqlite://", creator=lambda: _Borrowed(connection), poolclass=NullPool)
    try:
        with engine.connect() as wrapped:
            yield wrapped
    finally:
        connection.row_factory = factory


class _Borrowed:
    """A connection whose transaction is somebody else's to end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass

    def close(self) -> None:
        pass
