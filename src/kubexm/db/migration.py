"""Brings the tables up to date with Alembic, inside the caller's transaction."""

from __future__ import annotations

from importlib.resources import files

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Apply every migration that the database has not seen."""
    command.upgrade(configuration(connection), "head")


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's view of our migrations, which lie inside the package."""
    config = Config()
    location = str(files("kubexm.db") / "migrations")
    config.set_main_option("script_location", location.replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
