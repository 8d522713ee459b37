"""Called by Alembic: run the migrations on the connection that the caller brought along."""

from alembic import context

from kubexm.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite can't alter a column in place
)
context.run_migrations()
