"""An agent tells what its machine is: at its start, on change, and where the controller lacks it."""

import asyncio

from keyplane.model import facts as model
from tests.unit.parts.agent_world import ALPHA, World, in_virtual_time

DEBIAN = {"os.id": "debian", "cpu.count": 2}


def test_facts_are_told_at_the_start_and_once_they_are_others() -> None:
    """Whole each time, and not again while they are the same."""

    async def main() -> None:
        world = World()
        world.facts.now = DEBIAN
        async with world.served(), world.running():
            await asyncio.sleep(30)
            assert [told.facts for told in world.desk.facts] == [DEBIAN]
            world.facts.now = {**DEBIAN, "gpu": True}
            await asyncio.sleep(30)
        assert [told.facts for told in world.desk.facts] == [DEBIAN, {**DEBIAN, "gpu": True}]
        assert world.desk.beats[-1].facts == model.digest({**DEBIAN, "gpu": True})

    in_virtual_time(main)


def test_a_controller_that_has_others_is_told_again() -> None:
    """As one whose inventory was restored: its answer to an ask says what it has."""

    async def main() -> None:
        world = World()
        world.facts.now = DEBIAN
        async with world.served(), world.running():
            await asyncio.sleep(10)
            world.desk.has_facts = model.digest({})
            await world.controller.hint(ALPHA)
            await asyncio.sleep(1)
            world.desk.has_facts = model.digest(DEBIAN)
            await world.controller.hint(ALPHA)
            await asyncio.sleep(30)
        assert [told.facts for told in world.desk.facts] == [DEBIAN, DEBIAN]

    in_virtual_time(main)


def test_facts_that_could_not_be_told_are_told_once_the_bus_is_back() -> None:
    """As they are by then."""

    async def main() -> None:
        world = World()
        world.facts.now = DEBIAN
        world.bus.crash()
        async with world.served(), world.running():
            await asyncio.sleep(30)
            assert world.desk.facts == []
            world.facts.now = {"os.id": "alpine"}
            await asyncio.sleep(5)
            world.bus.restart()
            await asyncio.sleep(20)
        assert world.desk.facts[-1].facts == {"os.id": "alpine"}

    in_virtual_time(main)


def test_what_nobody_could_take_keeps_nothing_else_from_being_said() -> None:
    async def main() -> None:
        world = World()
        world.facts.now = {**DEBIAN, "table": {"a": 1}, "endless": float("inf"), "none": None}
        async with world.served(), world.running():
            await asyncio.sleep(5)
        assert [told.facts for told in world.desk.facts] == [DEBIAN]

    in_virtual_time(main)
