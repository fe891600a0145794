"""Whether the fleet is frozen, and why."""

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql.schema import freezes


async def why(connection: AsyncConnection) -> str:
    return (await connection.execute(sa.select(freezes.c.why))).scalar_one_or_none() or ""


async def say(connection: AsyncConnection, said: str) -> None:
    await connection.execute(freezes.delete())
    if said:
        await connection.execute(freezes.insert().values(id=1, why=said))
