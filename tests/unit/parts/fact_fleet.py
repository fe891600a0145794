"""A small fleet that hangs on facts in each way, planned in memory."""

from collections.abc import Mapping
from typing import Any

from keyplane.adapters import directory
from keyplane.documents.evaluation import Call, Fault, Value
from keyplane.documents.reading import Reading
from keyplane.model.names import MachineName
from keyplane.parts.control_messages import Text
from keyplane.parts.planning import Base, Planned, Planning
from keyplane.ports import fact_order
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.inventory import StoredPlan
from keyplane.ports.store import Pack

Json = Any


def read(files: Mapping[str, bytes]) -> Reading:
    return directory.documents_of(files, _no_program)


def archive(_: Mapping[str, bytes], __: str, ___: str) -> Pack:
    raise AssertionError("planning packs nothing")


def _no_program(call: Call) -> Value | Fault:
    raise AssertionError(f"{call.file}: no document here is a program")


NOTHING = Base(entries={}, edges=[], plan=None)
HEARD = [MachineName("alpha"), MachineName("beta"), MachineName("gamma")]

INTERFACES = b"""
[cache.exports]
key = "string"
"""
CACHE = b"""
module = "cache"
version = "1"
[roles.main.provides.cache]
interface = "cache"
scope = "mesh"
exports.key = { fact = "cache.key", lifecycle = "probed" }
[roles.main.units.one]
kind = "process"
command = ["run"]
"""
READER = b"""
module = "reader"
version = "1"
[roles.main.uses.cache]
interface = "cache"
[roles.main.units.one]
kind = "process"
command = ["run"]
env = { KEY = "${results.cache.key}" }
"""
VPN = b"""
module = "vpn"
version = "1"
[roles.node.units.one]
kind = "process"
command = ["run"]
[[roles.node.requirements]]
subject = "kernel.module.wireguard"
predicate = "exists"
"""
PLAIN = b"""
module = "plain"
version = "1"
[roles.main.units.one]
kind = "process"
command = ["run"]
"""
MACHINES = "".join(
    f'[machines.{name}]\naddress = "10.0.0.{number}"\n' for number, name in enumerate(HEARD, 1)
)


def text(*instances: str, **files: str | bytes) -> dict[str, bytes]:
    """A fleet of three machines; `FILE__NAME` in place of `FILE/NAME`."""
    modules = {"cache": CACHE, "reader": READER, "vpn": VPN, "plain": PLAIN}
    return {
        "fleet.toml": ('fleet = "arena"\n' + MACHINES + "\n".join(instances)).encode(),
        "interfaces.toml": INTERFACES,
        **{f"modules/{name}/module.toml": content for name, content in modules.items()},
        **{
            path.replace("__", "/"): each.encode() if isinstance(each, str) else each
            for path, each in files.items()
        },
    }


def instance(name: str, placement: str, module: str | None = None, *more: str) -> str:
    role = "node" if (module or name) == "vpn" else "main"
    lines = [f"[instances.{name}]", f'module = "{module or name}"']
    strategy, _, selection = placement.partition(" ")
    return "\n".join([*lines, f"placement.{strategy}.{role} = {selection}", *more, ""])


def named(name: str, *machines: str) -> str:
    listed = ", ".join(f'"{each}"' for each in machines)
    return instance(name, f"every {{ machines = [{listed}] }}")


def known(**facts: Mapping[str, Json]) -> dict[MachineName, StoredFacts]:
    """What machines said, and plans go by."""
    found: dict[MachineName, StoredFacts] = {}
    for name, said in facts.items():
        machine = MachineName(name)
        found[machine] = fact_order.taken(fact_order.after(None, machine, said, 0), said)
    return found


def planned(
    files: Mapping[str, bytes],
    facts: Mapping[MachineName, StoredFacts],
    before: Planned | None = None,
) -> Planned:
    """As the successor of a plan that was sent in full."""
    base, target = NOTHING, None
    if before is not None:
        target = StoredPlan(plan=before.plan, revision=1, entries=before.entries, contents={})
        base = Base(entries=before.entries, edges=before.plan.edges, plan=before.plan)
    planning = Planning(read=read, archive=archive)
    return planning.plan(Text(files=dict(files)), target, base, HEARD, facts)
