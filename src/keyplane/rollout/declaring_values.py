"""From what a plan says of dynamic values to what an agent is told of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UnsetType

from keyplane.model import duration
from keyplane.model import reaction as contracts
from keyplane.model.declaration import Declaration
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.interface import ValueType
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.plan import Dynamic, Entry, Plan, Unit
from keyplane.model.reaction import Contract, DeclaredRates, Publication
from keyplane.rollout.planned import Planned

Json = Any


def contract(value: Dynamic) -> Contract | None:
    """None where the plan's contract cannot be carried out as it stands."""
    sources = (value.from_,) if isinstance(value.from_, str) else tuple(value.from_)
    parts = contracts.joined(len(sources))
    if isinstance(value.template, str):
        filled = contracts.parts_of(value.template, len(sources))
        if filled is None:
            return None
        parts = filled
    if isinstance(value.reaction, UnsetType):
        return None
    on_missing, default = OnMissing.KEEP_LAST, None
    if isinstance(value.on_missing, str):
        on_missing = OnMissing(value.on_missing)
    elif not isinstance(value.on_missing, UnsetType):
        said: Mapping[str, Json] = value.on_missing
        on_missing, default = OnMissing.DEFAULT, contracts.as_text(said["default"])
    staleness = None
    if isinstance(value.max_staleness, str):
        staleness = duration.parse(value.max_staleness)
    return Contract(
        sources=sources,
        parts=parts,
        reaction=ReactionKind(value.reaction),
        on_missing=on_missing,
        default=default,
        max_staleness_ms=None if staleness is None else staleness.milliseconds,
    )


def contracts_of(unit: Unit) -> dict[str, Contract]:
    found = {name: contract(unit.dynamic[name]) for name in sorted(unit.dynamic)}
    return {name: each for name, each in found.items() if each is not None}


def rows(entry_id: EntryId, name: str, unit: Unit) -> list[Diagnostic]:
    """A row for each contract that no agent could keep."""
    return [
        Diagnostic(
            code="reaction-missing",
            subject=entry_id,
            path=f"units.{name}.{place_of(value_name)}",
            message=f"the dynamic value {value_name} of {name} has no contract that can be kept",
            resolution=("state reaction = restart | reload | live",),
        )
        for value_name in sorted(unit.dynamic)
        if contract(unit.dynamic[value_name]) is None
    ]


def publications(entry: Entry) -> dict[str, Publication]:
    """By `PROVIDE/EXPORT`."""
    if isinstance(entry.publishes, UnsetType):
        return {}
    return {name: _publication(entry.publishes[name]) for name in sorted(entry.publishes)}


def _publication(said: Mapping[str, Json]) -> Publication:
    command, every = said.get("command"), said.get("every")
    parsed = duration.parse(every) if isinstance(every, str) else None
    return Publication(
        type=ValueType(said.get("type", ValueType.STRING)),
        file=said.get("file"),
        command=None if command is None else tuple(str(word) for word in command),
        every_ms=None if parsed is None else parsed.milliseconds,
        published=said.get("published") is True,
    )


def rates(said: Mapping[str, Json] | None) -> DeclaredRates:
    """What people did not say is at its default."""
    default = DeclaredRates()
    if said is None:
        return default
    debounce, budget = said.get("debounce", {}), said.get("restartBudget", {})
    return DeclaredRates(
        window_ms=_ms(debounce.get("window"), default.window_ms),
        burst=debounce.get("burst", default.burst),
        restarts_per_unit=budget.get("perUnit", default.restarts_per_unit),
        budget_ms=_ms(budget.get("window"), default.budget_ms),
    )


def other_rates(before: Plan | None, after: Plan) -> list[MachineName]:
    """Machines that stay, and react at other rates."""
    was = {} if before is None else before.machines
    return [
        MachineName(name)
        for name, machine in sorted(after.machines.items())
        if name in was and was[name].rates != machine.rates
    ]


def reacts(declaration: Declaration) -> bool:
    """Whether some unit of the machine reads a dynamic value."""
    units = (unit for entry in declaration.entries.values() for unit in entry.units.values())
    return any(unit.dynamic for unit in units)


def reacting(entries: Mapping[EntryId, Planned]) -> list[MachineName]:
    """Machines with a unit that reads a dynamic value: those to which rates matter."""
    return sorted(
        {
            split_entry(entry)[2]
            for entry, planned in entries.items()
            if any(unit.dynamic for unit in planned.entry.units.values())
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What of dynamic values a machine's agent may do on the bus."""

    says: tuple[str, ...] = ()
    """The exports of its own entries."""
    reads: tuple[str, ...] = ()
    """Exports of other machines that its units read."""


def rights(*plans: Mapping[EntryId, Planned]) -> dict[MachineName, Rights]:
    """Of each machine that has any, by all of these together: on the way both ends are needed."""
    says: dict[MachineName, set[str]] = {}
    reads: dict[MachineName, set[str]] = {}
    for entries in plans:
        for entry_id, planned in entries.items():
            machine = split_entry(entry_id)[2]
            for name in publications(planned.entry):
                says.setdefault(machine, set()).add(contracts.export_id(entry_id, name))
            for unit in planned.entry.units.values():
                for value in contracts_of(unit).values():
                    foreign = {s for s in value.sources if contracts.machine_of(s) != machine}
                    if foreign:
                        reads.setdefault(machine, set()).update(foreign)
    return {
        machine: Rights(
            says=tuple(sorted(says.get(machine, ()))), reads=tuple(sorted(reads.get(machine, ())))
        )
        for machine in sorted({*says, *reads})
    }


def place_of(name: str) -> str:
    """Paths are configData's; all else is a variable's name."""
    return f"configData.{name}" if name.startswith("/") else f"env.{name}"


def _ms(value: Json, default: int) -> int:
    parsed = duration.parse(value) if isinstance(value, str) else None
    return default if parsed is None else parsed.milliseconds
