"""One unit of the engine, changed as a value: its contracts, its values, its state. Decides nothing."""

from collections.abc import Callable, Mapping

from keyplane.converge.frozen import replace
from keyplane.converge.reaction_state import TRANSITIONS, Turn, Unit, UnitId, Value
from keyplane.model.reaction import Contract


def declared(before: Unit | None, which: UnitId, contracts: Mapping[str, Contract]) -> Unit:
    old: Mapping[str, Value] = {} if before is None else before.values
    declared = {
        name: Value(contract=contract) if name not in old else replace(old[name], contract=contract)
        for name, contract in sorted(contracts.items())
    }
    if before is None:
        return Unit(entry=which[0], name=which[1], values=declared)
    return replace(before, values=declared)


def with_values(unit: Unit, change: Callable[[Value], Value]) -> Unit:
    return replace(unit, values={name: change(value) for name, value in unit.values.items()})


def turned(unit: Unit, turn: Turn) -> Unit:
    return replace(unit, state=TRANSITIONS.get((unit.state, turn), unit.state))


def is_current(unit: Unit) -> bool:
    kept = any(value.kept for value in unit.values.values())
    return unit.hold is None and not unit.on_last and not kept


def is_overdue(unit: Unit) -> bool:
    return unit.hold is not None and unit.hold.overdue


def running(unit: Unit) -> Mapping[str, str]:
    return {name: value.runs for name, value in unit.values.items() if value.runs is not None}
