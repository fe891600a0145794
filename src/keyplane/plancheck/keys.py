"""Keys, digests and the generation, hashed anew from what the plan shows, by CONTRACT §3 and §8.

What a hash is of, exactly:

- machine: {name, platform}. A plan does not show the platform: that hash is taken as it is.
- closure: {module, units: {UNIT: {kind and the fields that are made}}, resources, listens,
  volumes with their paths, secrets, artifacts}.
- a unit's digest: {closure: hash of {fields, artifacts: those that it names}, env, dependencies:
  {entry: key}}. A plan shows the providers of an entry, not those of each unit: the digest has
  to be right for some of them.
- key: {closure, env: {UNIT: {VARIABLE: value}}, machine, dependencies: {entry: key}}. A variable
  that is a dynamic text counts as {template}. In a circle the others' keys are the one hash of
  {entry: {closure, env, machine, dependencies outside}}.
- generation: {machine: hash of {entries: {entry: hash of all that the plan says of it},
  allocations, edges of its consumers, exports that it reads with lifecycle and access, address,
  rates}}.

Which values of a provider an entry followed by its key, and whether each value of a closure was
resolved rightly, cannot be seen in a plan.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, cast

import msgspec
from msgspec import UnsetType

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.names import split_entry
from keyplane.model.plan import Entry, Plan, Unit
from keyplane.plancheck.canonical import digest
from keyplane.plancheck.circles import circles
from keyplane.plancheck.rows import wrong

Json = Any

CODE = "plan-key"
_NOT_MADE = frozenset(
    {"digest", "env", "configData", "dynamic", "health", "reload", "restart", "stopTimeout",
     "handover", "replaces", "stopFirst", "secretReactions"}
)  # fmt: skip
"""What of a unit is no part of its closure: planes of their own, and what is applied live."""
_ARTIFACTS = ("archive", "bundle", "nix", "image")
_TRIED_MAX = 10
"""Providers of one entry: each of the 1,024 choices of a unit's among so many is tried."""


def check(plan: Plan) -> Iterable[Diagnostic]:
    shared = _components(plan)
    for entry_id, entry in sorted(plan.entries.items()):
        machine = plan.machines.get(split_entry(entry_id)[2])
        if machine is None or any(name not in plan.entries for name in entry.dependencies):
            continue  # a row of another check says so
        closure = digest(_closure(entry))
        if closure != entry.closure:
            yield _differs(entry_id, "closure", entry.closure, closure)
        keys = _provider_keys(plan, entry_id, entry, shared)
        for unit_name, unit in sorted(entry.units.items()):
            if not _is_digest(entry, unit, keys):
                said = f"The digest of {unit_name} is not that of what {entry_id} says of it."
                yield wrong(CODE, entry_id, f"units.{unit_name}.digest", said)
        key = digest(
            {
                "closure": entry.closure,
                "env": _env(entry),
                "machine": machine.key,
                "dependencies": keys,
            }
        )
        if key != entry.key:
            yield _differs(entry_id, "key", entry.key, key)
    generation = digest(_machines(plan))
    if generation != plan.generation and plan.fleet is not None:
        yield _differs("plan", "generation", plan.generation, generation)


def _differs(subject: str, what: str, stated: str, found: str) -> Diagnostic:
    return wrong(CODE, subject, what, f"The {what} is stated as {stated}, and hashes to {found}.")


def _closure(entry: Entry) -> Json:
    return {
        "module": entry.module,
        "units": {name: _made(unit) for name, unit in entry.units.items()},
        "resources": entry.resources,
        "listens": entry.listens,
        "volumes": entry.volumes,
        "secrets": entry.secrets,
        "artifacts": entry.artifacts,
    }


def _made(unit: Unit) -> dict[str, Json]:
    fields = cast("dict[str, Json]", msgspec.to_builtins(unit))
    return {name: value for name, value in fields.items() if name not in _NOT_MADE}


def _env(entry: Entry) -> dict[str, Json]:
    return {name: _unit_env(unit) for name, unit in entry.units.items()}


def _unit_env(unit: Unit) -> dict[str, Json]:
    templates = {
        name: {"template": contract.template}
        for name, contract in unit.dynamic.items()
        if "/" not in name and not isinstance(contract.template, UnsetType)
    }
    return {**unit.env, **templates}


def _is_digest(entry: Entry, unit: Unit, keys: Mapping[str, str]) -> bool:
    named = [getattr(unit, field) for field in _ARTIFACTS]
    artifacts = {name: entry.artifacts[name] for name in named if name in entry.artifacts}
    closure = digest({"fields": _made(unit), "artifacts": artifacts})
    env = _unit_env(unit)
    names = sorted(keys)
    if len(names) > _TRIED_MAX:
        return True
    return any(
        digest({"closure": closure, "env": env, "dependencies": {n: keys[n] for n in chosen}})
        == unit.digest
        for count in range(len(names), -1, -1)
        for chosen in combinations(names, count)
    )


def _provider_keys(
    plan: Plan, entry_id: str, entry: Entry, shared: Mapping[str, tuple[frozenset[str], str]]
) -> dict[str, str]:
    """The keys of its providers, or for those in its own circle the one hash of it."""
    members, component = shared.get(entry_id, (frozenset[str](), ""))
    return {
        name: component if name in members else plan.entries[name].key
        for name in entry.dependencies
    }


def _components(plan: Plan) -> dict[str, tuple[frozenset[str], str]]:
    """By entry of a circle: all of the circle, and its hash."""
    known = {
        entry_id: [name for name in entry.dependencies if name in plan.entries]
        for entry_id, entry in plan.entries.items()
    }
    hashes: dict[frozenset[str], str] = {}
    found: dict[str, tuple[frozenset[str], str]] = {}
    for entry_id, members in circles(known).items():
        if members not in hashes:
            hashes[members] = digest({name: _member(plan, name, members) for name in members})
        found[entry_id] = members, hashes[members]
    return found


def _member(plan: Plan, entry_id: str, members: frozenset[str]) -> Json:
    entry = plan.entries[entry_id]
    machine = plan.machines.get(split_entry(entry_id)[2])
    return {
        "closure": entry.closure,
        "env": _env(entry),
        "machine": "" if machine is None else machine.key,
        "dependencies": {
            name: plan.entries[name].key
            for name in entry.dependencies
            if name not in members and name in plan.entries
        },
    }


def _machines(plan: Plan) -> dict[str, str]:
    """The hash of each machine's part of the plan."""
    parts: dict[str, dict[str, Json]] = {
        name: {
            "entries": {},
            "allocations": plan.allocations.ports.get(name, {}),
            "edges": [],
            "exports": {},
            "address": machine.address,
            "rates": machine.rates,
        }
        for name, machine in plan.machines.items()
    }
    for entry_id, entry in plan.entries.items():
        if (part := parts.get(split_entry(entry_id)[2])) is not None:
            part["entries"][entry_id] = digest(entry)
    for edge in plan.edges:
        if (part := parts.get(split_entry(edge.consumer)[2])) is not None:
            part["edges"].append(edge)
    for export_id, export in plan.exports.items():
        for reader in export.readers:
            if (part := parts.get(split_entry(reader)[2])) is not None:
                part["exports"][export_id] = [export.lifecycle, export.access]
    return {name: digest(part) for name, part in parts.items()}
