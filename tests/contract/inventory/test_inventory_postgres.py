"""What a PostgreSQL server does to those who use it, said in the port's words."""

import asyncio
import contextlib
from pathlib import Path

import asyncpg
import pytest

from keyplane.adapters.sql import engine
from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.ports.inventory import (
    Inventory,
    InventoryUnavailableError,
    InventoryUnusableError,
)
from tests.contract.inventory import postgres


@pytest.fixture
async def url(server: Path, request: pytest.FixtureRequest) -> str:
    name = request.node.name[:60]  # what PostgreSQL keeps of a name is little more
    await postgres.execute(server, f"CREATE DATABASE {name}")
    return postgres.url(server, name)


def database(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


async def write(inventory: Inventory, text: bytes) -> int:
    return (await inventory.add_revision({"a": text}, who="ada", why="", at_ms=1)).number


async def opened_at_last(url: str) -> SqlInventory:
    """With a connection that it keeps: a lock's wait is one for a connection, too."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(InventoryUnavailableError):
                return await SqlInventory.open(url)


async def test_connections_that_the_server_ended_are_made_anew(server: Path, url: str) -> None:
    """As after its restart: the next call passes."""
    inventory = await SqlInventory.open(url)
    await write(inventory, b"1")
    await postgres.execute(
        server,
        # Returns once they have ended: one that is just told to answers the look before a write.
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
        f"WHERE datname = '{database(url)}'",
    )
    assert await write(inventory, b"2") == 2
    await inventory.close()


async def test_a_connection_that_is_lost_amid_a_write_is_unavailable(
    server: Path, url: str
) -> None:
    """The write is undone; the next one passes."""
    inventory = await SqlInventory.open(url)
    await postgres.execute(
        server,
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;"
        " CREATE TRIGGER die BEFORE INSERT ON revisions FOR EACH ROW EXECUTE FUNCTION die()",
        database(url),
    )
    with pytest.raises(InventoryUnavailableError):
        await write(inventory, b"1")
    await postgres.execute(server, "DROP TRIGGER die ON revisions", database(url))
    assert await write(inventory, b"2") == 1
    await inventory.close()


async def test_a_lock_held_for_too_long_is_unavailable(
    server: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's transaction stands on the lease's row: reads go on, writes give up in time."""
    await (await SqlInventory.open(url)).close()
    monkeypatch.setattr(engine, "LOCK_MAX_S", 1)
    inventory = await opened_at_last(url)
    other = await asyncpg.connect(host=str(server), user="postgres", database=database(url))
    async with other.transaction():
        await other.execute("SELECT * FROM lease FOR UPDATE")
        with pytest.raises(InventoryUnavailableError, match="locked"):
            await write(inventory, b"1")
        assert await inventory.revision() is None
    await other.close()
    assert await write(inventory, b"1") == 1
    await inventory.close()


async def test_a_database_that_is_not_there_is_unusable(server: Path) -> None:
    """The server answers, and says so."""
    with pytest.raises(InventoryUnusableError, match="no such database"):
        await SqlInventory.open(postgres.url(server, "nowhere"))


async def test_a_read_only_server_refuses_writes(server: Path, url: str) -> None:
    """As a standby does."""
    await (await SqlInventory.open(url)).close()
    await postgres.execute(
        server, f"ALTER DATABASE {database(url)} SET default_transaction_read_only = on"
    )
    inventory = await SqlInventory.open(url)
    assert await inventory.revision() is None
    with pytest.raises(InventoryUnusableError, match="read-only"):
        await write(inventory, b"1")
    await inventory.close()
