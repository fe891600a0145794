"""The collection: which archives of the store nothing names any more, and letting them go.

Held is what a kept generation, the latest rollout, a machine's last declaration or a backup names,
and, while data is on its way, all else: a machine may have put it there and not told of it yet.
A sweep looks at what is held before it lets anything go, is bounded, and takes nothing that
Keyplane did not record making.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keyplane import metrics
from keyplane.journal import Journal
from keyplane.model.declaration import Declaration
from keyplane.model.names import Digest, MachineName, split_entry
from keyplane.model.volumes import OrderKind, VolumeOrder
from keyplane.parts import collection_messages
from keyplane.parts.controller import Controller
from keyplane.parts.offering import Offering
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError
from keyplane.ports.inventory import Inventory, StoredPlan, StoredRollout
from keyplane.ports.store import ArtifactShelf, Holding
from keyplane.rollout import state as states
from keyplane.rollout.planned import Planned

log = Journal(__name__.removeprefix("keyplane."))

REMOVED_MAX = 200
"""Archives of one sweep: what is left goes with the next."""
SWEEP_MS = 60_000
"""An apply waits for a sweep that runs, and a person for the apply."""


class Collecting:
    """The store's archives against what names them."""

    def __init__(
        self,
        *,
        inventory: Inventory,
        offering: Offering,
        shelf: ArtifactShelf,
        controller: Controller,
        clock: Clock,
    ) -> None:
        self._inventory = inventory
        self._offering = offering
        self._shelf = shelf
        self._controller = controller
        self._clock = clock

    async def look(self) -> collection_messages.Collection:
        """What is held and by what; nothing is let go."""
        async with self._controller.work:
            held = await self._held()
            return self._told(held, await asyncio.to_thread(self._shelf.holdings), removed=[])

    async def measure(self) -> None:
        """Set the metrics of the store."""
        holdings = await asyncio.to_thread(self._shelf.holdings)
        metrics.store_archives.set(len(holdings))
        metrics.store_bytes.set(sum(each.size for each in holdings))

    async def set_automatic(self, *, automatic: bool, who: str) -> collection_messages.Collection:
        if await asyncio.to_thread(lambda: self._shelf.automatic) != automatic:
            await asyncio.to_thread(self._shelf.set_automatic, automatic=automatic)
            word = "on" if automatic else "off"
            await self._controller.audit(who, "collection", automatic=word)
        return await self.look()

    async def let_go(self, who: str) -> collection_messages.Collection:
        """Sweep, as somebody asked for it."""
        found = await self.sweep()
        if found.removed:
            await self._controller.audit(who, "collection", archives=len(found.removed))
        return found

    async def sweep(self) -> collection_messages.Collection:
        """Let go of what nothing names; in the answer, of what is there afterwards."""
        # No apply may find an archive there that goes before its target names it.
        async with self._controller.work:
            held = await self._held()
            began = self._clock.monotonic_ms()
            removed: list[str] = []
            for each in await asyncio.to_thread(self._shelf.holdings):
                late = self._clock.monotonic_ms() - began > SWEEP_MS
                if late or len(removed) == REMOVED_MAX:
                    break
                if held.lets_go(each):
                    await asyncio.to_thread(self._shelf.remove, each.digest)
                    removed.append(each.digest)
            if removed:
                log.info("let go of archives", count=len(removed))
            return self._told(held, await asyncio.to_thread(self._shelf.holdings), removed=removed)

    async def run(self) -> None:
        """Sweep after each apply, where that is switched on; a sweep that fails fails nothing."""
        while True:
            await self._controller.applied.wait()
            self._controller.applied.clear()
            try:
                if await asyncio.to_thread(lambda: self._shelf.automatic):
                    await self.sweep()
            except PortError as error:
                log.warning("the sweep ended early", problem=str(error))

    async def _held(self) -> "_Held":
        """By what each archive is named: a generation, or a machine's last declaration."""
        held: dict[Digest, set[str]] = {}
        machines: set[MachineName] = set(await self._inventory.reports())
        for kept in await self._inventory.generations():
            plan = await self._inventory.plan(kept.generation)
            if plan is None:
                continue
            machines |= set(map(MachineName, plan.plan.machines))
            machines |= {split_entry(entry)[2] for entry in plan.entries}
            for digest in _of_plan(plan):
                held.setdefault(digest, set()).add(f"generation {kept.generation[7:19]}")
        # It goes back to these if it fails, and so may the next one.
        if (latest := await self._inventory.rollout()) is not None:
            for digest in _of_rollout(latest):
                held.setdefault(digest, set()).add(f"rollout {latest.number}")
        for machine in sorted(machines):
            declaration = await self._offering.last(machine)
            for digest in () if declaration is None else _of_declaration(declaration):
                held.setdefault(digest, set()).add(f"machine {machine}")
        for backup in await self._inventory.backups():
            for volume in backup.volumes:
                held.setdefault(volume.digest, set()).add(f"backup {backup.number}")
        coming: set[str] = set()
        for order in await self._inventory.volume_orders():
            for digest in (order.contents or {}).values():
                if digest is not None:
                    held.setdefault(digest, set()).add(f"the data of {order.entry}")
            if _is_on_its_way(order):
                coming.add(f"data of {order.entry}, which may be on its way")
        return _Held(named=held, coming=coming)

    def _told(
        self, held: "_Held", holdings: list[Holding], removed: list[str]
    ) -> collection_messages.Collection:
        return collection_messages.Collection(
            archives=[
                collection_messages.Held(
                    digest=each.digest,
                    size=each.size,
                    made_ms=each.made_ms,
                    held_by=held.by(each),
                    goes=held.lets_go(each),
                )
                for each in holdings
            ],
            removed=removed,
            automatic=self._shelf.automatic,
        )


@dataclass(frozen=True, slots=True)
class _Held:
    named: Mapping[Digest, set[str]]
    coming: set[str]
    """What any archive may be that nothing names."""

    def by(self, archive: Holding) -> list[str]:
        if archive.made_ms is None:
            return sorted(self.named.get(archive.digest, ()))
        return sorted(self.named.get(archive.digest, self.coming))

    def lets_go(self, archive: Holding) -> bool:
        return archive.made_ms is not None and not self.by(archive)


def _is_on_its_way(order: VolumeOrder) -> bool:
    """Whether what is saved for it is in the store before anything here names it."""
    if order.kind is OrderKind.TAKE:
        return order.contents is None and not order.keeps
    return order.kind is OrderKind.SAVE


def _of_plan(stored: StoredPlan) -> Iterator[Digest]:
    for planned in stored.entries.values():
        yield from _of_entry(planned)


def _of_rollout(latest: StoredRollout) -> Iterator[Digest]:
    state = states.decode(latest.state)
    for planned in latest.base.values():
        yield from _of_entry(planned)
    for refuge in () if state is None else state.refuges.values():
        if refuge.planned is not None:
            yield from _of_entry(refuge.planned)


def _of_entry(planned: Planned) -> Iterator[Digest]:
    yield from map(Digest, planned.entry.artifacts.values())


def _of_declaration(declaration: Declaration) -> Iterator[Digest]:
    for entry in declaration.entries.values():
        yield from (unit.archive for unit in entry.units.values() if unit.archive is not None)
        yield from (archive.digest for archive in entry.archives.values())
