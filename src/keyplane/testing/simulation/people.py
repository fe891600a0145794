"""What people do to a simulated fleet: texts, single edits, rollbacks, and words on entries.

The working copy of one of them is the fleet's text; what another edits through the controller is
taken into it, as by `export`, so that the next apply keeps it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from keyplane.model.names import MachineName
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import RefusedError
from keyplane.parts.controller import Controller
from keyplane.ports.errors import PortError
from keyplane.testing.simulation.world import World

Json = Any
FLEET = "fleet.json"


class People:
    """Draws what they do next; each says it in the log."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance

    def edits(self) -> str:
        """Somebody edits his directory, and applies it."""
        said = "nothing" if self._chance.happens(0.15) else self._world.fleet.edit(self._chance)
        self._world.log("person", f"edits: {said}")
        self._world.apply()
        return ""

    def errs(self) -> str:
        """Somebody applies what fails."""
        if self._world.fleet.instances:
            self._world.log("person", f"edits: {self._world.fleet.err(self._chance)}")
            self._world.apply()
        return ""

    def at_a_machine(self) -> str:
        """Somebody stops or starts an entry where it runs."""
        machine = self._world.machines[self._chance.pick(list(self._world.machines))]
        name = MachineName(machine.name)
        declaration = self._world.watch.declaration(name)
        if declaration is None or not declaration.entries or not machine.is_up:
            return ""
        entry = self._chance.pick(sorted(declaration.entries))
        stops = self._chance.happens(0.6)
        assert machine.agent is not None
        self._world.watch.said_here(name, entry, stop=stops)
        done = (machine.agent.stop_entry if stops else machine.agent.start_entry)(entry, "ana")
        return f"a person {'stops' if stops else 'starts'} {entry}{'' if done else ': not there'}"

    def says(self) -> str:
        """Somebody stops or starts an entry by a word to the controller."""
        desk = self._world.desk()
        if desk is not None:
            desk.life.spawn(self._say(desk.controller))
        return ""

    async def _say(self, controller: Controller) -> None:
        target = await self._world.truth.target()
        if target is None or not target.entries:
            return
        entry, stop = self._chance.pick(sorted(target.entries)), self._chance.happens(0.6)
        self._world.log("person", f"says that {entry} {'stops' if stop else 'starts'}")
        try:
            await controller.say(messages.Say(entry=entry, stop=stop, who="bob"))
        except (RefusedError, PortError) as error:
            self._world.log("person", f"is answered: {error}")

    def sets(self) -> str:
        """Somebody sets one setting, with no directory."""
        fleet = self._world.fleet
        if not fleet.instances:
            return ""
        name, value = self._chance.pick(sorted(fleet.instances)), self._chance.count(1, 3)

        def taken_in() -> None:
            if name in fleet.instances:
                fleet.instances[name] = replace(fleet.instances[name], slots=value)

        place = f"instances.{name}.settings.main.slots"
        self._asks(changes.SetValue(place=f"{name}.main.slots", value=str(value)), place, taken_in)
        return f"a person sets slots of {name} to {value}"

    def pins(self) -> str:
        """Somebody says which machine answers an interface on another, or that it is open again."""
        fleet, pinned = self._world.fleet, self._world.fleet.pins
        if pinned and self._chance.happens(0.6):
            machine, interface = self._chance.pick(sorted(pinned))
            asked = changes.Unpin(machine=machine, interface=interface)
            place = f"machines.{machine}.pins"

            def taken_in() -> None:
                pinned.pop((machine, interface), None)
        else:
            machine = self._chance.pick(fleet.machines)
            interface = self._chance.pick(("database", "page"))
            provider = self._chance.pick(fleet.machines)
            asked = changes.Pin(machine=machine, interface=interface, provider=provider)
            place = f"machines.{machine}.pins"

            def taken_in() -> None:
                pinned[machine, interface] = provider

        self._asks(asked, place, taken_in)
        return f"a person pins: {asked}"

    def rolls_back(self) -> str:
        """Somebody takes the text of a kept generation again."""
        desk = self._world.desk()
        if desk is not None:
            desk.life.spawn(self._roll_back(desk.controller))
        return ""

    async def _roll_back(self, controller: Controller) -> None:
        kept = await self._world.truth.generations()
        if not kept:
            return
        chosen = self._chance.pick(kept)
        self._world.log("person", f"rolls back to {chosen.generation[7:15]}")

        def made(number: int) -> None:
            texts = self._world.truth.texts()
            if texts[number] != texts[chosen.revision]:
                said = f"revision {number} is not {chosen.revision}"
                self._world.watch.fault("a rollback brings its generation's text", said)

        asked = changes.Rollback(generation=chosen.generation)
        await self._world.change(controller, asked, made)

    def _asks(self, asked: changes.Edit, place: str, taken_in: Callable[[], None]) -> None:
        desk = self._world.desk()

        def made(number: int) -> None:
            taken_in()
            texts = self._world.truth.texts()
            moved = _moved(texts.get(number - 1, texts[number]), texts[number])
            if stray := [each for each in moved if not each.startswith(place)]:
                said = f"{asked}: {', '.join(stray)}"
                self._world.watch.fault("an edit changes just what it says", said)

        if desk is not None:
            desk.life.spawn(self._world.change(desk.controller, asked, made))


def _moved(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """Files that differ, and of the fleet's document each place."""
    names = {*before, *after} - {FLEET}
    found = [name for name in sorted(names) if before.get(name) != after.get(name)]
    old, new = (dict(_leaves(json.loads(each[FLEET]), "")) for each in (before, after))
    places = sorted(place for place in {*old, *new} if old.get(place) != new.get(place))
    return found + places


def _leaves(tree: Json, at: str) -> list[tuple[str, Json]]:
    if not isinstance(tree, dict):
        return [(at, tree)]
    inner = cast("dict[str, Json]", tree)
    return [
        leaf for name, each in inner.items() for leaf in _leaves(each, f"{at}.{name}".lstrip("."))
    ]
