"""Machines on which nothing new is placed by count: kept beside the text, which says nothing of it.

A cordon is a state of a machine and no wish of whoever writes the fleet's text; so an apply of a
directory neither puts one up nor takes one away.
"""

from keyplane.parts.revising import Made
from keyplane.ports.clock import Clock
from keyplane.ports.guarding import Cordon
from keyplane.ports.inventory import Inventory


class Cordoning:
    """Of one controller."""

    def __init__(self, inventory: Inventory, clock: Clock) -> None:
        self._inventory = inventory
        self._clock = clock

    async def cordoned(self, made: Made) -> dict[str, bool]:
        """As it is once the change is made: by machine, whether it is drained."""
        found: dict[str, bool] = {
            name: each.drain for name, each in (await self._inventory.cordons()).items()
        }
        if made.cordon is not None:
            machine, drain = made.cordon
            found.pop(machine, None)
            if drain is not None:
                found[machine] = drain
        return found

    async def before(self, made: Made, who: str) -> None:
        """What is put up stands before the target is moved: nothing is placed there meanwhile."""
        if made.cordon is not None and made.cordon[1] is not None:
            machine, drain = made.cordon
            now = self._clock.now_ms()
            put = Cordon(drain=bool(drain), who=who, why=made.said, at_ms=now)
            await self._inventory.cordon(machine, put)

    async def after(self, made: Made) -> None:
        if made.cordon is not None and made.cordon[1] is None:
            await self._inventory.cordon(made.cordon[0], None)
