"""Which machines of the controller's own computer have an agent."""

import asyncio

import pytest

from keyplane.ports.errors import TransientError
from tests.unit.parts.fact_fleet import HEARD, MACHINES, named, text
from tests.unit.parts.fact_world import SETTLED_S, World, in_virtual_time

LOCAL = MACHINES.replace('"\n', '"\nlocal = true\n')


def fleet(machines: str) -> dict[str, bytes]:
    made = text(named("plain", HEARD[0]))
    made["fleet.toml"] = made["fleet.toml"].replace(MACHINES.encode(), machines.encode())
    return made


def test_a_machine_that_a_refused_edit_took_away_has_its_agent_again() -> None:
    """It runs nothing, so nothing else would call for one."""

    async def main() -> None:
        world = World()
        async with world.running():
            await world.apply(fleet(LOCAL))
            assert world.kept[-1] == HEARD
            world.refusal = TransientError("the supervisor does not answer")
            with pytest.raises(TransientError):
                await world.apply(fleet(LOCAL[: LOCAL.index(f"[machines.{HEARD[-1]}]")]))
            assert world.kept[-1] == HEARD[:-1]
            await asyncio.sleep(SETTLED_S)
            assert world.kept[-1] == HEARD

    in_virtual_time(main)
