"""Those who say where nothing is to be placed, and which machine is to go, at whatever time."""

import asyncio
from collections.abc import Callable

from keyplane.parts import change_messages as changes
from keyplane.testing.simulation.world import World


class Placers:
    """Draws what they say."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance

    def word(self) -> str:
        return self._chance.weighed(
            {
                self._drains: 4,
                self._cordons: 2,
                self._uncordons: 3,
                self._removes: 3,
                self._loses: 4,
            }
        )()

    def _machine(self) -> str:
        return self._chance.pick(self._world.fleet.machines)

    def _drains(self) -> str:
        name = self._machine()
        self._asks(changes.Drain(machine=name))
        return f"a person drains {name}"

    def _cordons(self) -> str:
        name = self._machine()
        self._asks(changes.Cordon(machine=name))
        return f"a person cordons {name}"

    def _uncordons(self) -> str:
        name = self._machine()
        self._asks(changes.Uncordon(machine=name))
        return f"a person uncordons {name}"

    def _removes(self) -> str:
        """One that is off is lost, mostly; some that live are taken for lost."""
        fleet = self._world.fleet
        off = [name for name in fleet.machines if self._world.machines[name].is_off]
        name = self._chance.pick(off) if off and self._chance.happens(0.7) else self._spare()
        return self._remove(name, lost=self._chance.happens(0.9 if name in off else 0.2))

    def _loses(self) -> str:
        """A machine is off, and somebody takes it out of the fleet a while later."""
        name = self._spare()
        machine = self._world.machines[name]
        machine.is_off = True
        if machine.life is not None:
            machine.life.kill("off")
        loop = asyncio.get_running_loop()

        def back() -> None:
            machine.is_off = False
            machine.begin()

        loop.call_later(self._chance.between(5, 40), self._said, name)
        loop.call_later(self._chance.between(60, 400), back)
        return f"{name} is off"

    def _said(self, name: str) -> None:
        if said := self._remove(name, lost=True):
            self._world.log("world", said)

    def _spare(self) -> str:
        """One on which nothing is that others use, if there is one."""
        fleet = self._world.fleet
        used = {
            machine
            for each in fleet.instances.values()
            if each.kind in ("db", "app")
            for machine in each.machines
        }
        return self._chance.pick([n for n in fleet.machines if n not in used] or fleet.machines)

    def _remove(self, name: str, *, lost: bool) -> str:
        fleet = self._world.fleet
        if len(fleet.machines) < 3 or name in fleet.gone:  # what is left is to be a fleet
            return ""

        def taken_in() -> None:
            if name not in fleet.gone:
                fleet.leaves(name)

        self._asks(changes.RemoveMachine(machine=name, lost=lost), taken_in)
        return f"a person removes {name}{' as lost' if lost else ''}"

    def _asks(
        self, asked: changes.Edit | changes.Cordoning, taken_in: Callable[[], None] = lambda: None
    ) -> None:
        desk = self._world.desk()
        if desk is not None:
            desk.life.spawn(self._world.change(desk.controller, asked, lambda _: taken_in()))

    async def let_go(self) -> None:
        """One machine at most stays without what is placed by count: there is to be room."""
        cordons = await self._world.truth.cordons()
        for name in sorted(cordons)[1:]:
            self._world.log("person", f"uncordons {name}")
            self._asks(changes.Uncordon(machine=name))
