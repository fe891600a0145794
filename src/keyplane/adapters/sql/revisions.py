"""Revisions: the text of a fleet over time, each file's bytes kept once."""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import bodies, codec
from keyplane.adapters.sql.schema import bodies as bodies_table
from keyplane.adapters.sql.schema import revision_files, revisions
from keyplane.model.names import Digest
from keyplane.ports import ordering
from keyplane.ports.inventory import Change, Revision, RevisionMovedError, RevisionNote


async def find(connection: AsyncConnection, number: int | None) -> Revision | None:
    query = sa.select(revisions).order_by(revisions.c.number.desc()).limit(1)
    if number is not None:
        query = query.where(revisions.c.number == number)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    text = (
        sa.select(revision_files.c.path, bodies_table)
        .join(bodies_table, bodies_table.c.digest == revision_files.c.body)
        .where(revision_files.c.revision == row.number)
        .order_by(revision_files.c.path)
    )
    files = {each.path: each.body for each in await connection.execute(text)}
    if ordering.revision_digest(files) != row.digest:
        raise codec.DamagedError(f"revision {row.number}")
    return Revision(
        number=row.number,
        digest=row.digest,
        at_ms=row.at_ms,
        who=row.who,
        why=row.why,
        files=files,
        verb=row.verb,
        parent=row.parent,
    )


async def newest(connection: AsyncConnection) -> tuple[int, Digest] | None:
    """Its number and the digest of its text."""
    query = sa.select(revisions.c.number, revisions.c.digest)
    row = (await connection.execute(query.order_by(revisions.c.number.desc()).limit(1))).first()
    return None if row is None else (row.number, Digest(row.digest))


async def history(connection: AsyncConnection, limit: int) -> tuple[RevisionNote, ...]:
    query = sa.select(revisions).order_by(revisions.c.number.desc()).limit(limit)
    return tuple(
        RevisionNote(
            number=each.number,
            at_ms=each.at_ms,
            who=each.who,
            verb=each.verb,
            why=each.why,
            parent=each.parent,
            generation=None if each.generation is None else Digest(each.generation),
            moved=each.moved,
        )
        for each in await connection.execute(query)
    )


async def add(  # noqa: PLR0913  # a revision's own fields
    connection: AsyncConnection,
    files: Mapping[str, bytes],
    *,
    who: str,
    why: str,
    at_ms: int,
    verb: str = "",
) -> Revision:
    digest = ordering.revision_digest(files)
    last = await newest(connection)
    if last is not None and last[1] == digest:
        found = await find(connection, last[0])
        assert found is not None, "it is the newest"
        return found
    parent = None if last is None else last[0]
    made = Revision(
        number=ordering.revision_after(parent, same_text=False),
        digest=digest,
        at_ms=at_ms,
        who=who,
        why=why,
        files=dict(files),
        verb=verb,
        parent=parent,
    )
    named = codec.digests(files)
    await bodies.put(connection, {named[path]: content for path, content in files.items()})
    await connection.execute(
        revisions.insert().values(
            number=made.number,
            digest=digest,
            at_ms=at_ms,
            who=who,
            why=why,
            verb=verb,
            parent=parent,
        )
    )
    if named:
        rows = [
            {"revision": made.number, "path": path, "body": body} for path, body in named.items()
        ]
        await connection.execute(revision_files.insert(), rows)
    return made


async def change(
    connection: AsyncConnection, made: Change, *, generation: str, who: str, at_ms: int
) -> int:
    """Record the revision of a change, and what was planned from it; its number."""
    last = await newest(connection)
    standing = None if last is None else last[0]
    if standing != made.parent:
        raise RevisionMovedError(made.parent, standing)
    revision = await add(connection, made.files, who=who, why=made.why, at_ms=at_ms, verb=made.verb)
    planned = (
        revisions.update()
        .where(
            revisions.c.number == revision.number,
            sa.or_(revisions.c.generation.is_(None), revisions.c.generation != generation),
        )
        .values(generation=generation, moved=made.moved)
    )
    await connection.execute(planned)
    return revision.number
