"""Records and log lines by one number each, which SQLite can append without splitting pages."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for table in ("record", "log_line"):
        op.rename_table(table, f"old_{table}")
    _create()
    # Two to the power of 32, as in `tables`, frozen here.
    op.execute(
        "INSERT INTO record (place, token, body)"
        " SELECT run * 4294967296 + seq, token, body FROM old_record ORDER BY run, seq"
    )
    op.execute(
        "INSERT INTO log_line (place, body)"
        " SELECT run * 4294967296 + seq, body FROM old_log_line ORDER BY run, seq"
    )
    for table in ("record", "log_line"):
        op.drop_table(f"old_{table}")


def _create() -> None:
    place = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "record",
        sa.Column("place", place, primary_key=True),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "log_line",
        sa.Column("place", place, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
