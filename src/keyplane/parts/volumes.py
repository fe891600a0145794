"""Orders on volumes, from what people choose until machines report that they were carried out.

An order is in the inventory before any machine hears of it, and goes out with each declaration of
its entry. What becomes of it is read from reports, however often, by its number.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keyplane.model.declaration import Report
from keyplane.model.names import EntryId, split_entry
from keyplane.model.volumes import (
    OrderChange,
    OrderKind,
    VolumeOrder,
)
from keyplane.parts import carrying, volume_choices
from keyplane.parts import volume_messages as messages
from keyplane.parts.carrying import next_number, told
from keyplane.parts.rolling import Rolling
from keyplane.parts.volume_choices import refused
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError
from keyplane.ports.inventory import Inventory, PlannedEntry
from keyplane.rollout import volumes
from keyplane.rollout.volumes import Arrival, Transfers

Entries = Mapping[EntryId, PlannedEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What is written with a target, and what its rollout has to see to."""

    change: OrderChange
    transfers: Transfers


class Volumes:
    """Of one controller."""

    def __init__(self, *, inventory: Inventory, rolling: Rolling, clock: Clock) -> None:
        self._inventory = inventory
        self._rolling = rolling
        self._clock = clock
        self._lock = asyncio.Lock()
        self._is_pending = True
        """An order may be waiting for a report."""
        self._offered: set[tuple[EntryId, int]] = set()
        """Orders whose machines were offered them as they are now, in this life."""

    # With a target.

    async def questions(
        self, base: Entries, target: Entries, said: Mapping[str, str]
    ) -> list[messages.Question]:
        arrivals = await self._arrivals(base, target)
        backups = await self._inventory.backups()
        answers = volume_choices.chosen(arrivals, said, backups)
        return volume_choices.questions(arrivals, answers, backups)

    async def decide(
        self, base: Entries, target: Entries, said: Mapping[str, str], who: str
    ) -> Decided:
        """RefusedError where something is not said that has to be."""
        arrivals = await self._arrivals(base, target)
        backups = await self._inventory.backups()
        answers = volume_choices.chosen(arrivals, said, backups)
        volume_choices.refuse_unsaid(volume_choices.questions(arrivals, answers, backups))
        orders = await self._inventory.volume_orders()
        if not arrivals and not orders:
            return Decided(change=OrderChange(), transfers=Transfers())
        change = volumes.decide(
            base,
            target,
            orders,
            arrivals,
            answers,
            number=await next_number(self._inventory, self._clock),
            who=who,
            at_ms=self._clock.now_ms(),
        )
        self._is_pending = True
        transfers = volumes.transfers(base, target, volumes.after(orders, change))
        return Decided(change=change, transfers=transfers)

    async def _arrivals(self, base: Entries, target: Entries) -> tuple[Arrival, ...]:
        orders = await self._inventory.volume_orders()
        given = await self._inventory.given_away()
        return volumes.arrivals(base, target, orders, given)

    # Backups.

    async def back_up(self, asked: messages.BackUp, base: Entries) -> messages.Pending:
        entry = EntryId(asked.entry)
        if entry not in base:
            known = ", ".join(e for e in sorted(base) if base[e].entry.volumes)
            there = f"those with volumes are {known}" if known else "none here has volumes"
            raise refused("unknown-name", f"no entry {entry}: {there}")
        held = volumes.volumes_of(base[entry])
        if not held:
            raise refused("no-volumes", f"{entry} has no volumes: there is nothing to save")
        for each in await self._inventory.volume_orders():
            if each.entry == entry:
                raise refused("busy", f"the volumes of {entry} are at work: {_doing(each)}")
        number = await next_number(self._inventory, self._clock)
        order = VolumeOrder(
            entry=entry,
            kind=OrderKind.SAVE,
            number=number,
            who=asked.who,
            at_ms=self._clock.now_ms(),
            volumes=held,
        )
        await self._inventory.change_volume_orders(OrderChange(put=(order,)))
        self._is_pending = True
        await self._audit(asked.who, "backup", {"entry": entry, "backup": number})
        await self._rolling.offer_again([split_entry(entry)[2]])
        return messages.Pending(backup=number, entry=entry)

    async def forget(self, asked: messages.Forget) -> messages.Backups:
        if not await self._inventory.forget_backup(asked.backup):
            raise refused("unknown-name", f"there is no backup {asked.backup}: `keyplane backups`")
        await self._audit(asked.who, "backup forget", {"backup": asked.backup})
        return await self.listing()

    async def _audit(self, who: str, what: str, detail: Mapping[str, object]) -> None:
        now = self._clock.now_ms()
        await self._inventory.audit(who=who, what=what, detail=dict(detail), at_ms=now)

    async def listing(self) -> messages.Backups:
        backups = await self._inventory.backups()
        orders = await self._inventory.volume_orders()
        reports = [each.report for each in (await self._inventory.reports()).values()]
        return messages.Backups(
            backups=[volume_choices.row(each) for each in backups],
            pending=[
                messages.Pending(backup=each.number, entry=each.entry)
                for each in orders
                if each.kind is OrderKind.SAVE
            ],
            failed=[
                messages.Failed(backup=said.saved, entry=entry, problem=said.problem)
                for report in reports
                for entry, said in told(report)
                if said.problem
            ],
            copies=[
                messages.Copy(
                    machine=report.machine,
                    path=path,
                    entry=copy.entry,
                    since_ms=copy.since_ms,
                    why=copy.why,
                )
                for report in reports
                for path, copy in sorted(report.copies.items())
            ],
        )

    # What machines tell.

    async def reported(self, report: Report) -> None:
        if any(True for _ in told(report)):
            self._is_pending = True
            with contextlib.suppress(PortError):  # the next tick looks again
                await self.settle()

    async def tick(self) -> None:
        if self._is_pending:
            await self.settle()

    async def settle(self) -> None:
        """See which orders were carried out, by the reports, and what follows from that."""
        async with self._lock:
            orders = await self._inventory.volume_orders()
            # Who gave its data away is told so for as long as it is declared, and nothing more.
            self._is_pending = any(each.kind is not OrderKind.GIVE for each in orders)
            if not self._is_pending:
                return
            change = await carrying.see(self._inventory, orders, at_ms=self._clock.now_ms())
            await self._offer(volumes.after(orders, change), change)

    async def _offer(self, orders: Iterable[VolumeOrder], change: OrderChange) -> None:
        """Have machines hear of what is otherwise now, also if another life wrote it down."""
        ready = {(e.entry, e.number) for e in orders if e.contents is not None}
        fresh = {entry for entry, _ in ready - self._offered} | {e.entry for e in change.drop}
        machines = sorted({split_entry(entry)[2] for entry in fresh})
        if machines:
            await self._rolling.offer_again(machines)
        self._offered = ready


def _doing(order: VolumeOrder) -> str:
    match order.kind:
        case OrderKind.SAVE:
            return f"backup {order.number} is being made"
        case OrderKind.GIVE:
            return f"they are handed over to {order.other}"
        case OrderKind.TAKE:
            return "what they are to hold is on its way"
