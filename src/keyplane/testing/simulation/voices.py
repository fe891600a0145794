"""What services say of themselves while they run, and what happens to it."""

import asyncio

from keyplane.testing.simulation.host import Ground
from keyplane.testing.simulation.readings import path_of
from keyplane.testing.simulation.world import World


class Voices:
    """Draws it, in a fleet with dynamic values."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.values
        self._count = 0
        self._planned: list[asyncio.TimerHandle] = []

    def happen(self) -> None:
        chance = self._chance
        if self._world.fleet.readings is None or not chance.happens(0.8):
            return
        what = chance.weighed({"say": 6, "flap": 3, "burst": 2, "missing": 2, "lose": 1, "edit": 1})
        said = self._do(what)
        if said:
            self._world.log("world", said)

    def _do(self, what: str) -> str:
        world, chance = self._world, self._chance
        if what == "lose":
            world.around.words.stored.clear()
            return "the bus's store of values is deleted"
        if what == "edit":
            said = world.fleet.edit_reading(chance)
            world.log("person", f"edits: {said}")
            world.apply()
            return ""
        providers = [
            (name, world.machines[where].ground)
            for name, each in sorted(world.fleet.instances.items())
            if each.kind == "db"
            for where in each.machines
        ]
        if not providers:
            return ""
        name, ground = chance.pick(providers)
        path = path_of(name)
        match what:
            case "missing":
                ground.exported.pop(path, None)
            case "flap":
                before = ground.exported.get(path, b"first")
                self._say(ground, path)
                self._later(chance.between(0.2, 2.0), ground, path, before)
            case "burst":
                for _ in range(chance.count(3, 8)):
                    self._later(chance.between(0.0, 40.0), ground, path, self._word())
            case _:
                self._say(ground, path)
        return f"{name} on {ground.name}: {what} {ground.exported.get(path, b'').decode()}"

    def _word(self) -> bytes:
        self._count += 1
        return f"10.9.0.{self._count}".encode()

    def _say(self, ground: Ground, path: str) -> None:
        ground.exported[path] = self._word()

    def _later(self, seconds: float, ground: Ground, path: str, word: bytes) -> None:
        loop = asyncio.get_running_loop()
        planned = loop.call_later(seconds, ground.exported.__setitem__, path, word)
        self._planned.append(planned)

    def heal(self) -> None:
        """Every service says something, and keeps to it."""
        for planned in self._planned:
            planned.cancel()
        for machine in self._world.machines.values():
            for name in self._world.fleet.instances:
                if self._world.fleet.readings is not None:
                    machine.ground.exported.setdefault(path_of(name), b"healed")
