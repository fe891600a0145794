"""Whether dynamic and probed values stand only where such a value may.

A plan shows the values of the closure as they were filled in, so one that was filled in from a
dynamic export cannot be told from a text. What can be seen is checked: contracts and holes out
of their place, and contracts whose source nobody gives.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

from msgspec import UnsetType

from keyplane.model import duration
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.module import ReactionKind
from keyplane.model.names import EntryId
from keyplane.model.plan import Dynamic, Entry, Plan
from keyplane.plancheck.rows import wrong

Json = Any

CELL, CONTRACT = "plan-cell", "plan-contract"
_CLOSED = ("publish", "mounts", "limits", "health", "reload")
"""Fields of a unit that could hold more than words, and in which nothing may be open."""


def check(plan: Plan, waived: AbstractSet[EntryId]) -> Iterable[Diagnostic]:
    used = frozenset((edge.consumer, edge.provider) for edge in plan.edges)
    for entry_id, entry in sorted(plan.entries.items()):
        if entry_id in waived:
            continue
        yield from _check_closed(entry_id, entry)
        for unit_name, unit in sorted(entry.units.items()):
            for name, contract in sorted(unit.dynamic.items()):
                path = f"units.{unit_name}.dynamic.{name}"
                if name in unit.env or name in unit.config_data:
                    said = f"{name} is a dynamic value and a settled one as well."
                    yield wrong(CELL, entry_id, path, said)
                yield from _check_contract(entry_id, path, contract)
                yield from _check_sources(plan, used, entry_id, path, contract)


def _check_closed(entry_id: str, entry: Entry) -> Iterable[Diagnostic]:
    closed: list[tuple[str, Json]] = [
        ("resources", entry.resources),
        ("volumes", entry.volumes),
        ("requirements", entry.requirements),
    ]
    for unit_name, unit in entry.units.items():
        for field in _CLOSED:
            value: Json = getattr(unit, field)
            if not isinstance(value, UnsetType):
                closed.append((f"units.{unit_name}.{field}", value))
    for path, value in closed:
        if value and _has_hole(value):
            said = f"{path} waits for a fact, and it is part of what is made."
            yield wrong(CELL, entry_id, path, said)


def _has_hole(value: Json) -> bool:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Json]", value)
        hole = table.get("hole")
        if len(table) == 1 and isinstance(hole, Mapping) and "fact" in hole:
            return True
        return any(_has_hole(item) for item in table.values())
    if isinstance(value, list):
        return any(_has_hole(item) for item in cast("list[Json]", value))
    return False


def _check_contract(entry_id: str, path: str, contract: Dynamic) -> Iterable[Diagnostic]:
    if contract.reaction not in [kind.value for kind in ReactionKind]:
        yield wrong(CONTRACT, entry_id, path, f"{contract.reaction} is no reaction.")
    stated = contract.on_missing
    default = isinstance(stated, dict) and list(cast("dict[str, Json]", stated)) == ["default"]
    if stated not in ("keep-last", "stop") and not default:
        yield wrong(CONTRACT, entry_id, path, f"onMissing cannot be {stated}.")
    limit = contract.max_staleness
    if isinstance(limit, str) and duration.parse(limit) is None:
        yield wrong(CONTRACT, entry_id, path, f"maxStaleness cannot be {limit}.")


def _check_sources(
    plan: Plan,
    used: frozenset[tuple[str, str]],
    entry_id: str,
    path: str,
    contract: Dynamic,
) -> Iterable[Diagnostic]:
    """`ENTRY/provides/PROVIDE/EXPORT`: an edge leads to the entry, and it exports that."""
    sources = [contract.from_] if isinstance(contract.from_, str) else contract.from_
    if not sources:
        yield wrong(CONTRACT, entry_id, path, "It comes from nowhere.")
    for source in sources:
        provider, _, rest = source.partition("/provides/")
        holder = provider.rpartition("@")[0] or provider
        export = plan.exports.get(f"{holder}/provides/{rest}")
        if export is None:
            yield wrong(CONTRACT, entry_id, path, f"Nobody exports {source}.")
        elif export.lifecycle != "dynamic":
            said = f"{source} is {export.lifecycle}, and needs no contract."
            yield wrong(CONTRACT, entry_id, path, said)
        elif entry_id not in export.readers:
            said = f"{entry_id} is not among the readers of {source}."
            yield wrong(CONTRACT, entry_id, path, said)
        if (entry_id, provider) not in used:
            said = f"No edge leads from {entry_id} to {provider}."
            yield wrong(CONTRACT, entry_id, path, said)
