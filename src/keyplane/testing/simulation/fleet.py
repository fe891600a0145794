"""A small fleet that is edited at random: its text, as people would write it.

Databases, apps that read one, and sites that read apps: three tiers, so that order matters.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from keyplane.testing.simulation import needs, readings
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.instance import Instance, module
from keyplane.testing.simulation.needs import Needs
from keyplane.testing.simulation.readings import Readings

Json = Any

DATABASES = ("db-a", "db-b")
APPS = ("app-a", "app-b", "app-c")
SITES = ("site-a", "site-b")
FARMS = ("farm-a", "farm-b")
"""Of fleets with sets: many readers of one database, by machines or by count."""
_READS = {"db": "", "app": "db", "farm": "db", "site": "app"}
SETTLES = ("1s", "3s", "10s")
DEADLINES = ("", "", "20s", "60s")

_INTERFACES = """
[database.request]
name = "string"
[database.exports]
dsn = "string"
@[page.exports]
url = "string"
"""


@dataclass(slots=True)
class Fleet:
    """The working copy of a person."""

    every: tuple[str, ...]
    """Machines, also those that the text does not name at present."""
    gone: frozenset[str] = frozenset()
    instances: dict[str, Instance] = field(default_factory=dict[str, Instance])
    pins: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """By machine and interface, the machine that answers it there."""
    fault: str = ""
    """What is wrong with its documents; the next edit mends it."""
    readings: Readings | None = None
    """Of a fleet with dynamic values."""
    needs: Needs | None = None
    """Of a fleet that hangs on facts."""
    has_sets: bool = False
    """It has farms."""
    has_mistakes: bool = False
    """It is often edited by people who fail to mend what fails."""

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(name for name in self.every if name not in self.gone)

    def text(self) -> dict[str, bytes]:
        """The whole text, as a map of files."""
        fleet: dict[str, Json] = {
            "fleet": "simulated",
            "machines": {
                name: self._paced(
                    {"address": f"10.0.0.{number}", "local": True} | self._pinned(name)
                )
                for number, name in enumerate(self.every, start=1)
                if name not in self.gone
            },
            "instances": {name: self._instance(each) for name, each in self._sorted()},
        }
        if self.fault == "field":
            fleet["colour"] = "red"
        if self.fault == "module" and self.instances:
            fleet["instances"][min(self.instances)]["module"] = "absent"
        files: dict[str, Json] = {"fleet.json": fleet}
        says = self.readings is not None
        interfaces = _INTERFACES.replace("@", readings.interface() if says else "")
        if self.needs is not None:
            self.needs.write(files, self.machines)
            interfaces += needs.interface()
        texts: dict[str, bytes] = {"interfaces.toml": interfaces.encode()}
        for name, each in self._sorted():
            files[f"modules/{name}/module.json"] = module(each, says=says)
            if each.archive:
                texts[f"modules/{name}/src/code"] = f"{name} {each.archive}".encode()
        for path, document in files.items():
            texts[path] = json.dumps(document, sort_keys=True).encode()
        return dict(sorted(texts.items()))

    def _pinned(self, machine: str) -> Json:
        pins = {what: where for (here, what), where in sorted(self.pins.items()) if here == machine}
        return {"pins": pins} if pins else {}

    def _paced(self, made: Json) -> Json:
        return made if self.readings is None else self.readings.pace(made)

    def _sorted(self) -> list[tuple[str, Instance]]:
        return sorted(self.instances.items())

    def _instance(self, each: Instance) -> Json:
        made: dict[str, Json] = {
            "module": each.name,
            "settings": {"main": {"slots": each.slots}},
            "placement": {"count": {"main": {"count": each.count}}}
            if each.count
            else {"every": {"main": {"machines": list(each.machines)}}},
        }
        if each.floor:
            made["floor"] = {"main": each.floor}
        made["policy"] = {
            **({"maxUnavailable": each.away} if each.away else {}),
            "upgrade": each.upgrade,
            "settle": each.settle,
            "onFailure": "rollback" if each.rolls_back else "stop",
        }
        if each.deadline:
            made["policy"]["deadline"] = each.deadline
        if each.provider is not None:
            made["bind"] = {"main": {"upstream": each.provider}}
        return made

    # Edits. Each says what it did.

    def begin(self, chance: Chance) -> None:
        self.add(chance, DATABASES[0])
        for name in chance.some((*DATABASES[1:], *APPS, *SITES), 0.6):
            self.add(chance, name)
        for name in FARMS if self.has_sets else ():
            self.add(chance, name)

    def add(self, chance: Chance, name: str) -> str:
        kind = name.partition("-")[0]
        providers = self._of(_READS[kind])
        if kind != "db" and not providers:
            return f"{name} finds no provider"
        machines = chance.some(self.machines, 0.7) if kind == "site" else []
        self.instances[name] = Instance(
            name=name,
            machines=tuple(machines or [chance.pick(self.machines)]),
            provider=chance.pick(providers) if providers else None,
            archive=chance.count(0, 1),
            job=chance.count(0, 1) if kind == "app" else 0,
            has_health=chance.happens(0.5),
            follows_values=chance.happens(0.3),
            volume=kind == "db" or chance.happens(0.2),
            start_first=chance.happens(0.4),
            upgrade=chance.pick(("first", "first", "together")),
            away=chance.count(1, 3),
            settle=chance.pick(SETTLES),
            deadline=chance.pick(DEADLINES),
            rolls_back=chance.happens(0.3),
            reading=self.readings.draw() if self.readings and kind in ("app", "farm") else None,
        )
        if kind == "farm":
            self.instances[name] = self._as_set(chance, self.instances[name])
        return f"adds {name}"

    def _as_set(self, chance: Chance, each: Instance) -> Instance:
        """Mostly with some that have to stay up; its data, if it had any, would go with each."""
        count = chance.count(1, len(self.machines)) if chance.happens(0.5) else 0
        return replace(
            each,
            machines=() if count else tuple(chance.some(self.machines, 0.8) or self.machines),
            count=count,
            floor=chance.pick((0, 0, 1, 2)),
            away=chance.pick((0, 1, 1, 2)),
            volume=False,
        )

    def leaves(self, name: str) -> None:
        """As the controller takes a machine out of the text."""
        self.gone |= {name}
        self.pins = {at: to for at, to in self.pins.items() if name not in (at[0], to)}
        for instance, each in self._sorted():
            left = tuple(machine for machine in each.machines if machine != name)
            self.instances[instance] = replace(each, machines=left)

    def err(self, chance: Chance) -> str:
        """What fails, or another thing that fails in its place; it asks to go back."""
        failing = [name for name, each in self._sorted() if each.defect]
        again = failing if failing and chance.happens(0.7) else sorted(self.instances)
        each = self.instances[chance.pick(again)]
        defects = [defect for defect in ("exit", "missing") if defect != each.defect]
        self.instances[each.name] = replace(
            each,
            version=each.version + 1,
            defect=chance.pick(defects),
            upgrade=chance.pick(("first", "together")),
            deadline="",
            rolls_back=chance.happens(0.7),
        )
        return f"sets what fails of {each.name}"

    def edit_reading(self, chance: Chance) -> str:
        """Another pace of all machines, or another contract of one app."""
        apps = [each for each in self.instances.values() if each.reading is not None]
        assert self.readings is not None
        if not apps or chance.happens(0.5):
            self.readings.draw_pace()
            return "sets the pace of reactions"
        each = chance.pick(apps)
        assert each.reading is not None
        reading = self.readings.draw_again(each.reading)
        self.instances[each.name] = replace(each, reading=reading)
        return f"sets the contract of {each.name}"

    def _of(self, kind: str) -> list[str]:
        return [name for name, each in self._sorted() if each.kind == kind]

    def edit(self, chance: Chance) -> str:
        """One edit, or two at once. What a pin stands in the way of waits for its end."""
        self.fault = ""
        if chance.happens(0.5):
            self.pins.clear()
        said = [self._edit(chance)]
        while chance.happens(0.35):
            said.append(self._edit(chance))
        return ", ".join(said)

    def _edit(self, chance: Chance) -> str:
        what = chance.weighed(
            {
                "slots": 4,
                "version": 3,
                "config": 4,
                "motd": 2,
                "archive": 2,
                "job": 2,
                "move": 4,
                "add": 3,
                "remove": 3,
                "rebind": 2,
                "health": 1,
                "follow": 1,
                "volume": 1,
                "handover": 1,
                "rename": 2,
                "policy": 2,
                "defect": 1,
                "fault": 1,
                "machine": 3,
            }
        )
        if what == "machine":
            return self._machine(chance)
        if what == "fault":
            self.fault = chance.pick(("field", "module"))
            return f"breaks the documents ({self.fault})"
        names = (*DATABASES, *APPS, *SITES, *(FARMS if self.has_sets else ()))
        absent = [name for name in names if name not in self.instances]
        if what == "add" or not self.instances:
            return self.add(chance, chance.pick(absent)) if absent else "adds nothing"
        each = self.instances[chance.pick(sorted(self.instances))]
        if what == "remove":
            return self._remove(each)
        return self._change(chance, what, each)

    def _remove(self, each: Instance) -> str:
        users = {other.name for other in self.instances.values() if other.provider == each.name}
        users |= {o.name for o in self.instances.values() if o.provider in users}
        for name in (each.name, *users):
            self.instances.pop(name, None)
        return f"removes {', '.join(sorted({each.name, *users}))}"

    def _machine(self, chance: Chance) -> str:
        """One leaves the fleet, or one that left comes back."""
        if self.gone and chance.happens(0.6):
            name = chance.pick(sorted(self.gone))
            self.gone -= {name}
            return f"{name} joins the fleet"
        if len(self.machines) < 3:  # what is left is to be a fleet
            return "nothing"
        name = chance.pick(self.machines)
        self.gone |= {name}
        self.pins = {at: to for at, to in self.pins.items() if name not in (at[0], to)}
        for instance, each in self._sorted():
            if each.count:
                continue
            left = tuple(machine for machine in each.machines if machine != name)
            made = replace(each, machines=left or (chance.pick(self.machines),))
            self.instances[instance] = made
        return f"{name} leaves the fleet"

    def _change(self, chance: Chance, what: str, each: Instance) -> str:
        name, made = each.name, each
        match what:
            case "slots":
                made = replace(each, slots=chance.count(1, 3))
            case "version":
                made = replace(each, version=chance.count(1, 3))
            case "config":
                made = replace(each, config=chance.count(1, 3))
            case "motd":
                made = replace(each, motd=chance.count(0, 3))
            case "archive":
                made = replace(each, archive=chance.count(0, 2))
            case "job":
                made = replace(each, job=chance.count(0, 3))
            case "move" | "volume" | "policy" if each.kind == "farm":
                made = self._as_set(chance, each)
            case "move":
                many = each.kind == "site"
                machines = chance.some(self.machines, 0.7) if many else []
                made = replace(each, machines=tuple(machines or [chance.pick(self.machines)]))
            case "rebind" if each.provider is not None:
                kind = self.instances[each.provider].kind
                made = replace(each, provider=chance.pick(self._of(kind)))
            case "health":
                made = replace(each, has_health=not each.has_health)
            case "follow":
                made = replace(each, follows_values=not each.follows_values)
            case "handover":
                made = replace(each, start_first=not each.start_first)
            case "rename":
                other = "server" if each.unit == "main" else "main"
                former = each.unit if chance.happens(0.8) else ""
                made = replace(each, unit=other, former=former)
            case "volume":
                made = replace(each, volume=not each.volume)
            case "policy":
                upgrade = chance.pick(("first", "together", "record"))
                made = replace(
                    each,
                    upgrade=upgrade,
                    away=chance.count(1, 3),
                    settle=chance.pick(SETTLES),
                    deadline=chance.pick(DEADLINES),
                    rolls_back=chance.happens(0.5),
                )
            case "defect":
                made = replace(each, defect="" if each.defect else chance.pick(("exit", "missing")))
            case _:
                pass
        self.instances[name] = made
        return f"sets {what} of {name}"

    def mend(self) -> None:
        """Take out everything that is known to fail, or to wait for a person."""
        self.fault = ""
        self.pins.clear()
        for name, each in self.instances.items():
            upgrade = "first" if each.upgrade == "record" else each.upgrade
            made = replace(each, defect="", upgrade=upgrade, deadline="")
            if each.count:  # one machine may be kept free of it
                made = replace(made, count=min(each.count, len(self.machines) - 1))
            elif not each.machines:
                made = replace(made, machines=self.machines[:1])
            self.instances[name] = made
