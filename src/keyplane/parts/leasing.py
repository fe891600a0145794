"""How a controller comes to the lease: at once if it is free, or once its holder renews it no more.

Clocks of two controllers may differ by any time. So whoever waits goes by the time that the holder
wrote down, or else by his own watch: what was not renewed for a whole lease is not held any more.
"""

import asyncio
from typing import TYPE_CHECKING

from keyplane.journal import Journal
from keyplane.ports.clock import Clock
from keyplane.ports.errors import TransientError
from keyplane.ports.inventory import Inventory

if TYPE_CHECKING:
    from keyplane.ports.leases import Lease

log = Journal(__name__.removeprefix("keyplane."))

LEASE_MS = 15_000
"""A standby takes over within it, or, where clocks differ, within twice that; renewed three times
as often."""
STANDBY_S = 0.2


async def take(inventory: Inventory, clock: Clock, holder: str) -> None:
    """Wait for the lease and take it; an inventory that does not answer is asked again."""
    seen: Lease | None = None
    since_ms = clock.monotonic_ms()
    while True:
        try:
            now = clock.now_ms()
            if seen is not None and clock.monotonic_ms() - since_ms > LEASE_MS:
                now = max(now, seen.until_ms)  # of that one alone: a later one has not run out
            if await inventory.take_lease(holder, now_ms=now, until_ms=clock.now_ms() + LEASE_MS):
                return
            if (held := await inventory.lease()) != seen:
                seen, since_ms = held, clock.monotonic_ms()
        except TransientError as error:
            log.warning("the lease could not be taken", problem=str(error))
        await asyncio.sleep(STANDBY_S)
