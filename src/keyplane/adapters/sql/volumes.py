"""Orders on volumes, and backups."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql.schema import backups, volume_orders
from keyplane.model.volumes import Backup, OrderChange, VolumeOrder

_ORDER = msgspec.json.Decoder(VolumeOrder)
_BACKUP = msgspec.json.Decoder(Backup)


async def orders(connection: AsyncConnection) -> tuple[VolumeOrder, ...]:
    query = sa.select(volume_orders.c.body).order_by(volume_orders.c.entry, volume_orders.c.kind)
    return tuple(map(_ORDER.decode, (await connection.execute(query)).scalars()))


async def change(connection: AsyncConnection, made: OrderChange) -> None:
    for each in made.drop:
        row = volume_orders.delete().where(*_is(each), volume_orders.c.number == each.number)
        await connection.execute(row)
    for each in made.fill:
        row = volume_orders.update().where(*_is(each), volume_orders.c.number == each.number)
        await connection.execute(row.values(body=msgspec.json.encode(each)))
    for each in made.put:
        await connection.execute(volume_orders.delete().where(*_is(each)))
        await connection.execute(
            volume_orders.insert().values(
                entry=each.entry,
                kind=each.kind.value,
                number=each.number,
                body=msgspec.json.encode(each),
            )
        )


def _is(order: VolumeOrder) -> tuple[sa.ColumnElement[bool], ...]:
    return volume_orders.c.entry == order.entry, volume_orders.c.kind == order.kind.value


async def kept(connection: AsyncConnection) -> tuple[Backup, ...]:
    query = sa.select(backups.c.body).order_by(backups.c.number.desc())
    return tuple(map(_BACKUP.decode, (await connection.execute(query)).scalars()))


async def keep(connection: AsyncConnection, backup: Backup) -> None:
    there = sa.select(backups.c.number).where(backups.c.number == backup.number)
    if (await connection.execute(there)).scalar_one_or_none() is None:
        await connection.execute(
            backups.insert().values(number=backup.number, body=msgspec.json.encode(backup))
        )


async def forget(connection: AsyncConnection, number: int) -> bool:
    gone = await connection.execute(backups.delete().where(backups.c.number == number))
    return bool(gone.rowcount)
