"""The lease: who may write. Reads no clock; its time is the caller's."""

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql.schema import lease
from keyplane.ports.inventory import LeaseLostError
from keyplane.ports.leases import Lease


async def check(connection: AsyncConnection, holder: str | None) -> None:
    """Lock the lease's row until the transaction ends, and refuse anybody but its holder."""
    locked = sa.select(lease.c.holder).with_for_update()
    held_by = (await connection.execute(locked)).scalar_one()
    if held_by != holder:
        raise LeaseLostError(holder, held_by)


async def take(connection: AsyncConnection, holder: str, *, now_ms: int, until_ms: int) -> bool:
    row = (await connection.execute(sa.select(lease).with_for_update())).one()
    if row.holder not in (None, holder) and row.until_ms > now_ms:
        return False
    await connection.execute(lease.update().values(holder=holder, until_ms=until_ms))
    return True


async def held(connection: AsyncConnection) -> Lease | None:
    row = (await connection.execute(sa.select(lease))).one()
    return None if row.holder is None else Lease(row.holder, row.until_ms)


async def release(connection: AsyncConnection, holder: str | None) -> None:
    if holder is not None:
        await connection.execute(
            lease.update().where(lease.c.holder == holder).values(holder=None, until_ms=0)
        )
