"""Dynamic values, between the reaction engine and the reconciler. Decides no times.

The engine says with which values a unit is to run, and under which turn; here that becomes files,
variables and whether what runs is outdated.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from keyplane.converge import effects, permits, reaction
from keyplane.converge import reaction_state as engine
from keyplane.converge import wanted as wanting
from keyplane.converge.draft import Draft
from keyplane.converge.frozen import replace
from keyplane.converge.reaction_state import ReactionState
from keyplane.converge.state import Kind, Ledger, NextStart, PathSpec, UnitMemory, Wanted
from keyplane.model import reaction as contracts
from keyplane.model.declaration import Declaration, DeclaredUnit
from keyplane.model.duration import Duration, print_ms
from keyplane.model.fleet import Debounce, Rates, RestartBudget
from keyplane.model.module import ReactionKind
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.occurrence import Cause
from keyplane.model.reaction import Contracts, DeclaredRates

VALUES_VARIABLE = "KEYPLANE_VALUES"
PUBLISH_VARIABLE = "KEYPLANE_PUBLISH"
_DYNAMIC = "dynamic:"
"""Before names that are no paths of configData."""


def rates_of(declared: DeclaredRates) -> Rates:
    return Rates(
        debounce=Debounce(window=_duration(declared.window_ms), burst=declared.burst),
        restart_budget=RestartBudget(
            per_unit=declared.restarts_per_unit, window=_duration(declared.budget_ms)
        ),
    )


def _duration(milliseconds: int) -> Duration:
    return Duration(print_ms(milliseconds), milliseconds)


def contracts_of(declaration: Declaration) -> Contracts:
    """Of every unit that has any."""
    return {
        entry: {name: unit.dynamic for name, unit in declared.units.items() if unit.dynamic}
        for entry, declared in declaration.entries.items()
        if any(unit.dynamic for unit in declared.units.values())
    }


def begin(
    saved: engine.State | None, ledger: Ledger, declaration: Declaration | None, *, now_ms: int
) -> engine.State:
    """The engine of a new life. Without what an earlier one saved, the ledger tells what runs."""
    state = engine.State(rates=Rates()) if saved is None else reaction.resume(saved, now_ms=now_ms)
    if declaration is None:
        return state
    state = declare(state, declaration, ledger, now_ms=now_ms)
    if saved is not None:
        return state
    units = tuple(_remembered(unit, ledger) for unit in state.units)
    return replace(state, units=units)


def _remembered(unit: engine.Unit, ledger: Ledger) -> engine.Unit:
    kept = ledger.entries.get(unit.entry)
    memory = None if kept is None else kept.units.get(unit.name)
    if memory is None or memory.turn is None or memory.values is None:
        return unit
    if memory.values.keys() != unit.values.keys():
        return unit
    values = {name: replace(each, runs=memory.values[name]) for name, each in unit.values.items()}
    return replace(unit, values=values, state=ReactionState.STALE, turn=memory.turn, on_last=True)


def declare(
    state: engine.State, declaration: Declaration, ledger: Ledger, *, now_ms: int
) -> engine.State:
    event = engine.Declared(
        now_ms=now_ms,
        rates=rates_of(declaration.rates),
        contracts=contracts_of(declaration),
        frozen=declaration.frozen,
    )
    after, _ = reaction.step(state, event)
    before = {(unit.entry, unit.name) for unit in state.units}
    if all((unit.entry, unit.name) in before for unit in after.units):
        return after
    units = tuple(
        unit if (unit.entry, unit.name) in before else _counted_on(unit, ledger)
        for unit in after.units
    )
    return replace(after, units=units)


def _counted_on(unit: engine.Unit, ledger: Ledger) -> engine.Unit:
    """One that was declared before, and may run still: its turns go on from the one that runs.

    It has that one where it runs with the same values: else it is outdated.
    """
    kept = ledger.entries.get(unit.entry)
    memory = None if kept is None else kept.units.get(unit.name)
    if memory is None or memory.turn is None:
        return unit
    is_same = unit.is_up and _is_current(memory, unit)
    return replace(unit, turn=memory.turn if is_same else memory.turn + 1)


def _is_current(memory: UnitMemory, unit: engine.Unit) -> bool:
    """What runs has all values for which it would be restarted."""
    runs, had = values_of(unit), memory.values or {}
    return all(
        had.get(each) == runs.get(each)
        for each, value in unit.values.items()
        if value.contract.reaction is ReactionKind.RESTART
    )


def unit_of(draft: Draft, entry: EntryId, name: UnitName) -> engine.Unit | None:
    """What the engine says of a unit; None if it has no dynamic value."""
    return draft.reacting.get((entry, name))


def take_up(draft: Draft, entry: EntryId, wanted: Wanted) -> None:
    """A unit of which nothing runs is given what is known before its files are written.

    So is one whose restart waits for a permit: it is restarted once, for all that came meanwhile.
    """
    for name, declared in wanted.units:
        unit = unit_of(draft, entry, name) if declared.dynamic else None
        if unit is None or draft.busy(effects.unit_resource(entry, name)):
            continue
        memory = draft.memory(entry)
        done = memory is not None and declared.digest in memory.done.get(name, ())
        runs = any(
            each.running and (each.digest == declared.digest or not declared.start_first)
            for each in draft.unit_live(entry, name).processes.values()
        )
        waits = permits.awaits(draft, entry) and is_outdated(draft.unit_memory(entry, name), unit)
        if (waits or not runs) and not done and _has_news(draft, unit):
            draft.react(engine.Started(now_ms=draft.now, entry=entry, unit=name))


def _has_news(draft: Draft, unit: engine.Unit) -> bool:
    if not unit.is_up:
        return False
    if any(value.is_pending for value in unit.values.values()):
        return True
    exports = draft.reactions.exports
    sources = {s for value in unit.values.values() for s in value.contract.sources}
    return not unit.on_last and any(s in exports and exports[s].is_unsure for s in sources)


def heed_stops(draft: Draft) -> None:
    """Nothing is done to a unit that a person keeps stopped."""
    for unit in draft.reactions.units:
        is_halted = unit.entry in draft.stops
        if unit.halted != is_halted:
            draft.react(
                engine.Halted(
                    now_ms=draft.now, entry=unit.entry, unit=unit.name, is_halted=is_halted
                )
            )


def filled(draft: Draft, entry: EntryId, wanted: Wanted) -> Wanted:
    """The entry with the files that its values make; those of a unit with none are not there."""
    if not wanted.dynamic_paths:
        return wanted
    paths = dict(wanted.paths)
    for name, declared in wanted.units:
        unit = unit_of(draft, entry, name) if declared.dynamic else None
        if unit is None or any(value.runs is None for value in unit.values.values()):
            continue
        for path, content in _contents(unit, entry, name).items():
            digest = _digest(content)
            draft.rendered[digest] = content
            paths[path] = PathSpec(
                kind=Kind.FILE,
                digest=digest,
                mode=wanting.CONFIG_MODE,
                owner=declared.user,
                # Nobody else has a file of that name; one of a ledger that was lost is ours.
                adopt=path == wanting.values_path(entry, name),
            )
    return replace(wanted, paths={path: paths[path] for path in sorted(paths)})


def _contents(unit: engine.Unit, entry: EntryId, name: UnitName) -> dict[str, bytes]:
    """By path: configData, and the file of all values."""
    runs = values_of(unit)
    found = {path: text.encode() for path, text in runs.items() if path.startswith("/")}
    values = msgspec.json.format(msgspec.json.encode(runs, order="sorted"), indent=1)
    found[wanting.values_path(entry, name)] = values + b"\n"
    return found


def values_of(unit: engine.Unit) -> dict[str, str]:
    """What it is to run with, by variable or path."""
    return {name: each.runs for name, each in unit.values.items() if each.runs is not None}


def start_of(unit: engine.Unit, loaded: Mapping[str, Digest]) -> NextStart:
    return NextStart(turn=unit.turn, values=values_of(unit), loaded=loaded)


def env_of(draft: Draft, entry: EntryId, name: UnitName, declared: DeclaredUnit) -> dict[str, str]:
    """The variables of a unit: as declared, its values, and where it says what it exports."""
    env = dict(declared.env)
    wanted = draft.state.wanted.get(entry)
    publishes = () if wanted is None else wanted.declared.publishes.values()
    if any(each.published for each in publishes):
        env[PUBLISH_VARIABLE] = contracts.publish_socket(entry)
    unit = unit_of(draft, entry, name)
    if unit is None:
        return env
    values = {each: text for each, text in values_of(unit).items() if not each.startswith("/")}
    return {**env, **values, VALUES_VARIABLE: wanting.values_path(entry, name)}


def taken_by_reload(draft: Draft, entry: EntryId, name: UnitName) -> dict[str, Digest]:
    """What a reload takes up, beside declared configData.

    What a restart or a live change brings is not among it; how a file is made is.
    """
    unit = unit_of(draft, entry, name)
    if unit is None:
        return {}
    found: dict[str, Digest] = {}
    for each, value in unit.values.items():
        said: object = (
            value.runs
            if value.contract.reaction is ReactionKind.RELOAD
            else value.contract.parts
            if each.startswith("/")
            else None
        )
        if said is not None:
            found[_DYNAMIC + each] = _digest(msgspec.json.encode(said))
    return found


def is_outdated(memory: UnitMemory | None, unit: engine.Unit | None) -> bool:
    """What runs was started for an earlier turn. Of what another life left, nothing is known."""
    return (
        unit is not None
        and memory is not None
        and memory.turn is not None
        and memory.turn != unit.turn
    )


def withdraw(draft: Draft, entry: EntryId, name: UnitName) -> None:
    """Forget a restart that waited, or a stop that failed, until each value was again what runs."""
    unit, memory = unit_of(draft, entry, name), draft.unit_memory(entry, name)
    if unit is None or memory is None or memory.values is None or not is_outdated(memory, unit):
        return
    if _is_current(memory, unit):
        why = None if memory.why is Cause.REACTION else memory.why
        draft.remember(entry, name, replace(memory, turn=unit.turn, why=why, next=None))


def is_stopped(draft: Draft, entry: EntryId, name: UnitName) -> bool:
    """By the engine, for want of a value."""
    unit = unit_of(draft, entry, name)
    return unit is not None and unit.state is ReactionState.STOPPED


def cause_of_reload(before: Mapping[str, Digest] | None, after: Mapping[str, Digest]) -> Cause:
    """Whether only dynamic values moved."""

    def declared(config: Mapping[str, Digest]) -> dict[str, Digest]:
        return {name: each for name, each in config.items() if not name.startswith(_DYNAMIC)}

    is_reaction = before is not None and declared(before) == declared(after)
    return Cause.REACTION if is_reaction else Cause.ROLLOUT


def awaited(draft: Draft, unit: engine.Unit) -> list[str]:
    """The exports of which a unit waits for a first value."""
    return sorted(
        source
        for value in unit.values.values()
        if value.wants is None
        for source in value.contract.sources
        if (known := draft.reactions.exports.get(source)) is None or known.value is None
    )


def gone(draft: Draft, unit: engine.Unit) -> list[str]:
    """The exports whose providers said that they are missing."""
    return sorted(
        source
        for value in unit.values.values()
        for source in value.contract.sources
        if (known := draft.reactions.exports.get(source)) is not None and known.missing
    )


def stale_since(draft: Draft, unit: engine.Unit) -> dict[str, int]:
    """Since when each value that may be wrong may be so, by its name and the wall clock."""
    found: dict[str, int] = {}
    for name, value in unit.values.items():
        known = [draft.reactions.exports.get(source) for source in value.contract.sources]
        since = [one.silent_since_ms for one in known if one is not None]
        times = [time for time in (value.wrong_since_ms, *since) if time is not None]
        if times:
            found[name] = min(times) + draft.wall_ms
    permit, memory = draft.permits.get(unit.entry), draft.unit_memory(unit.entry, unit.name)
    if permit is not None and memory is not None and is_late(draft, unit):
        had = memory.values or {}
        for name, value in unit.values.items():
            if value.contract.reaction is ReactionKind.RESTART and had.get(name) != value.runs:
                found.setdefault(name, permit.since_ms)
    return found


def is_late(draft: Draft, unit: engine.Unit) -> bool:
    """What the engine asked for waits for a permit, and the unit runs on as it was started."""
    if not permits.awaits(draft, unit.entry):
        return False
    live, memory = draft.unit_live(unit.entry, unit.name), draft.unit_memory(unit.entry, unit.name)
    runs = any(each.running for each in live.processes.values())
    return runs and (unit.state is ReactionState.STOPPED or is_outdated(memory, unit))


def see(draft: Draft, entry: EntryId, name: UnitName, *, is_up: bool) -> None:
    """Tell the engine that a unit failed, or runs again."""
    unit = unit_of(draft, entry, name)
    if unit is not None and unit.is_up and (unit.state is ReactionState.FAILED) is is_up:
        draft.react(engine.Seen(now_ms=draft.now, entry=entry, unit=name, is_up=is_up))


def _digest(content: bytes) -> Digest:
    return Digest(f"sha256-{hashlib.sha256(content).hexdigest()}")
