"""What machines say of themselves: taken in, and held against what they say they said."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any

from keyplane import wire
from keyplane.journal import Journal
from keyplane.model.names import MachineName
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PermanentError, PortError
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.inventory import Inventory

log = Journal(__name__.removeprefix("keyplane."))

Json = Any


class Knowing:
    """Of one controller. What it remembers, the inventory knows."""

    def __init__(self, *, inventory: Inventory, clock: Clock, hold_ms: int) -> None:
        """A value has to hold for so long before plans are made by it."""
        self._inventory = inventory
        self._clock = clock
        self._hold_ms = hold_ms
        self._lock = asyncio.Lock()
        self._known: dict[MachineName, StoredFacts] | None = None
        """None: to be read."""
        self._since_ms: dict[tuple[MachineName, str], tuple[int, int]] = {}
        """Of facts that moved: since when, as they are kept, and when this life first saw that."""

    async def on_facts(self, machine: MachineName, payload: bytes) -> None:
        """Record what a machine says; returns once that is done."""
        told = wire.decode_facts(payload)
        if isinstance(told, wire.Refused):
            log.warning("facts refused", machine=machine, reason=told.reason)
            raise PermanentError(told.reason)
        async with self._changing() as known:
            known[machine] = await self._inventory.record_facts(
                machine, told.facts, received_ms=self._clock.now_ms()
            )

    async def take(self, facts: Mapping[MachineName, Mapping[str, Json]]) -> None:
        """Let plans be made by these values from now on."""
        async with self._changing() as known:
            for machine, said in sorted(facts.items()):
                known[machine] = await self._inventory.take_facts(machine, said)

    def moved(self) -> None:
        """Somebody may have written to the inventory by which facts plans are made."""
        self._known = None

    async def known(self) -> Mapping[MachineName, StoredFacts]:
        async with self._changing() as known:
            return dict(known)

    async def due(self, heard: Collection[MachineName]) -> dict[MachineName, dict[str, Json]]:
        """What these machines say, plans do not go by, and has held.

        What was never known before has nothing to come and go between, and need not hold.
        """
        found: dict[MachineName, dict[str, Json]] = {}
        moved: dict[tuple[MachineName, str], tuple[int, int]] = {}
        now = self._clock.monotonic_ms()
        for machine, stored in (await self.known()).items():
            for name in stored.moved:
                each = stored.facts[name]
                since = self._since_ms.get((machine, name))
                if since is None or since[0] != each.since_ms:
                    # Not by the wall clock: a restart costs another such time, and no flap counts.
                    since = each.since_ms, now
                moved[machine, name] = since
                is_due = each.planned is None or now - since[1] >= self._hold_ms
                if is_due and machine in heard:
                    found.setdefault(machine, {})[name] = each.value
        self._since_ms = moved
        return found

    async def digest(self, machine: MachineName) -> str:
        """Of all that is known of it; that of nothing, where it never said anything."""
        # Not behind a write that is on its way: what is answered too early is asked for again.
        known = self._known if self._known is not None else await self.known()
        return known.get(machine, StoredFacts(machine=machine, at_ms=0)).digest

    @contextlib.asynccontextmanager
    async def _changing(self) -> AsyncGenerator[dict[MachineName, StoredFacts]]:
        """Whoever writes is alone; after a write that may have failed all is read anew."""
        async with self._lock:
            if self._known is None:
                self._known = dict(await self._inventory.facts())
            try:
                yield self._known
            except (PortError, asyncio.CancelledError):
                self._known = None
                raise
