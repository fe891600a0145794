"""Permits that are out, and machines that are cordoned."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql.schema import cordons, permits, reports
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.ports.guarding import Cordon


async def out(connection: AsyncConnection) -> dict[EntryId, str]:
    rows = await connection.execute(sa.select(permits).order_by(permits.c.entry))
    return {EntryId(row.entry): row.name for row in rows}


async def change(
    connection: AsyncConnection,
    granted: Mapping[EntryId, str],
    over: Collection[EntryId],
    at_ms: int,
) -> None:
    gone = sorted({*over, *granted})
    await connection.execute(permits.delete().where(permits.c.entry.in_(gone)))
    if granted:
        rows = [
            {"entry": entry, "name": name, "at_ms": at_ms}
            for entry, name in sorted(granted.items())
        ]
        await connection.execute(permits.insert(), rows)


async def cordoned(connection: AsyncConnection) -> dict[MachineName, Cordon]:
    rows = await connection.execute(sa.select(cordons).order_by(cordons.c.machine))
    return {
        MachineName(row.machine): Cordon(drain=row.drain, who=row.who, why=row.why, at_ms=row.at_ms)
        for row in rows
    }


async def cordon(connection: AsyncConnection, machine: MachineName, made: Cordon | None) -> None:
    await connection.execute(cordons.delete().where(cordons.c.machine == machine))
    if made is not None:
        row = {"drain": made.drain, "who": made.who, "why": made.why, "at_ms": made.at_ms}
        await connection.execute(cordons.insert().values(machine=machine, **row))


async def forget(connection: AsyncConnection, machine: MachineName) -> None:
    await connection.execute(reports.delete().where(reports.c.machine == machine))
    await connection.execute(cordons.delete().where(cordons.c.machine == machine))
    here = [entry for entry in await out(connection) if split_entry(entry)[2] == machine]
    await connection.execute(permits.delete().where(permits.c.entry.in_(here)))
