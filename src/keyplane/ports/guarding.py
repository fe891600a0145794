"""What an inventory keeps of machines and members that are to be spared: permits and cordons."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from keyplane.model.names import EntryId, MachineName


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """A machine on which nothing new is placed by count."""

    drain: bool
    """What is placed there by count goes elsewhere."""
    who: str
    why: str
    at_ms: int


class Guarding(Protocol):
    """A part of the port `Inventory`."""

    async def permits(self) -> Mapping[EntryId, str]:
        """Those that are out, each by its name."""
        ...

    async def change_permits(
        self, *, granted: Mapping[EntryId, str], over: Collection[EntryId], at_ms: int
    ) -> None:
        """Record new permits, and the end of others; all or nothing.

        An entry has one at most: a new one replaces it.
        """
        ...

    async def cordons(self) -> Mapping[MachineName, Cordon]: ...

    async def cordon(self, machine: MachineName, cordon: Cordon | None) -> None:
        """Put it up in place of another one, or take it away."""
        ...
