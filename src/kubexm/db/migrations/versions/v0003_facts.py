"""What hosts told of themselves, by name and host: plans go by it when no host is asked."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "host_facts",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("facts", sa.LargeBinary, nullable=False),
    )
