"""Runs with their documents, records and log lines; locks, ledger, durations."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# As in `schema`, frozen here: a migration never changes once it was released.
APPLICATION_ID = 0x6B786D31


def upgrade() -> None:
    _create_runs()
    _create_history()
    _create_lock()
    _create_knowledge()
    op.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _create_runs() -> None:
    op.create_table(
        "run",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("direction", sa.Text, nullable=False),
        sa.Column("selected", sa.Boolean, nullable=False),
        sa.Column("degraded", sa.Boolean, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("world", sa.Text),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("started", sa.Float),
        sa.Column("ended", sa.Float),
    )
    op.create_index("run_by_name", "run", ["name", "number"])
    op.create_table(
        "document",
        sa.Column("run", sa.Integer, sa.ForeignKey("run.number"), primary_key=True),
        sa.Column("graph", sa.LargeBinary, nullable=False),
        sa.Column("spec", sa.LargeBinary, nullable=False),
        sa.Column("options", sa.LargeBinary, nullable=False),
    )


def _create_history() -> None:
    op.create_table(
        "record",
        sa.Column("run", sa.Integer, sa.ForeignKey("run.number"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "log_line",
        sa.Column("run", sa.Integer, sa.ForeignKey("run.number"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_lock() -> None:
    op.create_table(
        "lock",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("run", sa.Integer, sa.ForeignKey("run.number")),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("boot", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("pid_started", sa.Integer, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("lease_until", sa.Float, nullable=False),
        sa.Column("cancel", sa.Boolean, nullable=False),
    )


def _create_knowledge() -> None:
    op.create_table(
        "ledger",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("resource", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("run", sa.Integer, sa.ForeignKey("run.number"), nullable=False),
        sa.Column("prior", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "duration",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("mean", sa.Float, nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
    )
