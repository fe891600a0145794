"""What an inventory in memory keeps of volumes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol

from keyplane.model.names import EntryId, MachineName
from keyplane.model.volumes import Backup, OrderChange, OrderKind, VolumeOrder, given_away
from keyplane.ports.inventory import StoredReport


@dataclass(slots=True)
class Kept:
    orders: dict[tuple[EntryId, OrderKind], VolumeOrder] = field(
        default_factory=dict[tuple[EntryId, OrderKind], VolumeOrder]
    )
    backups: dict[int, Backup] = field(default_factory=dict[int, Backup])

    def __copy__(self) -> "Kept":
        return Kept(dict(self.orders), dict(self.backups))

    def change(self, change: OrderChange) -> None:
        for each in change.drop:
            if self._is_that(each):
                del self.orders[each.entry, each.kind]
        self.orders.update({(e.entry, e.kind): e for e in change.fill if self._is_that(e)})
        self.orders.update({(e.entry, e.kind): e for e in change.put})

    def _is_that(self, order: VolumeOrder) -> bool:
        known = self.orders.get((order.entry, order.kind))
        return known is not None and known.number == order.number


class Truth(Protocol):
    volumes: Kept
    reports: dict[MachineName, StoredReport]


class InMemory(ABC):
    """The port `VolumeOrders`, as a part of an inventory in memory."""

    @abstractmethod
    def _read(self) -> Truth: ...

    @abstractmethod
    def _write(self) -> Truth: ...

    async def volume_orders(self) -> tuple[VolumeOrder, ...]:
        orders = self._read().volumes.orders
        return tuple(orders[key] for key in sorted(orders))

    async def change_volume_orders(self, change: OrderChange) -> None:
        self._write().volumes.change(change)

    async def given_away(self) -> frozenset[EntryId]:
        found = self._read().reports.values()
        return frozenset[EntryId]().union(*(given_away(each.report.copies) for each in found))

    async def backups(self) -> tuple[Backup, ...]:
        backups = self._read().volumes.backups
        return tuple(backups[number] for number in sorted(backups, reverse=True))

    async def keep_backup(self, backup: Backup) -> None:
        self._write().volumes.backups.setdefault(backup.number, backup)

    async def forget_backup(self, number: int) -> bool:
        return self._write().volumes.backups.pop(number, None) is not None
