"""What Alembic runs: the migrations on the connection that it was given."""

from alembic import context

from keyplane.adapters.sql import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    version_table=schema.VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
