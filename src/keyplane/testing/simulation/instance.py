"""An instance of a simulated fleet, and its module as people would write it."""

from dataclasses import dataclass
from typing import Any

from keyplane.testing.simulation import readings
from keyplane.testing.simulation.readings import Reading

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance, with a module of its own."""

    name: str
    machines: tuple[str, ...]
    provider: str | None = None
    """The database that an app or a farm reads, or the app that a site reads."""
    slots: int = 1
    version: int = 1
    config: int = 1
    motd: int = 1
    archive: int = 0
    """Which content; 0 for none."""
    job: int = 0
    """Which version of a run-once job; 0 for none."""
    has_health: bool = False
    follows_values: bool = False
    volume: bool = False
    start_first: bool = False
    """Its next version starts before this one is stopped, where both can be."""
    unit: str = "main"
    """The name of what serves; `former` is the name before it, if it had another."""
    former: str = ""
    upgrade: str = "first"
    away: int = 1
    """How many members may be restarted at once; 0 where nothing is stated."""
    floor: int = 0
    """How many have to stay up."""
    count: int = 0
    """How many there are, wherever; 0 where machines are named."""
    settle: str = "3s"
    deadline: str = ""
    """How long nothing new may be heard; empty for the usual time."""
    rolls_back: bool = False
    reading: Reading | None = None
    """How an app reads what its database says while it runs."""
    defect: str = ""
    """What makes its unit fail: `exit` or `missing`."""

    @property
    def kind(self) -> str:
        return self.name.partition("-")[0]

    def paths(self) -> tuple[str, ...]:
        """Files that it declares on each of its machines."""
        return (f"/etc/{self.name}/config.json", f"/etc/{self.name}/motd")


def module(each: Instance, *, says: bool) -> Json:
    """Its module; of a database that `says` a value while it runs, if it is one."""
    role: dict[str, Json] = {
        "settings": {"slots": {"type": "integer", "default": 1}},
        "listens": {"main": {"protocol": "tcp"}},
        "units": {each.unit: _unit(each)},
        "resources": {
            "tree": {"type": "directory", "path": f"/srv/{each.name}"},
        },
    }
    if each.motd:
        role["resources"]["motd"] = {
            "type": "file",
            "path": f"/etc/{each.name}/motd",
            "text": f"motd {each.motd}",
        }
    if each.job:
        role["units"]["migrate"] = {
            "kind": "job",
            "runOnce": True,
            "command": ["exit", "0", f"job {each.job}"],
        }
    if each.volume:
        role["volumes"] = {"data": {"path": f"/var/lib/{each.name}"}}
    made: dict[str, Json] = {"module": each.name, "version": str(each.version)}
    if each.archive:
        role["resources"]["code"] = {
            "type": "archive",
            "archive": "code",
            "path": f"/opt/{each.name}",
        }
        made["build"] = {"archives": {"code": {"directory": "src"}}}
    address = "${machine.address}:${alloc.ports.main}"
    if each.kind == "db":
        role["provides"] = {
            "database": {
                "interface": "database",
                "scope": "mesh",
                "grants": f"/etc/{each.name}/grants.json",
                "exports": {
                    "dsn": {
                        "value": f"sql://{address}/${{consumer.request.name}}?{each.slots}",
                        "lifecycle": "static",
                    }
                },
            }
        }
        if says:
            readings.provide(role["provides"]["database"]["exports"], each.name)
    else:
        role["uses"] = {"upstream": _slot(each)}
    if each.reading is not None:
        readings.read(role, role["units"][each.unit], each.reading)
    if each.kind == "app":
        role["provides"] = {
            "page": {
                "interface": "page",
                "scope": "mesh",
                "exports": {"url": {"value": f"http://{address}", "lifecycle": "static"}},
            }
        }
    made["roles"] = {"main": role}
    return made


def _slot(each: Instance) -> Json:
    of_data = each.kind in ("app", "farm")
    slot: dict[str, Json] = {"interface": "database" if of_data else "page"}
    if of_data:
        slot["request"] = {"name": each.name}
    if each.follows_values:
        slot["follow"] = "values"
    return slot


def _unit(each: Instance) -> Json:
    commands = {"": ["run"], "exit": ["exit", "1"], "missing": ["missing"]}
    unit: dict[str, Json] = {
        "kind": "process",
        "command": [*commands[each.defect], f"v{each.version}", "--slots", "${settings.slots}"],
        "env": {"PORT": "${alloc.ports.main}"},
        "configData": {f"/etc/{each.name}/config.json": {"text": f"config {each.config}"}},
        "reload": {"signal": "HUP"},
        "stopTimeout": "5s",
    }
    if each.provider is not None:
        export = "url" if each.kind == "site" else "dsn"
        unit["env"]["UPSTREAM"] = "${results.upstream." + export + "}"
    if each.has_health:
        unit["health"] = {"tcp": "${machine.address}:${alloc.ports.main}", "interval": "10s"}
    if each.archive:
        unit["archive"] = "code"
    if each.start_first:
        unit["handover"] = "start-first"
    if each.former:
        unit["replaces"] = each.former
    return unit
