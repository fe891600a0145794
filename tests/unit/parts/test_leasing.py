"""A standby takes over from a holder that renews no more, whatever the clocks say."""

import asyncio

from keyplane.parts import leasing
from keyplane.testing.clock import LoopClock
from keyplane.testing.inventory import MemoryInventory
from tests.unit.parts.fact_world import in_virtual_time

DAY_MS = 86_400_000
LEASE_S = leasing.LEASE_MS / 1000


class Pair:
    """A holder by a clock that differs by that, and a standby. Make it within the loop."""

    def __init__(self, by_ms: int) -> None:
        self.by_ms = by_ms
        self.clock = LoopClock()
        self.holder = MemoryInventory().beside("holder")
        self.standby = self.holder.beside(None)

    async def renew(self) -> bool:
        now = self.clock.now_ms() + self.by_ms
        until_ms = now + leasing.LEASE_MS
        return await self.holder.take_lease("holder", now_ms=now, until_ms=until_ms)

    def wait(self) -> "asyncio.Task[None]":
        return asyncio.create_task(leasing.take(self.standby, self.clock, "standby"))


def test_a_lease_of_a_clock_that_is_ahead_does_not_outlive_its_holder() -> None:
    """It is watched for a whole lease, and then it is taken."""

    async def main() -> None:
        pair = Pair(DAY_MS)
        assert await pair.renew()
        waiting = pair.wait()
        await asyncio.sleep(LEASE_S - 1)
        assert not waiting.done()
        async with asyncio.timeout(3):
            await waiting
        held = await pair.holder.lease()
        assert held is not None
        assert held.holder == "standby"

    in_virtual_time(main)


def test_a_holder_that_renews_is_left_alone_though_its_clock_is_ahead() -> None:
    async def main() -> None:
        pair = Pair(DAY_MS)
        assert await pair.renew()
        waiting = pair.wait()
        for _ in range(20):
            await asyncio.sleep(LEASE_S / 3)
            assert await pair.renew()
        assert not waiting.done()
        waiting.cancel()

    in_virtual_time(main)


def test_a_holder_whose_clock_is_behind_gives_way_and_waits_for_its_turn() -> None:
    """By the standby's clock its lease ran out long ago; nobody writes without one."""

    async def main() -> None:
        pair = Pair(-DAY_MS)
        assert await pair.renew()
        async with asyncio.timeout(1):
            await pair.wait()
        assert not await pair.renew()

    in_virtual_time(main)
