"""What a rollout did, counted from the reports before and after; never from what was sent."""

from collections.abc import Mapping

from keyplane.model.declaration import EntryReport, EntryState, Report, UnitReport, UnitState
from keyplane.model.names import EntryId, MachineName, UnitName, split_entry
from keyplane.rollout import gate, returning
from keyplane.rollout.outcome import EntryFate, Fate, Outcome, Result
from keyplane.rollout.state import Phase, State

_RESULTS = {
    Phase.DONE: Result.DONE,
    Phase.FAILED: Result.FAILED,
    Phase.SUPERSEDED: Result.SUPERSEDED,
    Phase.STOPPED: Result.STOPPED,
    Phase.ROLLED_BACK: Result.ROLLED_BACK,
    Phase.ROLLBACK_FAILED: Result.ROLLBACK_FAILED,
}
_AS_DECLARED = (EntryState.HEALTHY, EntryState.STALE, EntryState.STOPPED)
_COUNTED = (Fate.STARTED, Fate.RESTARTED, Fate.RELOADED, Fate.STOPPED)


def outcome(state: State) -> Outcome:
    """The outcome of a rollout that has ended."""
    result = _RESULTS[state.phase]
    steps_sent = state.steps[: state.ever_sent]
    fates = _fates(state)
    every = [*fates.values()]
    counts = {fate: sum(1 for one in every if one.fate is fate) for fate in Fate}
    counts[Fate.UNTOUCHED] += state.elsewhere
    return Outcome(
        result=result,
        steps=state.asked,
        steps_passed=state.asked if result is Result.DONE else state.step,
        sent=_entries(state, 0, state.ever_sent),
        unsent=_entries(state, state.ever_sent, state.asked),
        why_unsent=_why_unsent(state, result),
        held=tuple(hold for step in state.steps for hold in step.holds),
        skipped=gate.missed(state),
        troubles=state.troubles,
        silent=() if result is Result.DONE else gate.silent(state),
        remarks=tuple(remark for step in steps_sent for remark in step.remarks),
        fates={entry: fate for entry, fate in fates.items() if fate.fate is not Fate.UNTOUCHED},
        counts=counts,
        units={fate: sum(len(_units(one, fate)) for one in every) for fate in _COUNTED},
        started_ms=state.started_ms or 0,
        ended_ms=state.ended_ms,
    )


def _entries(state: State, first: int, last: int) -> tuple[EntryId, ...]:
    steps = state.steps[first:last]
    return tuple(sorted(entry for step in steps for entry in (*step.switched, *step.removed)))


def _why_unsent(state: State, result: Result) -> str:
    if state.sent == state.asked:
        return ""
    match result:
        case Result.SUPERSEDED:
            return "a newer rollout took over"
        case Result.STOPPED:
            return f"it was stopped: {state.stopped}"
        case Result.ROLLED_BACK:
            said = "what failed was taken back, and all that was sent before it"
            return f"{said}{_fled(state)}{_ill(state)}"
        case Result.ROLLBACK_FAILED:
            return "something failed, and could not be taken back in full"
        case _:
            where = f"step {state.step + 1} of {state.asked} failed"
            return f"{where}, and nothing was sent after it"


def _fled(state: State) -> str:
    """What is not as this rollout found it, but as an earlier one did."""
    fled = sorted(returning.reached(state))
    if not fled:
        return ""
    more = f" and {len(fled) - 1} more" if len(fled) > 1 else ""
    return f"; {fled[0]}{more} to what was before an earlier rollout that nobody saw well"


def _ill(state: State) -> str:
    """What an earlier rollout had sent, nobody saw well, and is no better now."""
    reports = {machine: seen.report.entries for machine, seen in state.seen.items()}
    found = ((e, reports.get(split_entry(e)[2], {}).get(e)) for e in sorted(state.unproven))
    ill = [e for e, said in found if said is not None and said.state not in _AS_DECLARED]
    if not ill:
        return ""
    more = f" and {len(ill) - 1} more" if len(ill) > 1 else ""
    return (
        f"; but {ill[0]}{more} was not well before it either: `keyplane history` lists what else to "
        "go back to"
    )


def _fates(state: State) -> dict[EntryId, EntryFate]:
    """Of all entries on the machines of the steps, that one was sent or a report tells of."""
    found: dict[EntryId, EntryFate] = {}
    for machine in sorted({machine for step in state.steps for machine in step.machines}):
        told = _tells(state, machine)
        before = _entries_of(state.before.get(machine))
        after = _entries_of(state.seen[machine].report if machine in state.seen else None)
        works = [step.work(machine) for step in state.steps[: state.sent]]
        here = {e for work in works for e in (*work.rekeyed, *work.live, *work.removed)}
        for entry in sorted(here | before.keys() | after.keys()):
            if entry in here and not told:
                found[entry] = EntryFate(fate=Fate.UNKNOWN)
            else:
                found[entry] = _fate(before.get(entry), after.get(entry))
        if told:
            for entry in applied(state, state.seen[machine].report):
                found[entry] = EntryFate(fate=Fate.APPLIED)
    return found


def applied(state: State, report: Report) -> tuple[EntryId, ...]:
    """Entries that are what a step made of them, by the report, with every process as before."""
    machine = report.machine
    if machine not in state.offers or report.settled < state.offers[machine]:
        return ()
    before = _entries_of(state.before.get(machine))
    works = [step.work(machine) for step in state.steps[: state.sent]]
    return tuple(
        entry
        for entry in sorted({entry for work in works for entry in (*work.rekeyed, *work.live)})
        if (after := report.entries.get(entry)) is not None
        and after.key == state.keys.get(entry)
        and after.state in _AS_DECLARED
        and _fate(before.get(entry), after).fate is Fate.UNTOUCHED
    )


def _tells(state: State, machine: MachineName) -> bool:
    """Whether the machine's report is about what it was offered."""
    if machine not in state.offers or machine not in state.seen:
        return False
    return state.seen[machine].report.offer >= state.offers[machine]


def _fate(before: EntryReport | None, after: EntryReport | None) -> EntryFate:
    old, new = _units_of(before), _units_of(after)
    by_fate: dict[Fate, list[UnitName]] = {fate: [] for fate in _COUNTED}
    for unit in sorted(old.keys() | new.keys()):
        fate = _unit_fate(old.get(unit), new.get(unit))
        if fate is not Fate.UNTOUCHED:
            by_fate[fate].append(unit)
    if before is None and after is not None:
        whole = Fate.STARTED
    elif after is None and before is not None:
        whole = Fate.STOPPED
    else:
        ranked = (Fate.RESTARTED, Fate.RELOADED, Fate.STARTED, Fate.STOPPED)
        whole = next((fate for fate in ranked if by_fate[fate]), Fate.UNTOUCHED)
    return EntryFate(
        fate=whole,
        started=tuple(by_fate[Fate.STARTED]),
        restarted=tuple(by_fate[Fate.RESTARTED]),
        reloaded=tuple(by_fate[Fate.RELOADED]),
        stopped=tuple(by_fate[Fate.STOPPED]),
    )


def _entries_of(report: Report | None) -> Mapping[EntryId, EntryReport]:
    return {} if report is None else report.entries


def _units_of(entry: EntryReport | None) -> Mapping[UnitName, UnitReport]:
    return {} if entry is None else entry.units


def _unit_fate(before: UnitReport | None, after: UnitReport | None) -> Fate:
    was, now = _process(before), _process(after)
    if was is not None and now is not None:
        if was != now:
            return Fate.RESTARTED
        assert before is not None
        assert after is not None
        return Fate.RELOADED if after.reloads > before.reloads else Fate.UNTOUCHED
    if now is not None or _ran_anew(before, after):
        return Fate.STARTED
    return Fate.UNTOUCHED if was is None else Fate.STOPPED


def _process(unit: UnitReport | None) -> tuple[int, int | None] | None:
    return None if unit is None or unit.pid is None else (unit.pid, unit.start_ticks)


def _ran_anew(before: UnitReport | None, after: UnitReport | None) -> bool:
    """A job that has run for what it now is."""
    if after is None or after.state is not UnitState.DONE:
        return False
    return before is None or before.state is not UnitState.DONE or before.digest != after.digest


def _units(fate: EntryFate, of: Fate) -> tuple[UnitName, ...]:
    lists = {
        Fate.STARTED: fate.started,
        Fate.RESTARTED: fate.restarted,
        Fate.RELOADED: fate.reloaded,
        Fate.STOPPED: fate.stopped,
    }
    return lists.get(of, ())
