"""What machines are, and how that comes and goes; and what people make of it."""

import asyncio
from typing import Any

from keyplane.parts import change_messages as changes
from keyplane.parts.control_client import RefusedError
from keyplane.parts.controller import Controller
from keyplane.ports.errors import PortError
from keyplane.testing.simulation import needs
from keyplane.testing.simulation.host import Ground
from keyplane.testing.simulation.parts import Machine
from keyplane.testing.simulation.world import World

Json = Any

LONG_S = (65.0, 120.0)
"""A fact that holds so long is planned by, where nothing is in the way."""
TOLD_S, GONE_S = (3.0, 8.0), (150.0, 300.0)
"""A fact is told within the first, and nobody has heard of its machine for long in the second."""


class Natures:
    """Draws it, in a fleet that hangs on facts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.facts
        self._count = 0
        self._planned: list[asyncio.TimerHandle] = []

    def begin(self) -> None:
        """Most machines fit; nobody knows any probed value yet."""
        if self._world.fleet.needs is None:
            return
        for ground in self._grounds():
            for fact in (needs.MODULES, needs.COMMANDS):
                fits = self._chance.happens(0.7)
                self._set(ground, fact, (needs.FITTING if fits else needs.LACKING)[fact])
            self._set(ground, needs.NOISE, self._chance.count(1, 9))

    async def happen(self) -> None:
        chance = self._chance
        if self._world.fleet.needs is None or not chance.happens(0.8):
            return
        what = chance.weighed(
            {
                "fit": 4,
                "flap": 3,
                "probed": 4,
                "noise": 3,
                "edit": 3,
                "take": 2,
                "long": 3,
                "vanish": 2,
            }
        )
        if what == "long":
            await asyncio.sleep(chance.between(*LONG_S))
        elif what == "edit":
            said = self._world.fleet.needs.edit()
            self._world.log("person", f"edits: {said}")
            self._world.apply()
        elif what == "vanish":
            await self._vanish()
        elif what == "take":
            self.take([])
        else:
            ground = chance.pick(self._grounds())
            self._happen(what, ground)

    def _happen(self, what: str, ground: Ground) -> None:
        chance = self._chance
        fact = chance.pick((needs.MODULES, needs.COMMANDS))
        match what:
            case "fit":
                self._set(ground, fact, self._other(ground, fact))
            case "flap":
                before = ground.facts[fact]
                self._set(ground, fact, self._other(ground, fact))
                length = chance.between(1.0, 50.0)
                loop = asyncio.get_running_loop()
                self._planned.append(loop.call_later(length, self._set, ground, fact, before))
            case "probed":
                self._count += 1
                gone = chance.happens(0.15)
                self._set(ground, needs.PROBED, None if gone else f"key-{self._count}")
            case _:
                self._set(ground, needs.NOISE, chance.count(1, 9))

    async def _vanish(self) -> None:
        """A machine says something, and then nothing any more for a long while."""
        machine = self._chance.pick(list(self._world.machines.values()))
        fact = self._chance.pick((needs.MODULES, needs.COMMANDS))
        self._set(machine.ground, fact, self._other(machine.ground, fact))
        await asyncio.sleep(self._chance.between(*TOLD_S))
        machine.is_off = True
        if machine.life is not None:
            machine.life.kill("off, with a fact just told")
        length = self._chance.between(*GONE_S)
        asyncio.get_running_loop().call_later(length, self._back, machine)
        await asyncio.sleep(length * self._chance.share())

    @staticmethod
    def _back(machine: Machine) -> None:
        machine.is_off = False
        machine.begin()

    def take(self, machines: list[str]) -> None:
        """Somebody has plans go by what machines say; all of them, where none is named."""
        desk = self._world.desk()
        if desk is not None:
            self._world.log("person", f"takes facts of {', '.join(machines) or 'all'}")
            desk.life.spawn(self._take(desk.controller, machines))

    async def _take(self, controller: Controller, machines: list[str]) -> None:
        asked = changes.TakeFacts(machines=machines)
        await self._world.change(controller, asked, lambda _: None)

    async def let_go(self) -> None:
        """Somebody gives the command that each line of what waits has with it."""
        desk = self._world.desk()
        if self._world.fleet.needs is None or desk is None:
            return
        try:
            rows = (await desk.controller.status()).facts
        except (RefusedError, PortError):
            return
        for row in rows:
            if row.command:
                self.take([row.machine])

    def heal(self) -> None:
        """Every machine fits, and says a value; from now on it stays as it is."""
        for planned in self._planned:
            planned.cancel()
        if self._world.fleet.needs is None:
            return
        for ground in self._grounds():
            for fact, value in needs.FITTING.items():
                self._set(ground, fact, value)
            ground.facts.setdefault(needs.PROBED, "healed")

    def _grounds(self) -> list[Ground]:
        return [machine.ground for machine in self._world.machines.values()]

    def _other(self, ground: Ground, fact: str) -> Json:
        fits = ground.facts[fact] == needs.FITTING[fact]
        return (needs.LACKING if fits else needs.FITTING)[fact]

    def _set(self, ground: Ground, fact: str, value: Json) -> None:
        if value is None:
            ground.facts.pop(fact, None)
        else:
            ground.facts[fact] = value
        self._world.log("world", f"{ground.name} is otherwise: {fact} {value}")
