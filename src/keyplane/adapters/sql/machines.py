"""What each machine was offered last, and what it said last."""

from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import bodies, codec
from keyplane.adapters.sql.schema import offers, reports, sends
from keyplane.model.declaration import OfferNumber, Report
from keyplane.model.names import MachineName
from keyplane.ports import ordering
from keyplane.ports.inventory import Send, StaleWriteError, StoredOffer


async def last_offers(
    connection: AsyncConnection, asked: Iterable[MachineName]
) -> dict[MachineName, StoredOffer]:
    found: dict[MachineName, StoredOffer] = {}
    for chunk in bodies.chunks(asked):
        query = sa.select(offers).where(offers.c.machine.in_(chunk))
        for row in await connection.execute(query):
            found[MachineName(row.machine)] = StoredOffer(
                machine=row.machine,
                offer=OfferNumber(row.epoch, row.counter),
                digest=row.digest,
                signed=row.signed,
            )
    return found


async def store_offers(
    connection: AsyncConnection, made: Iterable[StoredOffer], *, at_ms: int
) -> None:
    for chunk in bodies.chunks(made):
        await _check_above(connection, chunk)
        numbers = [
            {
                "machine": each.machine,
                "epoch": each.offer.epoch,
                "counter": each.offer.counter,
                "at_ms": at_ms,
            }
            for each in chunk
        ]
        said = [{"digest": each.digest, "signed": each.signed} for each in chunk]
        sent = [{"carried": codec.encode(each.carried)} for each in chunk]
        for table, rows in ((offers, said), (sends, sent)):
            here = table.c.machine.in_([each.machine for each in chunk])
            await connection.execute(table.delete().where(here))
            values = [{**number, **row} for number, row in zip(numbers, rows, strict=True)]
            await connection.execute(table.insert(), values)


async def _check_above(connection: AsyncConnection, made: Sequence[StoredOffer]) -> None:
    query = sa.select(offers.c.machine, offers.c.epoch, offers.c.counter).where(
        offers.c.machine.in_([each.machine for each in made])
    )
    last = {
        row.machine: OfferNumber(row.epoch, row.counter) for row in await connection.execute(query)
    }
    for each in made:
        if each.machine in last and each.offer <= last[each.machine]:
            raise StaleWriteError(
                f"{each.machine} was offered {last[each.machine]} already, and {each.offer} is not"
                " above"
            )


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


async def record_reports(
    connection: AsyncConnection, told: Sequence[Report], *, received_ms: int
) -> list[bool]:
    lives = await _lives(connection, {each.machine for each in told})
    newest: list[bool] = []
    taken: dict[MachineName, Report] = {}
    for each in told:
        now = ordering.heard(
            lives.get(each.machine, ()),
            boot=each.boot,
            sequence=each.sequence,
            now_ms=received_ms,
        )
        newest.append(now is not None)
        if now is not None:
            lives[each.machine] = now
            taken[each.machine] = each
    for chunk in bodies.chunks(taken):
        rows = [
            {
                "machine": machine,
                "received_ms": received_ms,
                "lives": codec.encode(lives[machine]),
                "report": codec.encode(taken[machine]),
            }
            for machine in chunk
        ]
        await connection.execute(reports.delete().where(reports.c.machine.in_(chunk)))
        await connection.execute(reports.insert(), rows)
    return newest


async def _lives(
    connection: AsyncConnection, machines: Collection[MachineName]
) -> dict[MachineName, tuple[ordering.Life, ...]]:
    found: dict[MachineName, tuple[ordering.Life, ...]] = {}
    for chunk in bodies.chunks(sorted(machines)):
        query = sa.select(reports.c.machine, reports.c.lives).where(reports.c.machine.in_(chunk))
        for row in await connection.execute(query):
            found[MachineName(row.machine)] = codec.lives(row.lives)
    return found


async def all_reports(connection: AsyncConnection) -> list[tuple[int, bytes]]:
    """When each came, and its bytes, by machine."""
    query = sa.select(reports.c.received_ms, reports.c.report).order_by(reports.c.machine)
    return [(each.received_ms, each.report) for each in await connection.execute(query)]
