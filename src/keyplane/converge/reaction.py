"""How one machine reacts to values that no plan can hold. Sans-IO: (state, event) -> (state, rows).

Decides values and times; whoever drives it acts on the rows. CONTRACT §7 says the rules, §8 the
fine print. Where they leave room, this is what an operator is given:

- Each change that a unit of the machine reads opens a window where none is open: a first value
  and a `missing` too, though nothing may be left to do when it closes. What nobody reads is
  nothing.
- All that is heard at one instant is one event; what was due before it, or at that instant,
  comes first. So the order within an instant changes no action.
- A window is in a row if it opens at most one window length after the last restart or reload.
- A released or forced action takes up all that is known, of the open window too, and is the first
  of a new row. It comes before the close of a window at the same instant.
- A value that came back while its unit is held restarts nothing: the hold ends when it was quiet.
- Of a held unit a value that became wrong after the trip is stale from then on, not from the trip.
- The staleness of a kept value begins with `missing`: where another comes after `maxStaleness`
  has passed, its window closes at once.
- `stop` stops a held unit as well, and ends the hold. Stops and starts spend no budget and are in
  no row, yet do not end one.
- A unit that waits takes a default as its first value; `stop` and `keep-last` leave it waiting.
- Where an export is missing with others in one template, the contract's `onMissing` is of the
  whole text; `keep-last` fills in what the missing one said last.
- `overdue` is told when it begins and when it ends.
- A failed unit is restarted by fresh values as a running one is. A reload does not mend it.
- Who starts a unit for another cause gives it all that is known, and a hold outlives that.
- A unit that is started with values from an earlier life is `running-stale` until each of them was
  heard of again; one whose provider is silent for `maxStaleness` becomes that too. Neither is ever
  stopped or restarted for it.
- What is told under a lower number than what is known is older, and is nothing.
- While the fleet is frozen no window closes and no hold ends: nothing is started, stopped, reloaded
  or taken live, and a unit with a value that it did not take up is `running-stale`. What was due by
  then happens at once when it is thawed.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never

from keyplane.converge import reaction_limits as limits
from keyplane.converge import reaction_units as units
from keyplane.converge import reaction_values as values
from keyplane.converge.frozen import replace
from keyplane.converge.reaction_state import (
    Action,
    Declared,
    Event,
    Halted,
    Hold,
    Known,
    News,
    Reacted,
    ReactionState,
    Seen,
    Sounded,
    Started,
    State,
    Ticked,
    Told,
    Turn,
    Unit,
    UnitId,
    shifted,
)
from keyplane.model.fleet import Rates
from keyplane.model.reaction import Contracts


def begin(*, rates: Rates, contracts: Contracts, exports: Mapping[str, str]) -> State:
    """A machine on which every unit runs already that has all its values."""
    work = _Step(State(rates=rates), 0)
    work.exports = {export: Known(value=value) for export, value in exports.items()}
    work.declare(contracts)
    return work.state()


def resume(state: State, *, now_ms: int) -> State:
    """A state that an earlier life saved, at the beginning of another.

    What it knows is remembered, and was not heard. Where the machine's clock began anew since, no
    time has passed.
    """
    exports = {
        name: replace(known, unheard=True, silent_since_ms=None)
        for name, known in state.exports.items()
    }
    return replace(shifted(state, min(0, now_ms - state.now_ms)), exports=exports, now_ms=now_ms)


def step(state: State, event: Event) -> tuple[State, tuple[Reacted, ...]]:
    """What the event makes of the state, and what is to be done, in order."""
    work = _Step(state, event.now_ms)
    work.run_due()
    match event:
        case Told():
            work.hear(event.news)
        case Declared():
            work.rates, work.frozen = event.rates, event.frozen
            work.declare(event.contracts)
            work.open_if_needed()
        case Seen():
            work.see((event.entry, event.unit), is_up=event.is_up)
        case Started():
            work.take_up((event.entry, event.unit))
        case Halted():
            work.halt((event.entry, event.unit), is_halted=event.is_halted)
        case Sounded():
            work.sound(event)
        case Ticked():
            pass
        case _:
            assert_never(event)
    work.run_due()
    after = work.state()
    return state if after == state else after, tuple(work.rows)


class _Step:
    """The work of one step."""

    def __init__(self, state: State, now_ms: int) -> None:
        self.now_ms = now_ms
        self.rates, self.frozen = state.rates, state.frozen
        self.exports: Mapping[str, Known] = state.exports
        self.readers = state.readers
        self.units: dict[UnitId, Unit] = {(unit.entry, unit.name): unit for unit in state.units}
        self.opened_ms = state.opened_ms
        self.rows: list[Reacted] = []

    def state(self) -> State:
        return State(
            rates=self.rates,
            units=tuple(self.units.values()),
            exports=self.exports,
            opened_ms=self.opened_ms,
            frozen=self.frozen,
            now_ms=self.now_ms,
            readers=self.readers,
        )

    def run_due(self) -> None:
        """What is due by now: holds first, so that a unit acts once at one instant."""
        if not self.frozen:
            self._act_when_due()
        if any(known.silent_since_ms is not None for known in self.exports.values()):
            for unit in tuple(self.units.values()):
                unsure = limits.unsure_ms(unit, self.exports)
                if unsure is not None and unsure <= self.now_ms:
                    self._put(self._settled(replace(unit, on_last=True)))

    def _act_when_due(self) -> None:
        for unit in tuple(self.units.values()):
            if unit.hold is not None:
                self._release(unit, unit.hold)
        if self.opened_ms is not None:
            closes = limits.closes_ms(self.state())
            if closes is not None and closes <= self.now_ms:
                self._close()

    def hear(self, news: Iterable[News]) -> None:
        exports = dict(self.exports)
        changes: dict[str, int] = {}
        heard: set[UnitId] = set()
        for one in news:
            old = exports.get(one.export, values.UNKNOWN)
            if one.export not in self.readers or one.number < old.number:
                continue
            new = values.heard(old, one)
            if new == old:
                continue
            exports[one.export] = new
            heard.update(self.readers[one.export])
            if old is values.UNKNOWN or (new.value, new.missing) != (old.value, old.missing):
                changes[one.export] = changes.get(one.export, 0) + 1
        self.exports = exports
        for which in sorted(heard):
            self._told(self.units[which], changes)
        if changes and self.opened_ms is None:
            self.opened_ms = self.now_ms

    def declare(self, contracts: Contracts) -> None:
        before = self.units
        self.units = {}
        for entry in sorted(contracts):
            for name, declared in sorted(contracts[entry].items()):
                unit = units.declared(before.get((entry, name)), (entry, name), declared)
                self.units[entry, name] = unit
                self._look(unit)
        readers: dict[str, dict[UnitId, None]] = {}
        for which, unit in self.units.items():
            for value in unit.values.values():
                for source in value.contract.sources:
                    readers.setdefault(source, {})[which] = None
        self.readers = {source: tuple(units) for source, units in readers.items()}
        self.exports = {name: known for name, known in self.exports.items() if name in readers}

    def open_if_needed(self) -> None:
        if self.opened_ms is None and any(map(limits.waits_for_close, self.units.values())):
            self.opened_ms = self.now_ms

    def see(self, which: UnitId, *, is_up: bool) -> None:
        unit = self.units.get(which)
        if unit is None:
            return
        is_current = units.is_current(unit) and not self._is_kept_back(unit)
        back = Turn.UP if is_current else Turn.UP_ON_LAST
        self._put(units.turned(unit, back if is_up else Turn.ENDED))

    def take_up(self, which: UnitId) -> None:
        unit = self.units.get(which)
        if unit is None or not unit.is_up:
            return
        unit = replace(units.with_values(unit, values.taken), collapsed=0)
        self._put(self._settled(replace(unit, on_last=self._is_unsure(unit))))

    def halt(self, which: UnitId, *, is_halted: bool) -> None:
        unit = self.units.get(which)
        if unit is None or unit.halted == is_halted:
            return
        self._look(replace(unit, halted=is_halted, hold=None))
        if not is_halted:
            self.open_if_needed()

    def sound(self, event: Sounded) -> None:
        exports = dict(self.exports)
        moved: set[UnitId] = set()
        for name in event.exports:
            known = exports.get(name)
            if known is not None and (known.silent_since_ms is not None) != event.is_silent:
                since = self.now_ms if event.is_silent else None
                exports[name] = replace(known, silent_since_ms=since)
                moved.update(self.readers.get(name, ()))
        self.exports = exports
        for which in sorted(moved):
            self._put(self._settled(self.units[which]))

    def _told(self, unit: Unit, changes: Mapping[str, int]) -> None:
        mine: set[str] = set()
        disturbing = False
        for value in unit.values.values():
            touched = changes.keys() & value.contract.sources
            mine |= touched
            disturbing = disturbing or (bool(touched) and not value.is_live)
        hold = unit.hold
        if hold is not None and disturbing:
            hold = replace(hold, quiet_from_ms=self.now_ms)
        collapsed = unit.collapsed + sum(changes[export] for export in mine)
        self._look(replace(unit, hold=hold, collapsed=collapsed))

    def _look(self, unit: Unit) -> None:
        """Compare a unit with what is known now."""
        unit = replace(
            unit,
            values={
                name: values.observed(value, self.exports, self.now_ms)
                for name, value in unit.values.items()
            },
        )
        is_held = unit.halted or self.frozen
        if unit.state is ReactionState.WAITING and unit.is_ready and not is_held:
            self._start(unit)
            return
        if unit.hold is not None and unit.hold.overdue:
            forced = limits.forced_ms(limits.held_values(unit), unit.hold.since_ms)
            overdue = forced is not None and forced <= self.now_ms
            unit = replace(unit, hold=replace(unit.hold, overdue=overdue))
        self._put(self._settled(unit))

    def _release(self, unit: Unit, hold: Hold) -> None:
        release = limits.release_of(unit, self.rates)
        if release.at_ms is not None and release.at_ms <= self.now_ms:
            late = limits.held_values(unit)
            unit = replace(unit, hold=None)
            if late:
                self._act(unit, limits.strongest(late), in_row=1)
            else:
                self._put(self._settled(unit))
        elif release.overdue_ms is not None and release.overdue_ms <= self.now_ms:
            self._put(replace(unit, hold=replace(hold, overdue=True)))

    def _close(self) -> None:
        """Resolve all that the window gathered."""
        opened = self.opened_ms
        assert opened is not None
        self.opened_ms = None
        for unit in tuple(self.units.values()):
            found = limits.resolved_at_close(unit)
            if unit.state is ReactionState.STOPPED and limits.waits_for_close(unit):
                self._start(unit)
            elif any(value.is_barred for value in found):
                stopped = units.turned(units.with_values(unit, values.dropped), Turn.MISSED)
                self._put(replace(stopped, hold=None), Action.STOP)
            elif found:
                self._resolve(unit, limits.strongest(found), opened)

    def _resolve(self, unit: Unit, action: Action, opened_ms: int) -> None:
        """Act on a unit, or hold it."""
        if action is Action.LIVE:
            self._take_live(unit)
            return
        in_row = limits.row_with(unit, self.rates, opened_ms)
        if in_row > self.rates.debounce.burst:
            self._take_live(self._held(unit, Turn.TRIPPED))
        elif action is Action.RESTART and not limits.has_budget(unit, self.rates, self.now_ms):
            self._take_live(self._held(unit, Turn.EXHAUSTED))
        else:
            self._act(unit, action, in_row=in_row)

    def _held(self, unit: Unit, turn: Turn) -> Unit:
        hold = Hold(since_ms=self.now_ms, quiet_from_ms=self.now_ms)
        return units.turned(replace(unit, hold=hold), turn)

    def _take_live(self, unit: Unit) -> None:
        pending = any(value.is_pending and value.is_live for value in unit.values.values())
        unit = units.with_values(
            unit, lambda value: values.taken(value) if value.is_live else value
        )
        self._put(self._settled(unit), Action.LIVE if pending else Action.NONE)

    def _act(self, unit: Unit, action: Action, *, in_row: int) -> None:
        """Restart or reload, with everything that is known."""
        unit = replace(units.with_values(unit, values.taken), in_row=in_row, acted_ms=self.now_ms)
        if action is Action.RESTART:
            unit = replace(unit, restarts_ms=limits.spent(unit, self.rates, self.now_ms))
            unit = self._fresh_start(unit)
        self._put(self._settled(unit), action)

    def _start(self, unit: Unit) -> None:
        self._put(self._fresh_start(units.with_values(unit, values.taken)), Action.START)

    def _fresh_start(self, unit: Unit) -> Unit:
        unit = replace(unit, turn=unit.turn + 1, on_last=self._is_unsure(unit))
        return units.turned(unit, Turn.STARTED if units.is_current(unit) else Turn.STARTED_ON_LAST)

    def _is_unsure(self, unit: Unit) -> bool:
        """Some value of it was not confirmed lately."""
        found = (
            self.exports.get(source)
            for value in unit.values.values()
            for source in value.contract.sources
        )
        return any(known is not None and known.is_unsure for known in found)

    def _is_kept_back(self, unit: Unit) -> bool:
        """There is something to do that a freeze keeps from being done."""
        values = unit.values.values()
        return self.frozen and any(value.is_pending or value.is_barred for value in values)

    def _settled(self, unit: Unit) -> Unit:
        """The unit in the state that its values and its hold ask for."""
        if any(value.kept for value in unit.values.values()):
            return units.turned(unit, Turn.GONE)
        if unit.on_last:
            unit = replace(unit, on_last=self._is_unsure(unit))
        if unit.on_last:
            return units.turned(unit, Turn.SILENT)
        if self._is_kept_back(unit):
            return units.turned(unit, Turn.FROZEN)
        is_fresh = unit.hold is None and not any(value.is_barred for value in unit.values.values())
        return units.turned(unit, Turn.FRESH) if is_fresh else unit

    def _put(self, unit: Unit, action: Action = Action.NONE) -> None:
        """Keep the unit, with a row for what was done or for the state that it came to."""
        which = (unit.entry, unit.name)
        before = self.units[which]
        overdue = units.is_overdue(unit)
        if action is not Action.NONE or (unit.state, overdue) != (
            before.state,
            units.is_overdue(before),
        ):
            row = Reacted(
                at_ms=self.now_ms,
                entry=unit.entry,
                unit=unit.name,
                action=action,
                collapsed=unit.collapsed,
                state=unit.state,
                values=units.running(unit),
                overdue=overdue,
            )
            self.rows.append(row)
        self.units[which] = unit if action is Action.NONE else replace(unit, collapsed=0)
