"""What goes wrong with a database is said in the port's words, and never as a library's error."""

import asyncio
import gc
import socket
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event

from keyplane.adapters.sql import engine
from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.ports.inventory import (
    Inventory,
    InventoryUnavailableError,
    InventoryUnusableError,
)


def url(path: Path) -> str:
    return f"sqlite:///{path}"


async def write(inventory: Inventory, text: bytes = b"1") -> int:
    return (await inventory.add_revision({"a": text}, who="ada", why="", at_ms=1)).number


async def filled(path: Path, revisions: int = 3) -> None:
    inventory = await SqlInventory.open(url(path))
    for n in range(revisions):
        await write(inventory, b"%d " % n * 3000)
    await inventory.close()


async def read(path: Path) -> None:
    inventory = await SqlInventory.open(url(path))
    try:
        await inventory.revision()
    finally:
        await inventory.close()


async def test_a_database_locked_for_too_long_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the write lock; reads go on, and writes once it lets go."""
    path = tmp_path / "inventory.db"
    await filled(path)
    monkeypatch.setattr(engine, "LOCK_MAX_S", 0.05)
    inventory = await SqlInventory.open(url(path))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(InventoryUnavailableError, match="locked") as raised:
        await write(inventory)
    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)
    assert await inventory.revision() is not None
    other.execute("ROLLBACK")
    other.close()
    assert await write(inventory) == 4
    await inventory.close()


async def test_writes_behind_a_lock_do_not_wait_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, each is answered within a bound; the next ones go on."""
    path = tmp_path / "inventory.db"
    await filled(path)
    monkeypatch.setattr(engine, "LOCK_MAX_S", 0.5)
    monkeypatch.setattr("keyplane.adapters.sql.inventory.TURN_MAX_S", 1.0)
    inventory = await SqlInventory.open(url(path))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    told = await asyncio.gather(
        *(write(inventory, b"%d" % n) for n in range(100)), return_exceptions=True
    )
    assert {type(each) for each in told} == {InventoryUnavailableError}
    late = [each for each in told if "the writes before this one" in str(each)]
    assert 50 < len(late) < 100
    other.execute("ROLLBACK")
    other.close()
    assert await write(inventory, b"after") == 4
    await inventory.close()


async def test_a_full_disk_is_unavailable_and_loses_nothing(tmp_path: Path) -> None:
    """The write that finds no room is undone whole."""
    path = tmp_path / "inventory.db"
    await filled(path)
    engines = engine.connect(url(path))

    def shrink(connection: sqlite3.Connection, _record: object) -> None:
        connection.cursor().execute("PRAGMA max_page_count=1")  # as small as it is now

    event.listen(engines.writer.sync_engine, "connect", shrink)
    inventory = SqlInventory(engines, None)
    with pytest.raises(InventoryUnavailableError, match="full"):
        await write(inventory, b"x" * 1_000_000)
    last = await inventory.revision()
    assert last is not None
    assert last.number == 3
    await inventory.close()


async def test_a_file_that_is_no_database_is_unusable(tmp_path: Path) -> None:
    """Whatever else stands in the file."""
    path = tmp_path / "inventory.db"
    path.write_bytes(b"not a database at all, " * 1000)
    with pytest.raises(InventoryUnusableError, match="no database"):
        await SqlInventory.open(url(path))


async def test_a_torn_file_is_unusable(tmp_path: Path) -> None:
    """Pages that were overwritten are found when they are read."""
    path = tmp_path / "inventory.db"
    await filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: 4096 * 2] + b"\xa5" * (len(whole) - 4096 * 2))
    with pytest.raises(InventoryUnusableError, match="damaged"):
        await read(path)


async def test_bytes_that_changed_on_disk_are_noticed(tmp_path: Path) -> None:
    """A body that is not what its digest says is never given out."""
    path = tmp_path / "inventory.db"
    await filled(path)
    content = path.read_bytes()
    assert content.count(b"2 2 2 2 2 ") >= 1
    path.write_bytes(content.replace(b"2 2 2 2 2 ", b"2 2 3 2 2 ", 1))
    with pytest.raises(InventoryUnusableError, match="damaged"):
        await read(path)


async def test_a_read_only_database_is_read_and_refuses_writes(tmp_path: Path) -> None:
    """As it is in a snapshot or on a mount without write access."""
    path = tmp_path / "inventory.db"
    await filled(path)
    inventory = await SqlInventory.open(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert await inventory.revision() is not None
    with pytest.raises(InventoryUnusableError, match="read-only"):
        await write(inventory)
    await inventory.close()


async def test_a_directory_that_is_not_there_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(InventoryUnusableError, match="opened"):
        await SqlInventory.open(url(tmp_path / "nowhere" / "inventory.db"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sqlite://", "a file has to be named"),
        ("sqlite:///:memory:", "a file has to be named"),
        ("mysql://root:hunter2@h/db", "not supported"),
        ("nonsense", "no such kind of database"),
        ("", "no such kind of database"),
    ],
)
async def test_a_url_of_no_inventory_is_refused(given: str, said: str) -> None:
    """In words that hold no password."""
    with pytest.raises(InventoryUnusableError, match=said) as raised:
        await SqlInventory.open(given)
    assert "hunter2" not in str(raised.value)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    """Nothing listens at its port; the password stays untold."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = taken.getsockname()[1]
        with pytest.raises(InventoryUnavailableError, match="reached") as raised:
            await SqlInventory.open(f"postgresql://ada:hunter2@127.0.0.1:{port}/x")
    assert "hunter2" not in str(raised.value)


async def test_text_that_is_no_unicode_is_refused(tmp_path: Path) -> None:
    """A path as the file system gives it may hold bytes that no text can."""
    inventory = await SqlInventory.open(url(tmp_path / "inventory.db"))
    with pytest.raises(InventoryUnusableError, match="Unicode"):
        await inventory.add_revision({"bad\udcff": b""}, who="ada", why="", at_ms=1)
    assert await write(inventory) == 1
    await inventory.close()


async def test_who_is_cancelled_amid_a_statement_leaves_nothing_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was begun is made to its end; then it is told that it was cancelled, and all is well."""
    monkeypatch.setattr(engine, "LOCK_MAX_S", 0.5)
    connect, engines = engine.connect, list[engine.Engines]()
    monkeypatch.setattr(engine, "connect", lambda url: engines.append(connect(url)) or engines[-1])
    inventory = await SqlInventory.open(url(tmp_path / "inventory.db"))
    writing: asyncio.Task[int] | None = None
    amid: list[str] = []

    def cancel(*told: object) -> None:
        if writing is not None and not writing.done():
            amid.append(str(told[2]).split()[0])
            if amid[-1] == "SELECT":
                writing.cancel()

    event.listen(engines[0].reader.sync_engine, "before_cursor_execute", cancel)
    gc.disable()  # it would let go of what is locked
    try:
        writing = asyncio.ensure_future(write(inventory))
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert amid[:2] == ["BEGIN", "SELECT"]
        assert await write(inventory, b"2") == 2
    finally:
        gc.enable()
        await inventory.close()
    assert not caplog.records


async def test_what_is_under_way_is_made_before_an_inventory_closes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where who asked for it has gone, and waits no more."""
    inventory = await SqlInventory.open(url(tmp_path / "inventory.db"))
    calls = [asyncio.ensure_future(write(inventory, b"%d" % n)) for n in range(3)]
    await asyncio.sleep(0)
    for each in calls:
        each.cancel()
    await inventory.close()
    await asyncio.wait(calls)
    assert all(each.cancelled() for each in calls)
    again = await SqlInventory.open(url(tmp_path / "inventory.db"))
    assert [each.number for each in await again.history(9)] == [3, 2, 1]
    await again.close()
    assert not caplog.records
