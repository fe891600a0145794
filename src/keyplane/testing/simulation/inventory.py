"""The inventory as one life of a controller has it: slow, at times out of reach, and fenced.

A write may go through though its answer is lost. The controller may be killed before each write
and after it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from keyplane.model.declaration import Report, Word
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.model.volumes import Backup as SavedVolumes
from keyplane.model.volumes import OrderChange, VolumeOrder
from keyplane.ports import inventory
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.guarding import Cordon
from keyplane.ports.leases import Lease
from keyplane.testing.inventory import MemoryInventory
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.life import Life

T = TypeVar("T")
Json = Any


class Watching(Protocol):
    """Who is told of what was written."""

    async def committed(
        self,
        stored: inventory.StoredPlan,
        row: inventory.StoredRollout,
        *,
        change: inventory.Change | None,
        known: Mapping[MachineName, StoredFacts],
        is_running: bool,
    ) -> None: ...
    def facts_recorded(self, stored: StoredFacts) -> None: ...
    def saved_rollout(self, number: int, saved: bytes) -> None: ...
    async def offered(self, offer: inventory.StoredOffer) -> None: ...
    def reported(self, report: Report) -> None: ...

    def said(self, machine: MachineName, entry: EntryId, word: Word) -> None: ...


@dataclass(slots=True, kw_only=True)
class Database:
    """What all controllers share."""

    truth: MemoryInventory
    chance: Chance
    watch: Watching
    away: float = 0.0
    """How often a call fails before it is done."""
    unanswered: float = 0.0
    """How often a write fails after it was done."""
    is_full: bool = False


class LifeInventory:
    """The port `Inventory`."""

    def __init__(self, database: Database, life: Life) -> None:
        self._database = database
        self._under = database.truth.beside(None)
        self._life = life

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        self._life.alive()
        await self._life.thaw()
        chance = self._database.chance
        if chance.happens(0.2):
            await asyncio.sleep(chance.between(0.001, 0.02))
            self._life.alive()
        if chance.happens(self._database.away):
            raise inventory.InventoryUnavailableError("the inventory does not answer")
        return await call()

    async def _write(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        chance = self._database.chance
        self._life.boundary(f"before it writes {what}")
        if chance.happens(0.5):
            await asyncio.sleep(chance.between(0.001, 0.02))
            self._life.alive()
        await self._life.thaw()
        if self._database.is_full:
            raise inventory.InventoryUnavailableError("the database has no space left")
        if chance.happens(self._database.away):
            raise inventory.InventoryUnavailableError("the inventory does not answer")
        done = await call()
        self._life.boundary(f"after it wrote {what}")
        if chance.happens(self._database.unanswered):
            raise inventory.InventoryUnavailableError("the connection was lost")
        return done

    async def take_lease(self, holder: str, *, now_ms: int, until_ms: int) -> bool:
        return await self._write(
            "the lease", lambda: self._under.take_lease(holder, now_ms=now_ms, until_ms=until_ms)
        )

    async def lease(self) -> Lease | None:
        self._life.alive()
        return await self._under.lease()

    async def release_lease(self) -> None:
        await self._write("the lease", self._under.release_lease)

    async def add_revision(
        self, files: Mapping[str, bytes], *, who: str, why: str, at_ms: int
    ) -> inventory.Revision:
        return await self._write(
            "a revision", lambda: self._under.add_revision(files, who=who, why=why, at_ms=at_ms)
        )

    async def revision(self, number: int | None = None) -> inventory.Revision | None:
        return await self._read(lambda: self._under.revision(number))

    async def history(self, limit: int) -> tuple[inventory.RevisionNote, ...]:
        return await self._read(lambda: self._under.history(limit))

    async def generations(self) -> tuple[inventory.KeptGeneration, ...]:
        return await self._read(self._under.generations)

    async def target(self) -> inventory.StoredPlan | None:
        return await self._read(self._under.target)

    async def plan(self, generation: Digest) -> inventory.StoredPlan | None:
        return await self._read(lambda: self._under.plan(generation))

    async def commit(  # noqa: PLR0913  # the port's own shape
        self,
        stored: inventory.StoredPlan,
        *,
        parent: Digest | None,
        rollout: bytes,
        base: Mapping[EntryId, inventory.PlannedEntry],
        who: str,
        at_ms: int,
        change: inventory.Change | None = None,
        volumes: OrderChange | None = None,
        request: str = "",
    ) -> inventory.StoredRollout:
        async def commit() -> inventory.StoredRollout:
            known = await self._under.facts()
            row = await self._under.commit(
                stored,
                parent=parent,
                rollout=rollout,
                base=base,
                who=who,
                at_ms=at_ms,
                change=change,
                volumes=volumes,
                request=request,
            )
            reports = await self._under.reports()
            is_running = any(each.report.entries for each in reports.values())
            await self._database.watch.committed(
                stored, row, change=change, known=known, is_running=is_running
            )
            return row

        return await self._write("a target", commit)

    async def rollout(self, number: int | None = None) -> inventory.StoredRollout | None:
        return await self._read(lambda: self._under.rollout(number))

    async def save_rollout(self, number: int, *, state: bytes, is_open: bool) -> None:
        async def save() -> None:
            await self._under.save_rollout(number, state=state, is_open=is_open)
            self._database.watch.saved_rollout(number, state)

        await self._write("a rollout", save)

    async def store_offers(self, offers: Sequence[inventory.StoredOffer], *, at_ms: int) -> None:
        async def store() -> None:
            await self._under.store_offers(offers, at_ms=at_ms)
            for offer in offers:
                await self._database.watch.offered(offer)

        said = ", ".join(f"{each.offer} of {each.machine}" for each in offers)
        await self._write(f"offer {said}", store)

    async def sends(self) -> Mapping[MachineName, inventory.Send]:
        return await self._read(self._under.sends)

    async def frozen(self) -> str:
        return await self._read(self._under.frozen)

    async def freeze(self, why: str) -> None:
        await self._write("a freeze", lambda: self._under.freeze(why))

    async def last_offer(self, machine: MachineName) -> inventory.StoredOffer | None:
        return await self._read(lambda: self._under.last_offer(machine))

    async def last_offers(
        self, machines: Collection[MachineName]
    ) -> Mapping[MachineName, inventory.StoredOffer]:
        return await self._read(lambda: self._under.last_offers(machines))

    async def record_reports(
        self, reports: Sequence[Report], *, received_ms: int
    ) -> Sequence[bool]:
        async def record() -> Sequence[bool]:
            found = await self._under.record_reports(reports, received_ms=received_ms)
            for report, is_newest in zip(reports, found, strict=True):
                if is_newest:
                    self._database.watch.reported(report)
            return found

        machines = ", ".join(each.machine for each in reports)
        return await self._write(f"a report of {machines}", record)

    async def record_facts(
        self, machine: MachineName, said: Mapping[str, Json], *, received_ms: int
    ) -> StoredFacts:
        async def record() -> StoredFacts:
            stored = await self._under.record_facts(machine, said, received_ms=received_ms)
            self._database.watch.facts_recorded(stored)
            return stored

        return await self._write(f"facts of {machine}", record)

    async def take_facts(self, machine: MachineName, said: Mapping[str, Json]) -> StoredFacts:
        return await self._write(
            f"by which facts of {machine} plans are made",
            lambda: self._under.take_facts(machine, said),
        )

    async def facts(self) -> Mapping[MachineName, StoredFacts]:
        return await self._read(self._under.facts)

    async def reports(self) -> Mapping[MachineName, inventory.StoredReport]:
        return await self._read(self._under.reports)

    async def occurrences(
        self,
        machine: MachineName,
        entry: EntryId | None,
        *,
        after: int,
        since_ms: int,
        limit: int,
    ) -> tuple[inventory.StoredOccurrence, ...]:
        return await self._read(
            lambda: self._under.occurrences(
                machine, entry, after=after, since_ms=since_ms, limit=limit
            )
        )

    async def say(self, entry: EntryId, *, stop: bool, who: str, at_ms: int) -> Word:
        async def say() -> Word:
            word = await self._under.say(entry, stop=stop, who=who, at_ms=at_ms)
            self._database.watch.said(split_entry(entry)[2], entry, word)
            return word

        return await self._write("a word", say)

    async def words(self) -> Mapping[EntryId, Word]:
        return await self._read(self._under.words)

    async def forget_words(self, entries: Collection[EntryId]) -> None:
        await self._write("words that are over", lambda: self._under.forget_words(entries))

    async def permits(self) -> Mapping[EntryId, str]:
        return await self._read(self._under.permits)

    async def change_permits(
        self, *, granted: Mapping[EntryId, str], over: Collection[EntryId], at_ms: int
    ) -> None:
        await self._write(
            "permits",
            lambda: self._under.change_permits(granted=granted, over=over, at_ms=at_ms),
        )

    async def cordons(self) -> Mapping[MachineName, Cordon]:
        return await self._read(self._under.cordons)

    async def cordon(self, machine: MachineName, cordon: Cordon | None) -> None:
        await self._write("a cordon", lambda: self._under.cordon(machine, cordon))

    async def volume_orders(self) -> tuple[VolumeOrder, ...]:
        """Asked beside much else, and mostly answered with nothing: it takes no time."""
        return await self._under.volume_orders()

    async def given_away(self) -> frozenset[EntryId]:
        return await self._under.given_away()

    async def change_volume_orders(self, change: OrderChange) -> None:
        await self._write("orders on volumes", lambda: self._under.change_volume_orders(change))

    async def backups(self) -> tuple[SavedVolumes, ...]:
        return await self._under.backups()

    async def keep_backup(self, backup: SavedVolumes) -> None:
        await self._write("a backup", lambda: self._under.keep_backup(backup))

    async def forget_backup(self, number: int) -> bool:
        return await self._write("a backup that goes", lambda: self._under.forget_backup(number))

    async def audit(self, *, who: str, what: str, detail: Json, at_ms: int) -> None:
        await self._write(
            "the audit", lambda: self._under.audit(who=who, what=what, detail=detail, at_ms=at_ms)
        )

    async def audit_log(self, limit: int) -> tuple[tuple[int, str, str, Json], ...]:
        return await self._read(lambda: self._under.audit_log(limit))

    async def close(self) -> None:
        """Nothing is held."""
