"""Each implementation of the inventory, as a truth that several processes open."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.ports.inventory import Inventory
from keyplane.testing.inventory import MemoryInventory
from tests.contract.inventory import postgres

Open = Callable[..., Awaitable[Inventory]]
"""Called with a holder or nothing, as often as wanted: always the same truth."""

_databases = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    with postgres.cluster() as socket:
        yield socket


async def _empty(kind: str, request: pytest.FixtureRequest, directory: Path) -> str:
    """The URL of an empty database."""
    if kind == "sqlite":
        return f"sqlite:///{directory}/inventory.db"
    socket: Path = request.getfixturevalue("server")
    name = f"test{next(_databases)}"
    await postgres.execute(socket, f"CREATE DATABASE {name}")
    return postgres.url(socket, name)


async def _opener(url: str) -> AsyncIterator[Open]:
    opened: list[Inventory] = []

    async def open_one(holder: str | None = None) -> Inventory:
        opened.append(await SqlInventory.open(url, holder=holder))
        return opened[-1]

    yield open_one
    for each in opened:
        await each.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    return await _empty(request.param, request, tmp_path)


@pytest.fixture
async def open_sql(url: str) -> AsyncIterator[Open]:
    async for opener in _opener(url):
        yield opener


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def open_one(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    if request.param == "memory":
        first = MemoryInventory()

        async def beside(holder: str | None = None) -> Inventory:
            return first.beside(holder)

        yield beside
    else:
        async for opener in _opener(await _empty(request.param, request, tmp_path)):
            yield opener


@pytest.fixture
async def inventory(open_one: Open) -> Inventory:
    return await open_one()
