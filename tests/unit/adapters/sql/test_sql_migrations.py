"""A database is brought to this version's tables, once, and never back."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from keyplane.adapters.sql import engine, schema
from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.ports import ordering
from keyplane.ports.inventory import InventoryUnavailableError, InventoryUnusableError


def url(path: Path) -> str:
    return f"sqlite:///{path}"


async def opened(path: Path) -> None:
    await (await SqlInventory.open(url(path))).close()


async def test_migrations_make_the_tables_of_the_schema(tmp_path: Path) -> None:
    """All tables, columns, indexes and foreign keys, and nothing besides."""
    path = tmp_path / "inventory.db"
    await opened(path)

    def differences(connection: sa.Connection) -> list[object]:
        context = MigrationContext.configure(
            connection, opts={"version_table": schema.VERSION_TABLE, "compare_type": True}
        )
        return compare_metadata(context, schema.metadata)

    engines = engine.connect(url(path))
    async with engines.reader.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engines.reader.dispose()


def test_the_newest_migration_is_the_schemas_version() -> None:
    """There is one line of migrations, and the schema names its end."""
    scripts = ScriptDirectory(str(Path(schema.__file__).parent / "migrations"))
    assert scripts.get_heads() == [schema.VERSION]


async def test_sqlite_is_set_to_lose_nothing(tmp_path: Path) -> None:
    """Readers beside a writer, full durability, and foreign keys that hold."""
    path = tmp_path / "inventory.db"
    await opened(path)
    engines = engine.connect(url(path))
    async with engines.writer.connect() as connection:
        for pragma, expected in (
            ("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1),
            ("busy_timeout", 10_000),
        ):  # fmt: skip
            found = await connection.exec_driver_sql(f"PRAGMA {pragma}")
            assert found.scalar_one() == expected
    await engines.writer.dispose()


async def test_many_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    """Within one process, one migrates and the others find it done."""
    for n in range(20):
        path = tmp_path / str(n) / "inventory.db"
        path.parent.mkdir()
        all_ = await asyncio.gather(*(SqlInventory.open(url(path)) for _ in range(4)))
        for each in all_:
            await each.close()


async def test_many_may_write_a_new_database_at_once(tmp_path: Path) -> None:
    """They take turns."""
    path = tmp_path / "inventory.db"
    all_ = await asyncio.gather(*(SqlInventory.open(url(path)) for _ in range(8)))
    numbers = [
        (await each.add_revision({"a": b"%d" % n}, who="", why="", at_ms=1)).number
        for n, each in enumerate(all_)
    ]
    assert numbers == list(range(1, 9))
    for each in all_:
        await each.close()


@pytest.mark.slow
async def test_processes_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    """A controller and its standby that start together."""
    program = (
        "import asyncio, sys\n"
        "from keyplane.adapters.sql.inventory import SqlInventory\n"
        "async def main():\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    await (await SqlInventory.open(sys.argv[1])).close()\n"
        "asyncio.run(main())\n"
    )
    children = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, url(tmp_path / "inventory.db")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        await child.stdout.readline()
    said = await asyncio.gather(*(child.communicate(b"\n") for child in children))
    assert [child.returncode for child in children] == [0] * 4, said


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    """And left as it is."""
    path = tmp_path / "inventory.db"
    await opened(path)
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
    raw.close()
    with pytest.raises(InventoryUnusableError, match=r"newer version of Keyplane \(9999\)"):
        await opened(path)
    with sqlite3.connect(path) as raw:
        assert raw.execute(f"SELECT * FROM {schema.VERSION_TABLE}").fetchall() == [("9999",)]
    raw.close()


async def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    """No tables are put beside another program's."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE plans (mine TEXT)")
    raw.close()
    with pytest.raises(InventoryUnusableError, match="something else"):
        await opened(path)


async def test_a_migration_cut_short_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables come all together or not at all; the next opening makes them."""
    path = tmp_path / "inventory.db"
    create = Operations.create_table

    def fail(self: Operations, name: str, *columns: object, **given: object) -> object:
        if name == "rollouts":
            raise OSError("cut short")
        return create(self, name, *columns, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(Operations, "create_table", fail)
    with pytest.raises(InventoryUnavailableError):
        await opened(path)
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT name FROM sqlite_master").fetchall() == []
    raw.close()
    monkeypatch.undo()
    await opened(path)


async def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    directory = tmp_path / "ä %s 100% x"
    directory.mkdir()
    await opened(directory / "inventory.db")
    assert (directory / "inventory.db").is_file()


def begin(path: Path) -> None:
    """Make a database as the first release left one: two revisions, two plans."""
    engines = sa.create_engine(url(path))
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    with engines.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for number, generation in ((1, "sha256-one"), (2, "sha256-two")):
            digest = ordering.revision_digest({})
            connection.exec_driver_sql(
                f"INSERT INTO revisions VALUES ({number}, '{digest}', 5, 'ada', 'w{number}')"
            )
            for seq in (number * 2, number * 2 + 1):
                connection.exec_driver_sql(
                    "INSERT INTO plans VALUES "
                    f"({seq}, '{generation}', 'keyplane.plan/1', 'home', {number}, 'ada', 5)"
                )
        connection.exec_driver_sql("INSERT INTO audit VALUES (1, 5, 'ada', 'apply', x'7b7d')")
    engines.dispose()


async def test_a_database_of_the_first_release_is_read_on(tmp_path: Path) -> None:
    """What it never wrote down is empty; which generation came of a revision is found again."""
    path = tmp_path / "inventory.db"
    begin(path)
    inventory = await SqlInventory.open(url(path))
    last, first = await inventory.history(9)
    assert (last.number, last.who, last.why, last.generation) == (2, "ada", "w2", "sha256-two")
    assert (last.verb, last.parent, last.moved) == ("", None, None)
    assert (first.number, first.generation) == (1, "sha256-one")
    assert [each.revision for each in await inventory.generations()] == [2, 1]
    assert await inventory.audit_log(9) == ((5, "ada", "apply", {}),)
    made = await inventory.add_revision({"a": b"1"}, who="bob", why="", at_ms=6)
    assert (made.number, made.parent) == (3, 2)
    await inventory.close()
