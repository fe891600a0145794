"""What an inventory keeps of volumes: orders until they are carried out, and backups."""

from typing import Protocol

from keyplane.model.names import EntryId
from keyplane.model.volumes import Backup, OrderChange, VolumeOrder


class VolumeOrders(Protocol):
    """A part of `ports.inventory.Inventory`; each call is one transaction."""

    async def volume_orders(self) -> tuple[VolumeOrder, ...]:
        """By entry, then kind; one at most of each kind on an entry."""
        ...

    async def change_volume_orders(self, change: OrderChange) -> None: ...

    async def given_away(self) -> frozenset[EntryId]:
        """Entries of whose data their own machine has an old copy, where their volume was."""
        ...

    async def backups(self) -> tuple[Backup, ...]:
        """The newest first."""
        ...

    async def keep_backup(self, backup: Backup) -> None:
        """One that is there already, by its number, is left as it is."""
        ...

    async def forget_backup(self, number: int) -> bool:
        """False if there is none of that number."""
        ...
