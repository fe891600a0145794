"""The audit log: one row for each thing that somebody changed."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import codec
from keyplane.adapters.sql.schema import audit

Json = Any


async def write(
    connection: AsyncConnection, *, who: str, what: str, detail: Json, at_ms: int
) -> None:
    """Within the transaction of what it tells of."""
    values = {"at_ms": at_ms, "who": who, "what": what, "detail": codec.encode(detail)}
    await connection.execute(audit.insert().values(values))


async def newest(connection: AsyncConnection, limit: int) -> tuple[tuple[int, str, str, Json], ...]:
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit)
    return tuple(
        (each.at_ms, each.who, each.what, codec.json(each.detail))
        for each in await connection.execute(query)
    )
