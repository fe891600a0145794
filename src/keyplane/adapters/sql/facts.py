"""What each machine says of itself, and by what of it plans are made."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import codec
from keyplane.adapters.sql.schema import facts
from keyplane.model.names import MachineName
from keyplane.ports import fact_order
from keyplane.ports.fact_order import StoredFacts

Json = Any


async def record(
    connection: AsyncConnection, machine: MachineName, said: Mapping[str, Json], *, received_ms: int
) -> StoredFacts:
    before = await _of(connection, machine)
    return await _write(connection, before, fact_order.after(before, machine, said, received_ms))


async def take(
    connection: AsyncConnection, machine: MachineName, said: Mapping[str, Json]
) -> StoredFacts:
    before = await _of(connection, machine)
    known = StoredFacts(machine=machine, at_ms=0) if before is None else before
    return await _write(connection, before, fact_order.taken(known, said))


async def known(connection: AsyncConnection) -> dict[MachineName, StoredFacts]:
    rows = await connection.execute(sa.select(facts).order_by(facts.c.machine))
    return {MachineName(row.machine): _stored(row) for row in rows}


async def _of(connection: AsyncConnection, machine: MachineName) -> StoredFacts | None:
    query = sa.select(facts).where(facts.c.machine == machine)
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Any) -> StoredFacts:
    return StoredFacts(
        machine=MachineName(row.machine), at_ms=row.at_ms, facts=codec.facts(row.facts)
    )


async def _write(
    connection: AsyncConnection, before: StoredFacts | None, stored: StoredFacts
) -> StoredFacts:
    values = {"at_ms": stored.at_ms, "facts": codec.encode(stored.facts)}
    if before is None:
        await connection.execute(facts.insert().values(machine=stored.machine, **values))
    else:
        await connection.execute(
            facts.update().where(facts.c.machine == stored.machine).values(**values)
        )
    return stored
