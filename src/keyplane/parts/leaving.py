"""Machines that left the fleet: what they have is taken away, then their agents are let go.

A machine keeps its agent here for as long as it reports an entry. One that this inventory never
offered anything, as after its loss, is offered what is declared for it, be it nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from keyplane.journal import Journal
from keyplane.model.fleet import Fleet
from keyplane.model.names import MachineName
from keyplane.parts.planning import Base, Planning
from keyplane.parts.rolling import Rolling
from keyplane.ports.errors import PortError
from keyplane.ports.inventory import Inventory

log = Journal(__name__.removeprefix("keyplane."))


class Leaving:
    """Of one controller."""

    def __init__(
        self,
        *,
        inventory: Inventory,
        planning: Planning,
        rolling: Rolling,
        agents: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        """`agents` sees to it that exactly these machines have an agent here."""
        self._inventory = inventory
        self._planning = planning
        self._rolling = rolling
        self._agents = agents
        self._local: frozenset[str] | None = None
        """The machines of the target that are of this computer; None where that is not known."""
        self._told: frozenset[str] | None = None
        self._offered: set[MachineName] = set()
        """Machines that this inventory surely offered something."""
        self._unsure: set[MachineName] = set()
        """Others that reported lately."""

    def reported(self, machine: MachineName) -> None:
        if machine not in self._offered:
            self._unsure.add(machine)

    @asynccontextmanager
    async def committing(self, fleet: Fleet, base: Base) -> AsyncGenerator[None]:
        """While a fleet becomes the target: whoever has something keeps its agent."""
        self._local = frozenset(name for name, each in fleet.machines.items() if each.local)
        try:
            declared = {entry.rpartition("@")[2] for entry in base.entries}
            await self._tell(self._local | declared | await self._busy())
            yield
        except BaseException:
            self._local = None  # it is not, or nobody knows
            raise

    async def tick(self) -> None:
        """Once no rollout is open. Nothing is read while all is as it was."""
        if not self._unsure and self._told is not None and self._told == self._local:
            return
        if self._rolling.is_open:
            return
        try:
            if not await self._is_settled():
                return
            unsure = frozenset(self._unsure)
            busy = await self._busy()
            await self._offer_unoffered(unsure, busy)
            self._unsure -= unsure
            if self._local is None:
                self._local = await self._read_local()
            if self._local is not None:
                await self._tell(self._local | busy)
        except (PortError, OSError) as error:
            log.warning("machines that left are looked at again", problem=str(error))

    async def _offer_unoffered(
        self, unsure: frozenset[MachineName], busy: frozenset[MachineName]
    ) -> None:
        offered = (await self._inventory.last_offers(unsure)).keys()
        self._offered |= offered
        unoffered = sorted((unsure - offered) & busy)
        if unoffered:
            await self._rolling.offer_again(unoffered)

    async def _tell(self, machines: frozenset[str]) -> None:
        if machines != self._told:
            await self._agents(sorted(machines))
            self._told = machines

    async def _is_settled(self) -> bool:
        rollout = await self._inventory.rollout()
        return rollout is not None and not rollout.open

    async def _busy(self) -> frozenset[MachineName]:
        reports = await self._inventory.reports()
        return frozenset(name for name, each in reports.items() if each.report.entries)

    async def _read_local(self) -> frozenset[str] | None:
        """What the text of the target says; None where there is none, or it cannot be read."""
        target = await self._inventory.target()
        revision = None if target is None else await self._inventory.revision(target.revision)
        if target is None or revision is None:
            return None
        documents = await asyncio.to_thread(self._planning.documents, revision.files)
        fleet = documents.fleet
        if fleet is None:
            return None
        return frozenset(name for name, each in fleet.machines.items() if each.local)
