"""Turns what databases and their drivers raise into the port's errors. Retries nothing."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

import msgspec
from sqlalchemy import exc

from keyplane.adapters.sql import codec
from keyplane.ports.errors import PortError
from keyplane.ports.inventory import InventoryUnavailableError, InventoryUnusableError

_SQLITE = {
    sqlite3.SQLITE_BUSY: InventoryUnavailableError("another process has it locked for too long"),
    sqlite3.SQLITE_LOCKED: InventoryUnavailableError("another process has it locked for too long"),
    sqlite3.SQLITE_FULL: InventoryUnavailableError("its disk is full"),
    sqlite3.SQLITE_IOERR: InventoryUnavailableError("its disk does not read or write"),
    sqlite3.SQLITE_NOMEM: InventoryUnavailableError("memory ran out"),
    sqlite3.SQLITE_READONLY: InventoryUnusableError("it is read-only"),
    sqlite3.SQLITE_PERM: InventoryUnusableError("its files may not be used by this account"),
    sqlite3.SQLITE_CANTOPEN: InventoryUnusableError("its file cannot be opened or made"),
    sqlite3.SQLITE_CORRUPT: InventoryUnusableError("it is damaged: restore a backup"),
    sqlite3.SQLITE_NOTADB: InventoryUnusableError("the file is damaged, or is no database"),
}
"""By primary result code."""

_POSTGRES = {
    "08": InventoryUnavailableError("the connection was lost"),
    "25006": InventoryUnusableError("it is read-only"),
    "28": InventoryUnusableError("the server refuses this user or password"),
    "3D": InventoryUnusableError("the server has no such database"),
    "40": InventoryUnavailableError("another process wrote the same just now"),
    "42501": InventoryUnusableError("this user may not do what is needed"),
    "53100": InventoryUnavailableError("its disk is full"),
    "53": InventoryUnavailableError("the server ran out of connections or memory"),
    "55P03": InventoryUnavailableError("another process has it locked for too long"),
    "57": InventoryUnavailableError("the server is starting, stopping or overloaded"),
    "58": InventoryUnavailableError("the server's disk does not read or write"),
    "XX": InventoryUnusableError("it is damaged: restore a backup"),
}
"""By SQLSTATE, whole or in part; the longest that fits counts."""


def _postgres(state: str) -> PortError | None:
    fitting = [known for known in _POSTGRES if state.startswith(known)]
    return _POSTGRES[max(fitting, key=len)] if fitting else None


def _driver(cause: BaseException | None) -> PortError | None:
    """What a driver's own exception means."""
    code = getattr(cause, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _SQLITE.get(code & 0xFF)
    state = getattr(cause, "sqlstate", None)
    if isinstance(state, str):
        return _postgres(state)
    if isinstance(cause, OSError | TimeoutError):
        return InventoryUnavailableError("it cannot be reached")
    return None


def _meaning(error: Exception) -> PortError | None:
    match error:
        case exc.DBAPIError():
            lost = InventoryUnavailableError("the connection was lost")
            otherwise = lost if error.connection_invalidated else None
            found = _driver(error.orig) or otherwise
            return found or InventoryUnusableError("the database refuses what is asked")
        case exc.TimeoutError():
            return InventoryUnavailableError("all connections are taken for too long")
        case exc.ArgumentError() | exc.NoSuchModuleError():
            return InventoryUnusableError("no such kind of database is known")
        case exc.SQLAlchemyError():
            return InventoryUnusableError("the database is not as it should be")
        case msgspec.MsgspecError() | codec.DamagedError():
            return InventoryUnusableError("a row is damaged, or written by a newer version")
        case UnicodeError():
            return InventoryUnusableError("text that is no Unicode cannot be kept")
        case ModuleNotFoundError():
            return InventoryUnusableError(f"the package {error.name} is needed and not installed")
        case _:
            return _driver(error)


@contextmanager
def translated(name: str) -> Generator[None]:
    """Let only port errors out, as said of the inventory of this name."""
    try:
        yield
    except PortError:
        raise
    except Exception as error:
        meaning = _meaning(error)
        if meaning is None:
            raise
        cause = error.orig if isinstance(error, exc.DBAPIError) else error
        raise type(meaning)(f"inventory {name}: {meaning}") from cause
