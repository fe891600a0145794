"""Plans as spans of items: writes what moved, reads any plan that is kept, forgets the others."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import bodies, codec
from keyplane.adapters.sql.schema import bodies as bodies_table
from keyplane.adapters.sql.schema import plan_items, plans, target
from keyplane.model.names import Digest
from keyplane.ports import ordering
from keyplane.ports.inventory import KeptGeneration

Key = tuple[str, str]
"""Kind and name of an item."""

Row = dict[str, Any]
"""A row of `plans`."""


async def target_row(connection: AsyncConnection) -> Row | None:
    query = sa.select(plans).join(target, target.c.plan == plans.c.seq)
    found = (await connection.execute(query)).mappings().one_or_none()
    return None if found is None else {str(name): value for name, value in found.items()}


async def row(connection: AsyncConnection, generation: Digest) -> Row | None:
    query = (
        sa.select(plans)
        .where(plans.c.generation == generation)
        .order_by(plans.c.seq.desc())
        .limit(1)
    )
    found = (await connection.execute(query)).mappings().one_or_none()
    return None if found is None else {str(name): value for name, value in found.items()}


async def items(connection: AsyncConnection, seq: int, kind: str | None = None) -> list[codec.Item]:
    """All that a kept plan consists of, or all of one kind, by name."""
    query = (
        sa.select(plan_items.c.kind, plan_items.c.name, bodies_table)
        .join(bodies_table, bodies_table.c.digest == plan_items.c.body)
        .where(
            plan_items.c.since <= seq,
            sa.or_(plan_items.c.until.is_(None), plan_items.c.until > seq),
        )
        .order_by(plan_items.c.name)
    )
    if kind is not None:
        query = query.where(plan_items.c.kind == kind)
    return [
        codec.Item(kind=each.kind, name=each.name, digest=each.digest, body=each.body)
        for each in await connection.execute(query)
    ]


async def standing(connection: AsyncConnection) -> dict[Key, Digest]:
    """The digest of each item of the plan committed last."""
    query = sa.select(plan_items.c.kind, plan_items.c.name, plan_items.c.body).where(
        plan_items.c.until.is_(None)
    )
    return {(each.kind, each.name): each.body for each in await connection.execute(query)}


async def add(
    connection: AsyncConnection,
    head: Mapping[str, Any],
    *,
    before: Mapping[Key, Digest],
    after: Mapping[Key, Digest],
    values: Mapping[Key, object],
) -> None:
    """Make a plan the target: write its row, and the items in which it differs from the last."""
    seq = head["seq"]
    gone = [key for key, digest in before.items() if after.get(key) != digest]
    come = {key: digest for key, digest in after.items() if before.get(key) != digest}
    await bodies.put(connection, {digest: values[key] for key, digest in come.items()})
    await connection.execute(plans.insert().values(**head))
    if gone:
        end = (
            plan_items.update()
            .where(
                plan_items.c.kind == sa.bindparam("of_kind"),
                plan_items.c.name == sa.bindparam("of_name"),
                plan_items.c.until.is_(None),
            )
            .values(until=seq)
        )
        await connection.execute(end, [{"of_kind": kind, "of_name": name} for kind, name in gone])
    if come:
        rows = [
            {"kind": kind, "name": name, "since": seq, "body": digest}
            for (kind, name), digest in come.items()
        ]
        await connection.execute(plan_items.insert(), rows)
    await connection.execute(target.update().values(plan=seq))


async def next_seq(connection: AsyncConnection) -> int:
    last = (await connection.execute(sa.select(sa.func.max(plans.c.seq)))).scalar_one()
    return (last or 0) + 1


async def kept(connection: AsyncConnection) -> tuple[KeptGeneration, ...]:
    """Each generation once, as it was committed last, the newest first."""
    query = sa.select(plans).order_by(plans.c.seq.desc())
    found: dict[str, KeptGeneration] = {}
    for each in await connection.execute(query):
        found.setdefault(
            each.generation,
            KeptGeneration(
                generation=Digest(each.generation),
                revision=each.revision,
                who=each.who,
                at_ms=each.at_ms,
            ),
        )
    return tuple(found.values())


async def forget_old(connection: AsyncConnection, needed: set[int]) -> set[str]:
    """Drop all plans but the newest generations and those needed; gives bodies now maybe unused."""
    query = sa.select(plans.c.seq, plans.c.generation).order_by(plans.c.seq.desc())
    kept = set(needed)
    generations: set[str] = set()
    dropped: list[int] = []
    for each in await connection.execute(query):
        if each.generation not in generations and len(generations) < ordering.GENERATIONS_KEPT:
            generations.add(each.generation)
            kept.add(each.seq)
        if each.seq not in kept:
            dropped.append(each.seq)
    if not dropped:
        return set()
    await connection.execute(plans.delete().where(plans.c.seq.in_(dropped)))
    orphaned = sa.and_(
        plan_items.c.until.is_not(None),
        ~sa.exists().where(plans.c.seq >= plan_items.c.since, plans.c.seq < plan_items.c.until),
    )
    named = set((await connection.execute(sa.select(plan_items.c.body).where(orphaned))).scalars())
    await connection.execute(plan_items.delete().where(orphaned))
    return named
