"""Who may write to an inventory: one holder of its lease at a time."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lease:
    """As it stands. Its time is that of whoever took it."""

    holder: str
    until_ms: int


class Leases(Protocol):
    """A part of the port `Inventory`."""

    async def take_lease(self, holder: str, *, now_ms: int, until_ms: int) -> bool:
        """Take or renew the lease; False while another holds one that has not run out.

        From then on this inventory writes as that holder.
        """
        ...

    async def lease(self) -> Lease | None:
        """The one that is held, be it run out; None while it is free."""
        ...

    async def release_lease(self) -> None:
        """Free the lease if it is this inventory's; else nothing."""
        ...
