"""Brings a database to this version's tables, whoever else does the same at once."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from keyplane.adapters.sql import schema
from keyplane.ports.inventory import InventoryUnusableError

_SCRIPTS = Path(__file__).parent / "migrations"

_TURN = 0x6B65_7970_6C61_6E65
"""Names the lock under which a PostgreSQL database is migrated; any fixed number will do."""


def _refuse_others(connection: sa.Connection, name: str) -> None:
    """Raise for a database that cannot be brought to this version's tables."""
    context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
    heads = context.get_current_heads()
    scripts = ScriptDirectory(str(_SCRIPTS))
    known = {revision.revision for revision in scripts.walk_revisions()}
    if unknown := sorted(set(heads) - known):
        raise InventoryUnusableError(
            f"inventory {name}: it was written by a newer version of Keyplane ({unknown[0]});"
            " upgrade this one"
        )
    if not heads and sa.inspect(connection).get_table_names():
        raise InventoryUnusableError(
            f"inventory {name}: it holds tables of something else; use an empty database"
        )


def upgrade(connection: sa.Connection, name: str) -> None:
    """Run what is missing inside the caller's transaction, in which SQLite writes by turns."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_TURN)))
    if schema.is_current(connection):
        return
    _refuse_others(connection, name)
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, schema.VERSION)
