"""An apply, and a rollout that is open meanwhile."""

import asyncio

from tests.unit.parts.fact_fleet import instance, text
from tests.unit.parts.fact_world import World, in_virtual_time


def fleet(version: str) -> dict[str, bytes]:
    """One entry on each machine, of which one is first."""
    module = f"""
module = "plain"
version = "1"
policy.settle = "2s"
[roles.main.units.one]
kind = "process"
command = ["run", "{version}"]
"""
    return text(instance("plain", "every {}")) | {"modules/plain/module.toml": module.encode()}


def test_an_apply_is_planned_again_where_the_open_rollout_went_on_meanwhile() -> None:
    """Nobody is asked to say it again: what was shown is where it leads, and that is the same."""

    async def main() -> None:
        world = World()
        async with world.running():
            assert (await world.apply(fleet("1"))).outcome == "done"
            first = asyncio.create_task(world.apply(fleet("2")))
            await until_sent(world, 2, steps=1)
            world.is_permitted.clear()
            second = asyncio.create_task(world.apply(fleet("3")))
            await until_sent(world, 2, steps=2)
            world.is_permitted.set()
            assert (await second).outcome == "done"
            assert (await first).outcome in ("superseded", "done")

    in_virtual_time(main)


async def until_sent(world: World, number: int, *, steps: int) -> None:
    """A rollout has sent so many."""
    while True:
        row = (await world.controller.rollouts.rows()).rollouts[0]
        assert row.number <= number
        if (row.number, row.step) >= (number, steps):
            return
        await asyncio.sleep(0.1)
