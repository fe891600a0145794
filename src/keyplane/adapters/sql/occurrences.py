"""What happened on the machines, as they told it: the last of each entry."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import audits, bodies
from keyplane.adapters.sql.schema import histories, occurrences
from keyplane.model.declaration import Report
from keyplane.model.names import EntryId, MachineName, UnitName
from keyplane.model.occurrence import Act, Cause, Occurrence
from keyplane.ports import ordering
from keyplane.ports.inventory import StoredOccurrence


async def record(connection: AsyncConnection, reports: Sequence[Report]) -> None:
    """Take in what reports tell, one after another, and was not told before."""
    telling = [each for each in reports if each.occurrences]
    if not telling:
        return
    known = await _known(connection, {each.machine for each in telling})
    rows: list[dict[str, object]] = []
    last: dict[tuple[MachineName, str], int] = {}
    for report in telling:
        here = known.setdefault(report.machine, {})
        found = ordering.unheard(here, report)
        if not found:
            continue
        here[report.history] = report.occurrences[-1].number
        last[report.machine, report.history] = here[report.history]
        rows += [_row(report.machine, each) for each in found]
        for each in ordering.said_on_machine(found):
            detail = {"entry": each.entry, "machine": report.machine}
            await audits.write(
                connection, who=each.who, what=each.act.value, detail=detail, at_ms=each.at_ms
            )
    if not rows:
        return
    await connection.execute(_FORGET, [{"of": m, "named": name} for m, name in last])
    heads = [{"machine": m, "name": name, "last": number} for (m, name), number in last.items()]
    await connection.execute(histories.insert(), heads)
    await connection.execute(occurrences.insert(), rows)
    touched = sorted({(str(row["machine"]), str(row["entry"])) for row in rows})
    await connection.execute(_PRUNE, [{"of": m, "about": entry} for m, entry in touched])


def _row(machine: MachineName, each: Occurrence) -> dict[str, object]:
    return {
        "machine": machine,
        "entry": each.entry,
        "number": each.number,
        "at_ms": each.at_ms,
        "unit": each.unit,
        "act": each.act.value,
        "cause": each.cause.value,
        "detail": each.detail,
    }


async def _known(
    connection: AsyncConnection, machines: Collection[MachineName]
) -> dict[MachineName, dict[str, int]]:
    found: dict[MachineName, dict[str, int]] = {}
    for chunk in bodies.chunks(sorted(machines)):
        query = sa.select(histories).where(histories.c.machine.in_(chunk))
        for row in await connection.execute(query):
            found.setdefault(MachineName(row.machine), {})[row.name] = row.last
    return found


def _of_entry() -> sa.ColumnElement[bool]:
    return sa.and_(
        occurrences.c.machine == sa.bindparam("of"), occurrences.c.entry == sa.bindparam("about")
    )


_FORGET = histories.delete().where(
    histories.c.machine == sa.bindparam("of"), histories.c.name == sa.bindparam("named")
)
_PRUNE = occurrences.delete().where(
    _of_entry(),
    occurrences.c.id
    <= (
        sa.select(occurrences.c.id)
        .where(_of_entry())
        .order_by(occurrences.c.id.desc())
        .offset(ordering.OCCURRENCES_KEPT)
        .limit(1)
        .scalar_subquery()
    ),
)
"""All but the last of an entry. Nothing is below what an entry with fewer does not have."""


async def find(  # noqa: PLR0913  # what is looked for
    connection: AsyncConnection,
    machine: MachineName,
    entry: EntryId | None,
    *,
    after: int,
    since_ms: int,
    limit: int,
) -> tuple[StoredOccurrence, ...]:
    query = (
        sa.select(occurrences)
        .where(occurrences.c.machine == machine)
        .where(occurrences.c.id > after, occurrences.c.at_ms >= since_ms)
        .order_by(occurrences.c.id.desc())
        .limit(limit)
    )
    if entry is not None:
        query = query.where(occurrences.c.entry.in_([entry, ordering.WHOLE_MACHINE]))
    rows = list(await connection.execute(query))
    return tuple(
        StoredOccurrence(
            id=row.id,
            machine=machine,
            occurrence=Occurrence(
                number=row.number,
                at_ms=row.at_ms,
                entry=EntryId(row.entry),
                unit=UnitName(row.unit),
                act=Act(row.act),
                cause=Cause(row.cause),
                detail=row.detail,
            ),
        )
        for row in reversed(rows)
    )
