"""Instances of a simulated fleet that hang on what machines are.

Tunnels go where a kernel module is: of one facts move nothing by themselves, the other says
`onFact = "apply"`. A gate needs a command on the machine that is named for it. A cache says a probed
value, and its reader has a hole until somebody knows it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyplane.testing.simulation.chance import Chance

Json = Any

HELD, FREE, GATE, CACHE, READER = "tunnel-held", "tunnel-free", "gate", "cache", "reader"
TUNNELS = (HELD, FREE)
MODULES, COMMANDS, PROBED, NOISE = "kernel.modules", "commands", "cache.key", "disk.bytes"
"""Facts as machines say them; nobody reads the last."""
VARIABLE = "KEY"

_REQUIRED = {HELD: "kernel.module.wireguard", FREE: "kernel.module.wireguard", GATE: "command.nft"}
FITTING: Mapping[str, Json] = {MODULES: ["ext4", "wireguard"], COMMANDS: ["ls", "nft"]}
LACKING: Mapping[str, Json] = {MODULES: ["ext4"], COMMANDS: ["ls"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One instance, with a module of its own."""

    name: str
    machine: int
    """Which of those in the fleet, where it is named."""
    count: int
    slots: int = 1


class Needs:
    """What is drawn of them for one run."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._needs = {
            name: Need(name=name, machine=chance.count(0, 4), count=chance.count(1, 2))
            for name in (HELD, FREE, GATE, CACHE, READER)
        }
        self._absent: set[str] = {*chance.some((HELD, FREE, GATE, READER), 0.2)}

    def edit(self) -> str:
        """What somebody does to one of them."""
        chance = self._chance
        each = self._needs[chance.pick(sorted(self._needs))]
        what = chance.weighed({"slots": 4, "count": 2, "move": 2, "presence": 1})
        if what == "presence" and each.name != CACHE:  # its reader would be left without one
            self._absent ^= {each.name}
        self._needs[each.name] = replace(
            each,
            slots=chance.count(1, 3) if what == "slots" else each.slots,
            count=chance.count(1, 2) if what == "count" else each.count,
            machine=chance.count(0, 4) if what == "move" else each.machine,
        )
        return f"sets {what} of {each.name}"

    def write(self, files: dict[str, Json], machines: tuple[str, ...]) -> None:
        """Into documents by path."""
        for name, each in self._needs.items():
            if name in self._absent:
                continue
            files["fleet.json"]["instances"][name] = _instance(each, machines)
            files[f"modules/{name}/module.json"] = _module(each)


def interface() -> str:
    return '[cache.exports]\nkey = "string"\n'


def read_in(files: Mapping[str, bytes]) -> frozenset[tuple[str, str]]:
    """Machine and fact, of each on which something in a fleet's text hangs."""
    fleet = json.loads(files["fleet.json"])
    instances = fleet["instances"]
    found: set[tuple[str, str]] = set()
    if any(name in instances for name in TUNNELS):
        found |= {(machine, MODULES) for machine in fleet["machines"]}
    if GATE in instances:
        found |= {(machine, COMMANDS) for machine in named(instances[GATE])}
    if READER in instances:
        found |= {(machine, PROBED) for machine in named(instances[CACHE])}
    return frozenset(found)


def named(instance: Json) -> list[str]:
    return instance["placement"]["every"]["main"]["machines"]


def _instance(each: Need, machines: tuple[str, ...]) -> Json:
    home = machines[each.machine % len(machines)]
    by_count: Json = {"count": {"main": {"count": each.count}}}
    made: Json = {
        "module": each.name,
        "settings": {"main": {"slots": each.slots}},
        "placement": by_count
        if each.name in TUNNELS
        else {"every": {"main": {"machines": [home]}}},
        "policy": {
            "upgrade": "together",
            "maxUnavailable": 2,
            "settle": "1s",
            "onFailure": "stop",
        },
    }
    if each.name == FREE:
        made["onFact"] = "apply"
    return made


def _module(each: Need) -> Json:
    unit: Json = {
        "kind": "process",
        "command": ["run", "--slots", "${settings.slots}"],
        "stopTimeout": "5s",
    }
    role: Json = {
        "settings": {"slots": {"type": "integer", "default": 1}},
        "units": {"main": unit},
    }
    if each.name in _REQUIRED:
        role["requirements"] = [{"subject": _REQUIRED[each.name], "predicate": "exists"}]
    if each.name == CACHE:
        export = {"lifecycle": "probed", "fact": PROBED}
        role["provides"] = {
            "cache": {"interface": "cache", "scope": "mesh", "exports": {"key": export}}
        }
    if each.name == READER:
        role["uses"] = {"cache": {"interface": "cache"}}
        unit["env"] = {VARIABLE: "${results.cache.key}"}
    return {"module": each.name, "version": "1", "roles": {"main": role}}
