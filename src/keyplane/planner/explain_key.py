"""The key of an entry, input by input: what it is the hash of."""

import msgspec
from msgspec import UNSET

from keyplane.model.module import Json
from keyplane.model.names import split_entry
from keyplane.model.plan import Entry, Plan, Unit
from keyplane.planner import canonical, explain_hiding, graph


class KeyInputs(msgspec.Struct, frozen=True, kw_only=True):
    """`key` is the hash of the four others. A secret in clear is hidden, its hash is not."""

    key: str
    closure: str
    env: dict[str, dict[str, Json]]
    """By unit, then variable."""
    machine: str
    dependencies: dict[str, str]
    """Within a circle it is the hash of the whole circle that counts."""


def inputs(plan: Plan, entry_id: str) -> KeyInputs:
    """Of an entry of the plan."""
    entry = plan.entries[entry_id]
    circle = _circle(plan, entry_id)
    shared = _shared(plan, circle) if len(circle) > 1 else ""
    return KeyInputs(
        key=entry.key,
        closure=entry.closure,
        env={
            name: {
                variable: explain_hiding.shown(value, variable)
                for variable, value in sorted(env_of(unit).items())
            }
            for name, unit in sorted(entry.units.items())
        },
        machine=_machine(plan, entry_id),
        dependencies={
            name: shared if name in circle else plan.entries[name].key
            for name in entry.dependencies
        },
    )


def env_of(unit: Unit | None) -> dict[str, Json]:
    """What is hashed as env: values, and the templates of variables with dynamic values."""
    if unit is None:
        return {}
    found: dict[str, Json] = msgspec.to_builtins(unit.env)
    for name, contract in unit.dynamic.items():
        if "/" not in name and contract.template is not UNSET:
            found[name] = {"template": contract.template}
    return found


def _machine(plan: Plan, entry_id: str) -> str:
    return plan.machines[split_entry(entry_id)[2]].key


def _circle(plan: Plan, entry_id: str) -> list[str]:
    """The entries that the entry depends on and that depend on it; it alone where there is none."""
    edges = {name: entry.dependencies for name, entry in plan.entries.items()}
    # All that is reached from one entry, its own component last.
    return graph.components([entry_id], edges)[-1]


def _shared(plan: Plan, circle: list[str]) -> str:
    return canonical.digest_of(
        {name: _component_part(plan, name, plan.entries[name], circle) for name in circle}
    )


def _component_part(plan: Plan, name: str, entry: Entry, circle: list[str]) -> Json:
    return {
        "closure": entry.closure,
        "env": {unit_name: env_of(unit) for unit_name, unit in entry.units.items()},
        "machine": _machine(plan, name),
        "dependencies": {
            other: plan.entries[other].key for other in entry.dependencies if other not in circle
        },
    }
