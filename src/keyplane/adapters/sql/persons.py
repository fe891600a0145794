"""What people said last of each entry."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import audits
from keyplane.adapters.sql.schema import words
from keyplane.model.declaration import Word
from keyplane.model.names import EntryId


async def say(
    connection: AsyncConnection, entry: EntryId, *, stop: bool, who: str, at_ms: int
) -> Word:
    highest = (await connection.execute(sa.select(sa.func.max(words.c.number)))).scalar_one()
    # Above all that a lost inventory may have had, where clocks go as they should.
    word = Word(number=max(at_ms, (highest or 0) + 1), stop=stop, who=who, at_ms=at_ms)
    await connection.execute(words.delete().where(words.c.entry == entry))
    await connection.execute(
        words.insert().values(entry=entry, number=word.number, stop=stop, who=who, at_ms=at_ms)
    )
    await audits.write(
        connection,
        who=who,
        what="stop" if stop else "start",
        detail={"entry": entry, "number": word.number},
        at_ms=at_ms,
    )
    return word


async def said(connection: AsyncConnection) -> dict[EntryId, Word]:
    rows = await connection.execute(sa.select(words).order_by(words.c.entry))
    return {
        EntryId(row.entry): Word(number=row.number, stop=row.stop, who=row.who, at_ms=row.at_ms)
        for row in rows
    }


async def forget(connection: AsyncConnection, entries: Collection[EntryId]) -> None:
    await connection.execute(words.delete().where(words.c.entry.in_(sorted(entries))))
