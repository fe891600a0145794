"""Connections: how each database is spoken to. Knows no table.

Reads see one moment of the whole database. Writes take turns from their first statement on: in
SQLite by BEGIN IMMEDIATE (a deferred transaction that reads before it writes loses updates), in
PostgreSQL by the lease's row, which every write locks before it reads.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext import asyncio as sa_asyncio

from keyplane.ports.inventory import InventoryUnusableError

LOCK_MAX_S = 10
"""A write takes milliseconds, the first of a large fleet a few seconds."""

ANSWER_MAX_S = 60
"""A statement that takes longer than any of ours: the server hangs or its network drops packets."""

CONNECTIONS_MAX = 5
"""One writes at a time; the others read."""

_WRITES = "keyplane_writes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """One pool of connections, with two ways to begin."""

    name: str
    """For messages; holds no password."""
    reader: sa_asyncio.AsyncEngine
    writer: sa_asyncio.AsyncEngine
    ready_file: Callable[[], None] | None = None
    """Readies a database's file, or raises what is wrong with it; to be called in a thread.
    aiosqlite, told of it by a connection that fails, lets its thread write a traceback if the
    loop closes soon after."""


def connect(url: str) -> Engines:
    """Connections to `sqlite:///PATH` or `postgresql://…`; opens none yet."""
    parsed = sa.make_url(url)
    name = parsed.render_as_string(hide_password=True)
    match parsed.get_backend_name():
        case "sqlite":
            if parsed.database in (None, "", ":memory:"):
                raise InventoryUnusableError(f"inventory {name}: a file has to be named")
            return _sqlite(name, parsed.set(drivername="sqlite+aiosqlite"))
        case "postgresql":
            return _postgres(name, parsed.set(drivername="postgresql+asyncpg"))
        case other:
            raise InventoryUnusableError(
                f"inventory {name}: {other} is not supported; use sqlite or postgresql"
            )


def _engine(url: sa.URL, **options: Any) -> sa_asyncio.AsyncEngine:
    return sa_asyncio.create_async_engine(
        url,
        hide_parameters=True,
        pool_size=CONNECTIONS_MAX,
        max_overflow=0,
        pool_timeout=LOCK_MAX_S,
        **options,
    )


def _sqlite(name: str, url: sa.URL) -> Engines:
    # With no isolation level the driver begins nothing by itself.
    engine = _engine(url, connect_args={"isolation_level": None, "timeout": LOCK_MAX_S})

    def prepare(connection: DBAPIConnection, _record: object) -> None:
        try:
            cursor = connection.cursor()
            for pragma in ("synchronous=FULL", "foreign_keys=ON"):
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()
        except BaseException:
            connection.close()  # the pool would leave it, and its thread, to the collector
            raise

    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    def ready_file() -> None:
        [path], given = engine.dialect.create_connect_args(url)
        with contextlib.closing(sqlite3.connect(path, timeout=LOCK_MAX_S, **given)) as connection:
            _set_wal(connection)

    event.listen(engine.sync_engine, "connect", prepare)
    event.listen(engine.sync_engine, "begin", begin)
    writer = engine.execution_options(**{_WRITES: True})
    return Engines(name=name, reader=engine, writer=writer, ready_file=ready_file)


def _set_wal(connection: sqlite3.Connection) -> None:
    """Have readers beside a writer; the file remembers it.

    SQLite waits for no lock here: of two that change the mode at once, one is told that it is
    busy, whatever its timeout.
    """
    deadline = time.monotonic() + LOCK_MAX_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _postgres(name: str, url: sa.URL) -> Engines:
    engine = _engine(
        url,
        pool_pre_ping=True,
        connect_args={
            "timeout": LOCK_MAX_S,
            "command_timeout": ANSWER_MAX_S,
            "server_settings": {"lock_timeout": f"{LOCK_MAX_S}s", "application_name": "keyplane"},
        },
    )
    # A plan is read in several statements, between which another may be committed.
    reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return Engines(name=name, reader=reader, writer=engine)
