"""Which life of an agent was heard, and what `status` shows until that one has told what it found."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from keyplane import wire
from keyplane.model.declaration import Report
from keyplane.testing.inventory import MemoryInventory
from tests.unit.parts.fact_fleet import HEARD, named, text
from tests.unit.parts.fact_world import World, in_virtual_time


class Slow(MemoryInventory):
    """Reports are written once the disk lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()
        self.free.set()

    async def record_reports(
        self, reports: Sequence[Report], *, received_ms: int
    ) -> Sequence[bool]:
        await self.free.wait()
        return await super().record_reports(reports, received_ms=received_ms)


def test_a_life_that_reports_before_it_asks_is_heard_by_its_report() -> None:
    """The controller is as new: while it writes that down, what it shows is as of before."""

    async def main() -> None:
        machine, world = HEARD[0], World()
        world.inventory = inventory = Slow()
        async with world.running():
            await world.apply(text(named("plain", machine)))
        found = (await inventory.reports())[machine].report
        assert found.entries
        report = replace(found, boot="the next life", sequence=1)
        async with world.controlled():
            inventory.free.clear()
            telling = asyncio.create_task(
                world.controller.on_report(machine, wire.encode_report(report))
            )
            await asyncio.sleep(1)
            assert machine in (await world.controller.ready()).machines
            assert [each.machine for each in await shown(world) if each.anew] == [machine]
            inventory.free.set()
            await telling
            assert not any(each.anew for each in await shown(world))

    in_virtual_time(main)


async def shown(world: World):
    return (await world.controller.status()).machines
