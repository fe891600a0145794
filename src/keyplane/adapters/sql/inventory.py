"""The inventory in SQL: each call of the port as one transaction. Decides nothing itself."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self

from sqlalchemy.ext.asyncio import AsyncConnection

from keyplane.adapters.sql import (
    audits,
    bodies,
    codec,
    engine,
    facts,
    faults,
    freezes,
    lease,
    occurrences,
    permits,
    persons,
    plans,
    revisions,
    rollouts,
    schema,
)
from keyplane.adapters.sql import machines as machine_rows
from keyplane.adapters.sql import volumes as volume_rows
from keyplane.adapters.sql.whole import Whole
from keyplane.model.declaration import Report, Word
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.volumes import Backup, OrderChange, VolumeOrder, given_away
from keyplane.ports import inventory as port
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.guarding import Cordon
from keyplane.ports.leases import Lease

Json = Any

TURN_MAX_S = 3 * engine.LOCK_MAX_S
"""While somebody else has the database locked, each write that waits here would wait for all before
it, one lock's wait after another: people are answered sooner."""


class SqlInventory(Whole):
    """The port `Inventory`, in SQLite or PostgreSQL. Made by `open`."""

    def __init__(self, engines: engine.Engines, holder: str | None) -> None:
        super().__init__()
        self._engines = engines
        self._holder = holder
        self._turn = asyncio.Lock()
        """Writes of one process wait here, in order, and not inside the database by polling."""

    @classmethod
    async def open(cls, url: str, *, holder: str | None = None) -> Self:
        """Open `sqlite:///PATH` or `postgresql://…`, migrating it first where it is older.

        The holder is who writes, as the port says; without one, writes need a free lease.
        """
        with faults.translated("at the URL given"):
            engines = engine.connect(url)
        opened = cls(engines, holder)
        try:
            with faults.translated(engines.name):
                if engines.ready_file is not None:
                    await asyncio.to_thread(engines.ready_file)
                async with engines.reader.connect() as connection:
                    current = await connection.run_sync(schema.is_current)
                if not current:
                    from keyplane.adapters.sql import migrate

                    async with engines.writer.begin() as connection:
                        await connection.run_sync(migrate.upgrade, engines.name)
        except BaseException:
            await opened.close()
            raise
        return opened

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[AsyncConnection]:
        with faults.translated(self._engines.name):
            async with self._engines.reader.connect() as connection:
                yield connection

    @asynccontextmanager
    async def _taken_turn(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(TURN_MAX_S):
                await self._turn.acquire()
        except TimeoutError:
            raise port.InventoryUnavailableError(
                f"inventory {self._engines.name}: the writes before this one take too long"
            ) from None
        try:
            yield
        finally:
            self._turn.release()

    @asynccontextmanager
    async def _unfenced(self) -> AsyncGenerator[AsyncConnection]:
        async with self._taken_turn():
            with faults.translated(self._engines.name):
                async with self._engines.writer.begin() as connection:
                    yield connection

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[AsyncConnection]:
        async with self._unfenced() as connection:
            await lease.check(connection, self._holder)
            yield connection

    async def take_lease(self, holder: str, *, now_ms: int, until_ms: int) -> bool:
        self._holder = holder
        async with self._unfenced() as connection:
            return await lease.take(connection, holder, now_ms=now_ms, until_ms=until_ms)

    async def lease(self) -> Lease | None:
        async with self._reading() as connection:
            return await lease.held(connection)

    async def release_lease(self) -> None:
        async with self._unfenced() as connection:
            await lease.release(connection, self._holder)

    async def add_revision(
        self, files: Mapping[str, bytes], *, who: str, why: str, at_ms: int
    ) -> port.Revision:
        async with self._writing() as connection:
            return await revisions.add(connection, files, who=who, why=why, at_ms=at_ms)

    async def revision(self, number: int | None = None) -> port.Revision | None:
        async with self._reading() as connection:
            return await revisions.find(connection, number)

    async def history(self, limit: int) -> tuple[port.RevisionNote, ...]:
        async with self._reading() as connection:
            return await revisions.history(connection, limit)

    async def generations(self) -> tuple[port.KeptGeneration, ...]:
        async with self._reading() as connection:
            return await plans.kept(connection)

    async def target(self) -> port.StoredPlan | None:
        async with self._reading() as connection:
            return await self._stored(connection, await plans.target_row(connection))

    async def plan(self, generation: Digest) -> port.StoredPlan | None:
        async with self._reading() as connection:
            return await self._stored(connection, await plans.row(connection, generation))

    async def _stored(
        self, connection: AsyncConnection, row: plans.Row | None
    ) -> port.StoredPlan | None:
        if row is None:
            return None
        items = await plans.items(connection, row["seq"])
        return await asyncio.to_thread(codec.stored_plan, row, items)

    async def commit(  # noqa: PLR0913  # the port's own shape
        self,
        stored: port.StoredPlan,
        *,
        parent: Digest | None,
        rollout: bytes,
        base: Mapping[EntryId, port.PlannedEntry],
        who: str,
        at_ms: int,
        change: port.Change | None = None,
        volumes: OrderChange | None = None,
        request: str = "",
    ) -> port.StoredRollout:
        assert stored.plan.entries.keys() == stored.entries.keys()
        values = codec.parts(stored)
        base = dict(base)
        after, based = await asyncio.to_thread(_digests, values, base)
        async with self._writing() as connection:
            target = await plans.target_row(connection)
            standing = None if target is None else target["generation"]
            if standing != parent:
                raise port.TargetMovedError(parent, standing)
            revision = stored.revision
            if change is not None:
                revision = await revisions.change(
                    connection, change, generation=stored.plan.generation, who=who, at_ms=at_ms
                )
                assert revision == stored.revision, "the plan names the revision that it is of"
            before = await plans.standing(connection)
            unused = await rollouts.supersede(connection)
            head: plans.Row = {
                "seq": await plans.next_seq(connection),
                "generation": stored.plan.generation,
                "format": stored.plan.format,
                "fleet": stored.plan.fleet,
                "revision": revision,
                "who": who,
                "at_ms": at_ms,
            }
            await plans.add(connection, head, before=before, after=after, values=values)
            made = port.StoredRollout(
                number=await rollouts.latest(connection) + 1,
                generation=Digest(stored.plan.generation),
                created_ms=at_ms,
                who=who,
                open=True,
                state=rollout,
                base=base,
                request=request,
            )
            parent_seq = None if target is None else target["seq"]
            await rollouts.begin(
                connection,
                made,
                parent=parent_seq,
                differences=_differences(before, based),
            )
            if change is not None:
                if change.forgets is not None:
                    await permits.forget(connection, change.forgets)
                detail = change.audited(revision, stored.plan.generation, made.number)
                await audits.write(
                    connection, who=who, what=change.verb, detail=detail, at_ms=at_ms
                )
                for machine, said in sorted(change.facts.items()):
                    await facts.take(connection, machine, said)
            if volumes is not None:
                await volume_rows.change(connection, volumes)
            needed = {head["seq"]} if parent_seq is None else {head["seq"], parent_seq}
            unused |= await plans.forget_old(connection, needed)
            await bodies.drop_unused(connection, unused)
        return made

    async def rollout(self, number: int | None = None) -> port.StoredRollout | None:
        async with self._reading() as connection:
            found = await rollouts.find(connection, number)
            return None if found is None else await asyncio.to_thread(rollouts.from_row, found)

    async def save_rollout(self, number: int, *, state: bytes, is_open: bool) -> None:
        async with self._writing() as connection:
            await rollouts.save(connection, number, state=state, is_open=is_open)

    async def store_offers(self, offers: Sequence[port.StoredOffer], *, at_ms: int) -> None:
        async with self._writing() as connection:
            await machine_rows.store_offers(connection, offers, at_ms=at_ms)

    async def last_offer(self, machine: MachineName) -> port.StoredOffer | None:
        return (await self.last_offers([machine])).get(machine)

    async def last_offers(
        self, machines: Collection[MachineName]
    ) -> Mapping[MachineName, port.StoredOffer]:
        async with self._reading() as connection:
            return await machine_rows.last_offers(connection, machines)

    async def sends(self) -> Mapping[MachineName, port.Send]:
        async with self._reading() as connection:
            return await machine_rows.all_sends(connection)

    async def frozen(self) -> str:
        async with self._reading() as connection:
            return await freezes.why(connection)

    async def freeze(self, why: str) -> None:
        async with self._writing() as connection:
            await freezes.say(connection, why)

    async def record_reports(
        self, reports: Sequence[Report], *, received_ms: int
    ) -> Sequence[bool]:
        async with self._writing() as connection:
            await occurrences.record(connection, reports)
            bare = [replace(each, occurrences=()) for each in reports]
            return await machine_rows.record_reports(connection, bare, received_ms=received_ms)

    async def reports(self) -> Mapping[MachineName, port.StoredReport]:
        async with self._reading() as connection:
            return await asyncio.to_thread(
                codec.reports, await machine_rows.all_reports(connection)
            )

    async def occurrences(
        self,
        machine: MachineName,
        entry: EntryId | None,
        *,
        after: int,
        since_ms: int,
        limit: int,
    ) -> tuple[port.StoredOccurrence, ...]:
        async with self._reading() as connection:
            return await occurrences.find(
                connection, machine, entry, after=after, since_ms=since_ms, limit=limit
            )

    async def record_facts(
        self, machine: MachineName, said: Mapping[str, Json], *, received_ms: int
    ) -> StoredFacts:
        async with self._writing() as connection:
            return await facts.record(connection, machine, said, received_ms=received_ms)

    async def take_facts(self, machine: MachineName, said: Mapping[str, Json]) -> StoredFacts:
        async with self._writing() as connection:
            return await facts.take(connection, machine, said)

    async def facts(self) -> Mapping[MachineName, StoredFacts]:
        async with self._reading() as connection:
            return await facts.known(connection)

    async def say(self, entry: EntryId, *, stop: bool, who: str, at_ms: int) -> Word:
        async with self._writing() as connection:
            return await persons.say(connection, entry, stop=stop, who=who, at_ms=at_ms)

    async def words(self) -> Mapping[EntryId, Word]:
        async with self._reading() as connection:
            return await persons.said(connection)

    async def forget_words(self, entries: Collection[EntryId]) -> None:
        async with self._writing() as connection:
            await persons.forget(connection, entries)

    async def permits(self) -> Mapping[EntryId, str]:
        async with self._reading() as connection:
            return await permits.out(connection)

    async def change_permits(
        self, *, granted: Mapping[EntryId, str], over: Collection[EntryId], at_ms: int
    ) -> None:
        async with self._writing() as connection:
            await permits.change(connection, granted, over, at_ms)

    async def cordons(self) -> Mapping[MachineName, Cordon]:
        async with self._reading() as connection:
            return await permits.cordoned(connection)

    async def cordon(self, machine: MachineName, cordon: Cordon | None) -> None:
        async with self._writing() as connection:
            await permits.cordon(connection, machine, cordon)

    async def volume_orders(self) -> tuple[VolumeOrder, ...]:
        async with self._reading() as connection:
            return await volume_rows.orders(connection)

    async def change_volume_orders(self, change: OrderChange) -> None:
        async with self._writing() as connection:
            await volume_rows.change(connection, change)

    async def given_away(self) -> frozenset[EntryId]:
        found = (await self.reports()).values()
        return frozenset[EntryId]().union(*(given_away(each.report.copies) for each in found))

    async def backups(self) -> tuple[Backup, ...]:
        async with self._reading() as connection:
            return await volume_rows.kept(connection)

    async def keep_backup(self, backup: Backup) -> None:
        async with self._writing() as connection:
            await volume_rows.keep(connection, backup)

    async def forget_backup(self, number: int) -> bool:
        async with self._writing() as connection:
            return await volume_rows.forget(connection, number)

    async def audit(self, *, who: str, what: str, detail: Json, at_ms: int) -> None:
        async with self._writing() as connection:
            await audits.write(connection, who=who, what=what, detail=detail, at_ms=at_ms)

    async def audit_log(self, limit: int) -> tuple[tuple[int, str, str, Json], ...]:
        async with self._reading() as connection:
            return await audits.newest(connection, limit)

    async def close(self) -> None:
        await self._quiet()
        await self._engines.writer.dispose()


def _digests(
    values: Mapping[plans.Key, object], base: Mapping[EntryId, port.PlannedEntry]
) -> tuple[dict[plans.Key, Digest], dict[EntryId, Digest]]:
    """The digests of a plan's items, and of a base that mostly shares its entries."""
    after = codec.digests(values)
    based = {
        entry: after["entry", entry]
        if values.get(("entry", entry)) is planned
        else codec.digest(planned)
        for entry, planned in base.items()
    }
    return after, based


def _differences(
    parent: Mapping[plans.Key, Digest], base: Mapping[EntryId, Digest]
) -> dict[EntryId, Digest | None]:
    """Each entry in which a base is not its parent plan; None where only the parent has it."""
    entries = {EntryId(name): digest for (kind, name), digest in parent.items() if kind == "entry"}
    found: dict[EntryId, Digest | None] = {entry: None for entry in entries if entry not in base}
    found.update((entry, digest) for entry, digest in base.items() if entries.get(entry) != digest)
    return found
