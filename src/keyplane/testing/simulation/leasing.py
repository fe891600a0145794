"""How a controller keeps its lease, where two race for it.

The embedded controller is alone by a lock; these two have names of their own instead.
"""

import asyncio

from keyplane.journal import Journal
from keyplane.parts.leasing import LEASE_MS
from keyplane.ports.clock import Clock
from keyplane.ports.errors import TransientError
from keyplane.ports.inventory import Inventory

log = Journal(__name__.removeprefix("keyplane."))


async def keep(inventory: Inventory, clock: Clock, holder: str) -> None:
    """Renew it in time; returns once it is another's, or may have been.

    What was read before is then of the past, and another life has to begin.
    """
    renewed = clock.monotonic_ms()
    while True:
        await asyncio.sleep(LEASE_MS / 3000)
        now, asked = clock.now_ms(), clock.monotonic_ms()
        try:
            if not await inventory.take_lease(holder, now_ms=now, until_ms=now + LEASE_MS):
                log.error("another controller took the lease")
                return
        except TransientError as error:
            log.warning("the lease could not be renewed", problem=str(error))
            continue
        if asked - renewed > LEASE_MS:
            log.error("the lease had run out, and may have been another's meanwhile")
            return
        renewed = asked
