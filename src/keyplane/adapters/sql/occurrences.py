"""What happened on the machines, as they told it: the last of each entry."""

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import audits
from keyplane.adapters.sql.schema import histories, occurrences
from keyplane.model.declaration import Report
from keyplane.model.names import EntryId, MachineName, UnitName
from keyplane.model.occurrence import Act, Cause, Occurrence
from keyplane.ports import ordering
from keyplane.ports.inventory import StoredOccurrence


async def record(connection: AsyncConnection, report: Report) -> None:
    """Take in what a report tells and was not told before."""
    if not report.occurrences:
        return
    known = await _known(connection, report.machine)
    found = ordering.unheard(known, report)
    if not found:
        return
    row = {"machine": report.machine, "name": report.history}
    here = sa.and_(histories.c.machine == report.machine, histories.c.name == report.history)
    last = report.occurrences[-1].number
    if report.history in known:
        await connection.execute(histories.update().where(here).values(last=last))
    else:
        await connection.execute(histories.insert().values(**row, last=last))
    await connection.execute(
        occurrences.insert(),
        [
            {
                "machine": report.machine,
                "entry": each.entry,
                "number": each.number,
                "at_ms": each.at_ms,
                "unit": each.unit,
                "act": each.act.value,
                "cause": each.cause.value,
                "detail": each.detail,
            }
            for each in found
        ],
    )
    for each in ordering.said_on_machine(found):
        detail = {"entry": each.entry, "machine": report.machine}
        await audits.write(
            connection, who=each.who, what=each.act.value, detail=detail, at_ms=each.at_ms
        )
    for entry in sorted({each.entry for each in found}):
        await _prune(connection, report.machine, entry)


async def _known(connection: AsyncConnection, machine: MachineName) -> dict[str, int]:
    query = sa.select(histories.c.name, histories.c.last).where(histories.c.machine == machine)
    return {row.name: row.last for row in await connection.execute(query)}


async def _prune(connection: AsyncConnection, machine: MachineName, entry: EntryId) -> None:
    of_entry = sa.and_(occurrences.c.machine == machine, occurrences.c.entry == entry)
    oldest = (
        sa.select(occurrences.c.id)
        .where(of_entry)
        .order_by(occurrences.c.id.desc())
        .offset(ordering.OCCURRENCES_KEPT)
        .limit(1)
    )
    first = (await connection.execute(oldest)).scalar_one_or_none()
    if first is not None:
        await connection.execute(occurrences.delete().where(of_entry, occurrences.c.id <= first))


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
