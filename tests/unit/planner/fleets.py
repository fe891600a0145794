"""Fleets written as text, and what planning them says."""

from collections.abc import Mapping
from typing import Any

import msgspec

from keyplane.adapters import directory
from keyplane.documents.evaluation import Call, Fault
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.plan import Plan
from keyplane.plancheck import plan as plancheck
from keyplane.planner import PlanRequest, PlanResult, plan

FILES = Mapping[str, str]


def no_starlark(call: Call) -> Fault:
    return Fault(message="refused", file=call.file, line=1, column=1, source="")


def machines(*names: str, **extra: str) -> str:
    """Machines with the addresses 10.0.0.1 and so on; `extra` adds fields to one of them."""
    return "".join(
        f'[machines.{name}]\naddress = "10.0.{number >> 8}.{number & 255}"\n{extra.get(name, "")}\n'
        for number, name in enumerate(names, 1)
    )


def result_of(
    fleet: str,
    modules: Mapping[str, str],
    interfaces: str = "",
    *,
    files: Mapping[str, str] | None = None,
    previous: Plan | None = None,
    cordoned: Mapping[str, bool] | None = None,
) -> PlanResult:
    """Plan a fleet. Each module is written without its name and version."""
    text: dict[str, bytes] = {
        "fleet.toml": f'fleet = "arena"\n{fleet}'.encode(),
        "interfaces.toml": interfaces.encode(),
    }
    for name, said in modules.items():
        head = f'module = "{name}"\nversion = "1"\n'
        text[f"modules/{name}/module.toml"] = (head + said).encode()
    for path, content in (files or {}).items():
        text[path] = content.encode()
    reading = directory.documents_of(text, no_starlark)
    made = plan(
        PlanRequest(
            documents=reading.documents,
            evaluate=reading.evaluate,
            previous=previous,
            cordoned=cordoned or {},
        )
    )
    unsound = plancheck.check(made.plan, reading.documents)
    assert unsound == [], unsound
    return made


def plan_of(*args: Any, **kwargs: Any) -> Plan:
    return result_of(*args, **kwargs).plan


def facts(machine: str, **said: Any) -> dict[str, str]:
    """A snapshot file; `__` stands for a dot in a name."""
    body = {name.replace("__", "."): value for name, value in said.items()}
    text = msgspec.json.encode({"machine": machine, "facts": body}).decode()
    return {f"facts/{machine}.json": text}


def rows(made: Plan) -> list[tuple[str, str]]:
    """Code and subject of each row."""
    return [(row.code, row.subject) for row in made.diagnostics]


def row(made: Plan, code: str) -> Diagnostic:
    """The one row of that code."""
    found = [one for one in made.diagnostics if one.code == code]
    assert len(found) == 1, made.diagnostics
    return found[0]


def env(made: Plan, entry: str, unit: str = "main") -> dict[str, Any]:
    return msgspec.to_builtins(made.entries[entry].units[unit].env)


def said(made: Plan, entry: str, unit: str = "main") -> dict[str, Any]:
    """A unit as the plan's JSON has it."""
    return msgspec.to_builtins(made.entries[entry].units[unit])


STORE = """
[store.exports]
url = "string"
"""
UNIT = """
[roles.main.units.main]
kind = "process"
command = ["run"]
"""
PROVIDER = (
    UNIT
    + """
[roles.main.provides.store]
interface = "store"
scope = "mesh"
exports.url = { value = "http://${machine.address}/", lifecycle = "static" }
"""
)
"""Offers `store` to the whole fleet."""
READER = """
[roles.main.uses.store]
interface = "store"
[roles.main.units.main]
kind = "process"
command = ["run"]
env = { URL = "${results.store.url}" }
"""


def instance(name: str, module: str, *where: str, more: str = "") -> str:
    """An instance with its role `main` on these machines; on all if there is none."""
    selection = f"{{ machines = {list(where)} }}" if where else "{}"
    return f'[instances.{name}]\nmodule = "{module}"\nplacement.every.main = {selection}\n{more}\n'
