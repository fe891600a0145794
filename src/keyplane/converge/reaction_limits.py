"""When a unit may be acted on: windows, breaker, budget, staleness. Decides times alone.

Each time is reckoned anew from what happened and from the rates of now, so that other rates take
hold in the middle of a window.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keyplane.converge.reaction_state import Action, Known, ReactionState, State, Unit, Value
from keyplane.model.fleet import Rates
from keyplane.model.module import ReactionKind

_ACTION = {
    ReactionKind.LIVE: Action.LIVE,
    ReactionKind.RELOAD: Action.RELOAD,
    ReactionKind.RESTART: Action.RESTART,
}
"""Weakest first."""
_STRENGTH = {kind: rank for rank, kind in enumerate(_ACTION)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """When a held unit is let go."""

    at_ms: int | None
    """None: by no passing of time."""
    overdue_ms: int | None = None
    """When it is overdue, if it is not let go by then."""


def due_ms(state: State) -> int | None:
    """The next instant at which something happens by itself."""
    times = [] if state.frozen else [closes_ms(state)]
    for unit in state.units:
        if unit.hold is not None and not state.frozen:
            release = release_of(unit, state.rates)
            times += [release.at_ms, release.overdue_ms]
    if any(known.silent_since_ms is not None for known in state.exports.values()):
        times += [unsure_ms(unit, state.exports) for unit in state.units]
    return _first(times)


def unsure_ms(unit: Unit, exports: Mapping[str, Known]) -> int | None:
    """When a unit has run for too long on what nobody confirms; None if it never will."""
    if not unit.is_up or unit.on_last:
        return None
    return _first(
        known.silent_since_ms + value.contract.max_staleness_ms
        for value in unit.values.values()
        if value.contract.max_staleness_ms is not None
        for known in (exports.get(source) for source in value.contract.sources)
        if known is not None and known.silent_since_ms is not None
    )


def closes_ms(state: State) -> int | None:
    """When the open window closes: early, where waiting would carry a value past its staleness."""
    if state.opened_ms is None:
        return None
    times: list[int | None] = [state.opened_ms + state.rates.debounce.window.milliseconds]
    for unit in state.units:
        if _may_be_too_stale(unit):  # a thousand others are asked nothing more
            times += [_too_stale_ms(value) for value in resolved_at_close(unit)]
    return _first(times)


def _may_be_too_stale(unit: Unit) -> bool:
    for value in unit.values.values():  # a generator takes twice as long
        if value.wrong_since_ms is not None and value.contract.max_staleness_ms is not None:
            return True
    return False


def resolved_at_close(unit: Unit) -> tuple[Value, ...]:
    """The values of a running unit for which the close of a window does something."""
    if not unit.is_up or unit.halted:
        return ()
    return tuple(
        value
        for value in unit.values.values()
        if value.is_barred or (value.is_pending and (unit.hold is None or value.is_live))
    )


def waits_for_close(unit: Unit) -> bool:
    if unit.halted:
        return False
    if unit.state is ReactionState.STOPPED:
        return unit.is_ready
    return bool(resolved_at_close(unit))


def strongest(values: Iterable[Value]) -> Action:
    kinds = [value.contract.reaction for value in values]
    return _ACTION[max(kinds, key=_STRENGTH.__getitem__)]


def row_with(unit: Unit, rates: Rates, opened_ms: int) -> int:
    """How many windows in a row it would be, with an action in the one that opened then."""
    if unit.acted_ms is None or opened_ms - unit.acted_ms > rates.debounce.window.milliseconds:
        return 1
    return unit.in_row + 1


def budget_ms(unit: Unit, rates: Rates) -> int | None:
    """From when on there is budget for a restart. None: there never is."""
    budget = rates.restart_budget
    if not budget.per_unit:
        return None
    if len(unit.restarts_ms) < budget.per_unit:
        return 0
    return unit.restarts_ms[-budget.per_unit] + budget.window.milliseconds


def has_budget(unit: Unit, rates: Rates, now_ms: int) -> bool:
    free = budget_ms(unit, rates)
    return free is not None and free <= now_ms


def spent(unit: Unit, rates: Rates, now_ms: int) -> tuple[int, ...]:
    """The restarts to remember after one now: no more can count at once."""
    return (*unit.restarts_ms, now_ms)[-rates.restart_budget.per_unit :]


def held_values(unit: Unit) -> tuple[Value, ...]:
    """What a hold keeps from being taken up."""
    return tuple(value for value in unit.values.values() if value.is_pending and not value.is_live)


def release_of(unit: Unit, rates: Rates) -> Release:
    """When a held unit acts: after a quiet window or once too stale, and never without budget."""
    hold = unit.hold
    assert hold is not None
    if any(value.is_barred for value in unit.values.values()):
        return Release(at_ms=None)  # the close of the window that is open will stop it
    quiet = hold.quiet_from_ms + rates.debounce.window.milliseconds
    late = held_values(unit)
    if not late:
        return Release(at_ms=quiet)
    forced = forced_ms(late, hold.since_ms)
    at: int | None = quiet if forced is None else min(quiet, forced)
    if strongest(late) is Action.RESTART:
        free = budget_ms(unit, rates)
        at = None if free is None else max(at, free)
    return Release(at_ms=at, overdue_ms=None if hold.overdue else forced)


def forced_ms(late: Iterable[Value], held_since_ms: int) -> int | None:
    """When the first of these is too stale to be held on, counted from the hold at the least."""
    return _first(_too_stale_ms(value, held_since_ms) for value in late)


def _too_stale_ms(value: Value, since_ms: int = 0) -> int | None:
    limit = value.contract.max_staleness_ms
    if limit is None or value.wrong_since_ms is None:
        return None
    return max(since_ms, value.wrong_since_ms) + limit


def _first(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)
