"""Rollouts and their bases. What a state means is not known here."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import bodies, codec, plans
from keyplane.adapters.sql.schema import bodies as bodies_table
from keyplane.adapters.sql.schema import rollout_base, rollouts
from keyplane.model.names import Digest, EntryId
from keyplane.ports import inventory, ordering


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    row: sa.RowMapping
    base: list[codec.Item]


async def latest(connection: AsyncConnection) -> int:
    """Its number; 0 if there was none."""
    query = sa.select(sa.func.max(rollouts.c.number))
    return (await connection.execute(query)).scalar_one() or 0


async def find(connection: AsyncConnection, number: int | None) -> Found | None:
    last = await latest(connection)
    wanted = last if number is None else number
    query = sa.select(rollouts).where(rollouts.c.number == wanted)
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        return None
    return Found(row=row, base=await _base(connection, row) if wanted == last else [])


async def _base(connection: AsyncConnection, row: sa.RowMapping) -> list[codec.Item]:
    base: dict[str, codec.Item] = {}
    if row["base_plan"] is not None:
        base = {
            item.name: item for item in await plans.items(connection, row["base_plan"], "entry")
        }
    differences = (
        sa.select(rollout_base.c.entry, bodies_table)
        .outerjoin(bodies_table, bodies_table.c.digest == rollout_base.c.body)
        .where(rollout_base.c.rollout == row["number"])
    )
    for each in await connection.execute(differences):
        base.pop(each.entry, None)
        if each.digest is not None:
            base[each.entry] = codec.Item(
                kind="entry", name=each.entry, digest=each.digest, body=each.body
            )
    return list(base.values())


def from_row(found: Found) -> inventory.StoredRollout:
    return inventory.StoredRollout(
        number=found.row["number"],
        generation=found.row["generation"],
        created_ms=found.row["created_ms"],
        who=found.row["who"],
        open=found.row["open"],
        state=found.row["state"],
        base=codec.entries(found.base),
        request=found.row["request"],
    )


async def supersede(connection: AsyncConnection) -> set[str]:
    """Close all, drop their bases and the oldest of them; gives bodies now maybe unused."""
    used = sa.select(rollout_base.c.body).where(rollout_base.c.body.is_not(None))
    named = set((await connection.execute(used)).scalars())
    await connection.execute(rollout_base.delete())
    current = sa.or_(rollouts.c.open, rollouts.c.base_plan.is_not(None))
    await connection.execute(rollouts.update().where(current).values(open=False, base_plan=None))
    oldest = await latest(connection) + 1 - ordering.ROLLOUTS_KEPT
    await connection.execute(rollouts.delete().where(rollouts.c.number <= oldest))
    return named


async def begin(
    connection: AsyncConnection,
    made: inventory.StoredRollout,
    *,
    parent: int | None,
    differences: Mapping[EntryId, Digest | None],
) -> None:
    """Write a new one; its base is the parent plan but for the differences."""
    await bodies.put(
        connection,
        {digest: made.base[entry] for entry, digest in differences.items() if digest is not None},
    )
    await connection.execute(
        rollouts.insert().values(
            number=made.number,
            generation=made.generation,
            created_ms=made.created_ms,
            who=made.who,
            open=made.open,
            state=made.state,
            base_plan=parent,
            request=made.request,
        )
    )
    if differences:
        rows = [
            {"rollout": made.number, "entry": entry, "body": digest}
            for entry, digest in differences.items()
        ]
        await connection.execute(rollout_base.insert(), rows)


async def save(connection: AsyncConnection, number: int, *, state: bytes, is_open: bool) -> None:
    last = await latest(connection)
    saved = rollouts.update().where(rollouts.c.number == number)
    if is_open and number != last:
        saved = saved.where(sa.false())
    if not (await connection.execute(saved.values(state=state, open=is_open))).rowcount:
        raise inventory.StaleWriteError(
            f"rollout {number} cannot be saved so: {last} is the latest"
        )
