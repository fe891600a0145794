"""What each machine was offered last, and what it said last."""

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import codec
from keyplane.adapters.sql.schema import offers, reports, sends
from keyplane.model.declaration import OfferNumber, Report
from keyplane.model.names import MachineName
from keyplane.ports import ordering
from keyplane.ports.inventory import Send, StaleWriteError, StoredOffer


async def last_offer(connection: AsyncConnection, machine: MachineName) -> StoredOffer | None:
    query = sa.select(offers).where(offers.c.machine == machine)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    return StoredOffer(
        machine=row.machine,
        offer=OfferNumber(row.epoch, row.counter),
        digest=row.digest,
        signed=row.signed,
    )


async def store_offer(connection: AsyncConnection, offer: StoredOffer, *, at_ms: int) -> None:
    last = await last_offer(connection, offer.machine)
    values = {
        "epoch": offer.offer.epoch,
        "counter": offer.offer.counter,
        "digest": offer.digest,
        "signed": offer.signed,
        "at_ms": at_ms,
    }
    if last is not None and offer.offer <= last.offer:
        raise StaleWriteError(
            f"{offer.machine} was offered {last.offer} already, and {offer.offer} is not above"
        )
    sent = {
        "epoch": offer.offer.epoch,
        "counter": offer.offer.counter,
        "carried": codec.encode(offer.carried),
        "at_ms": at_ms,
    }
    for table, row in ((offers, values), (sends, sent)):
        await connection.execute(table.delete().where(table.c.machine == offer.machine))
        await connection.execute(table.insert().values(machine=offer.machine, **row))


async def all_sends(connection: AsyncConnection) -> dict[MachineName, Send]:
    rows = await connection.execute(sa.select(sends).order_by(sends.c.machine))
    return {
        MachineName(row.machine): Send(
            offer=OfferNumber(row.epoch, row.counter),
            at_ms=row.at_ms,
            carried=codec.builds(row.carried),
        )
        for row in rows
    }


async def record_report(connection: AsyncConnection, report: Report, *, received_ms: int) -> bool:
    query = sa.select(reports.c.lives).where(reports.c.machine == report.machine)
    before = (await connection.execute(query)).scalar_one_or_none()
    lives = ordering.heard(
        () if before is None else codec.lives(before),
        boot=report.boot,
        sequence=report.sequence,
        now_ms=received_ms,
    )
    if lives is None:
        return False
    values = {
        "received_ms": received_ms,
        "lives": codec.encode(lives),
        "report": codec.encode(report),
    }
    if before is None:
        await connection.execute(reports.insert().values(machine=report.machine, **values))
    else:
        await connection.execute(
            reports.update().where(reports.c.machine == report.machine).values(**values)
        )
    return True


async def all_reports(connection: AsyncConnection) -> list[tuple[int, bytes]]:
    """When each came, and its bytes, by machine."""
    query = sa.select(reports.c.received_ms, reports.c.report).order_by(reports.c.machine)
    return [(each.received_ms, each.report) for each in await connection.execute(query)]
