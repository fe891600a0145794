"""Bodies: bytes under their digest, each once, for as long as a row names them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import codec
from keyplane.adapters.sql.schema import bodies, plan_items, revision_files, rollout_base

CHUNK = 500
"""Far below the number of parameters that either database takes, and enough to cost no round trips."""

T = TypeVar("T")


def chunks(items: Iterable[T]) -> Iterator[list[T]]:
    chunk: list[T] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


async def put(connection: AsyncConnection, values: Mapping[str, object]) -> None:
    """Write those values, by the digest of their bytes, that are not there."""
    for chunk in chunks(sorted(values)):
        known = sa.select(bodies.c.digest).where(bodies.c.digest.in_(chunk))
        there = set((await connection.execute(known)).scalars())
        rows = [
            {"digest": digest, "body": codec.encode(values[digest])}
            for digest in chunk
            if digest not in there
        ]
        if rows:
            await connection.execute(bodies.insert(), rows)


async def drop_unused(connection: AsyncConnection, digests: Iterable[str]) -> None:
    """Delete those of these bodies that nothing names any more."""
    used = sa.or_(
        *(
            sa.exists().where(table.c.body == bodies.c.digest)
            for table in (plan_items, rollout_base, revision_files)
        )
    )
    for chunk in chunks(sorted(set(digests))):
        await connection.execute(bodies.delete().where(bodies.c.digest.in_(chunk), ~used))
