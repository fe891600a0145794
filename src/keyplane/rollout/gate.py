"""Whether a step has passed, what it waits for, and whether it has failed, by the reports.

Only what a machine says of the offered number or a later one counts. What was seen is judged
anew each time: an entry that was healthy and is not any more holds its step.
"""

from collections.abc import Iterable
from dataclasses import replace

from keyplane.model.declaration import (
    EntryReport,
    EntryState,
    Report,
    UnitReport,
    UnitState,
)
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.rollout import data, returning
from keyplane.rollout.outcome import Lack, Trouble
from keyplane.rollout.state import State
from keyplane.rollout.steps import Work

_SOUND = (UnitState.HEALTHY, UnitState.DONE, UnitState.STOPPED)
_ENDED = (UnitState.FAILED, UnitState.BACKING_OFF)
"""Those by which an entry failed: one that is tried again and again backs off meanwhile."""

BELATED_MS = 5_000
"""What a machine tells so soon after a rollout began may be of a try from before it: on a busy one
reports take that long. A unit that is tried again and again is judged by the next try then."""


def lacks(state: State) -> tuple[Trouble, ...]:
    """What the present step waits for, by machine; nothing once it has ended."""
    if not state.phase.is_open or not state.steps:
        return ()
    machines = [m for m in state.steps[state.step].machines if m not in state.skipped]
    return tuple(row for machine in machines for row in machine_lacks(state, machine))


def failures(state: State, machine: MachineName) -> tuple[Trouble, ...]:
    """Entries that this rollout switched there, in this step or an earlier one, and that failed.

    An entry whose key did not move may have failed before: only what was said since it was
    applied anew counts. Of one for which nothing is sent, only what was tried anew does. A
    machine that refused its declaration failed as a whole.
    """
    if state.back:
        return _failed_to_return(state, machine)
    accepted = _answer(state, machine, settled=False)
    settled = _answer(state, machine, settled=True)
    found = [*_refusal(state, machine)]
    for index, step in enumerate(state.steps[: state.step + 1]):
        if index == state.step and machine not in state.offered:
            continue
        work = step.work(machine)
        if index == state.step and settled is not None:
            failed = (entry for entry in work.yielded if _is_failed(settled.entries.get(entry)))
            for entry in failed:
                found.extend(_entry_troubles(entry, settled.entries[entry], Lack.SUCCESS))
        for report, entries in ((accepted, work.rekeyed), (settled, (*work.live, *work.awaited))):
            if report is None:
                continue
            for entry in entries:
                said = report.entries.get(entry)
                if (
                    said is not None
                    and said.state is EntryState.FAILED
                    and said.key == state.keys[entry]
                    and (entry not in work.awaited or _is_new(state, entry, said))
                ):
                    found.extend(_entry_troubles(entry, said, Lack.SUCCESS))
    return tuple(found)


def _is_failed(said: EntryReport | None) -> bool:
    return said is not None and said.state is EntryState.FAILED


def undecided(state: State) -> bool:
    """Whether an entry of the step may still fail or pass soon: a machine is at work on it."""
    for machine in state.steps[state.step].machines:
        if machine in state.skipped:
            continue
        if machine not in state.offered:
            return True
        report = _answer(state, machine, settled=True)
        if report is None:
            if not _refusal(state, machine):
                return True
            continue
        work = state.steps[state.step].work(machine)
        for entry in _waited(state, work):
            said = report.entries.get(entry)
            failed = said is not None and said.state is EntryState.FAILED
            if not failed and _entry_lacks(state, entry, report):
                return True
    return False


def _refusal(state: State, machine: MachineName) -> tuple[Trouble, ...]:
    number, seen = state.offers.get(machine), state.seen.get(machine)
    if number is None or seen is None or machine not in state.offered:
        return ()
    report = seen.report
    refused = report.refused_offer
    if report.refused is None or refused is None or refused < number or report.offer >= number:
        return ()
    said = f"{machine} refused its declaration {number}: {report.refused}"
    return (Trouble(machine=machine, lack=Lack.ACCEPTANCE, said=said, cause=report.refused),)


def _is_new(state: State, entry: EntryId, said: EntryReport) -> bool:
    """Whether it failed since the rollout began, and not only before."""
    machine = split_entry(entry)[2]
    report = state.before.get(machine)
    before = None if report is None else report.entries.get(entry)
    if before is None or before.state is not EntryState.FAILED or said.tries != before.tries:
        return True
    heard_ms = state.seen[machine].heard_ms
    belated = heard_ms is None or heard_ms < (state.started_ms or 0) + BELATED_MS
    for name, unit in said.units.items():
        former = before.units.get(name)
        if unit.state is UnitState.FAILED:
            return True  # it is not tried again by itself: waiting changes nothing
        if unit.state not in _ENDED and unit.state is not UnitState.UNHEALTHY:
            continue
        if belated and unit.state is UnitState.BACKING_OFF:
            continue
        if former is None or _tries(unit) != _tries(former):
            return True
    return not said.units and not said.tries  # an agent that tells of no tries


def _tries(unit: UnitReport) -> tuple[object, ...]:
    return unit.digest, unit.restarts, unit.pid, unit.start_ticks


def _failed_to_return(state: State, machine: MachineName) -> tuple[Trouble, ...]:
    report = _answer(state, machine, settled=True)
    if report is None or machine not in state.offered:
        return ()
    return tuple(
        row
        for entry in _waited(state, state.steps[state.step].work(machine))
        if (said := report.entries.get(entry)) is not None
        and said.state is EntryState.FAILED
        and said.key == returning.key(state, entry)
        and not was_ill(state, entry)
        for row in _entry_troubles(entry, said, Lack.SUCCESS)
    )


def left_open(state: State, machine: MachineName) -> tuple[EntryId, ...]:
    """Entries that were switched there and are not known to be well."""
    report = _answer(state, machine, settled=True)
    entries: list[EntryId] = []
    for step in state.steps[: state.sent]:
        work = step.work(machine)
        for entry in (*work.rekeyed, *work.live, *work.awaited):
            said = None if report is None else report.entries.get(entry)
            if said is None or said.key != state.keys[entry] or not is_sound(said):
                entries.append(entry)
    return tuple(entries)


def missed(state: State) -> tuple[MachineName, ...]:
    """Machines that a step went on without, and that did not come to it by themselves since."""
    return tuple(
        machine
        for machine in sorted(state.left - state.lost)
        if _answer(state, machine, settled=True) is None or left_open(state, machine)
    )


def stage(state: State, machine: MachineName) -> int:
    """How far a machine has come in the step; it never rises without end.

    0: nothing heard of the offer; 1: accepted; 2: settled; and 1 for each entry that passed.
    """
    if machine not in state.offered or _answer(state, machine, settled=False) is None:
        return 0
    report = _answer(state, machine, settled=True)
    if report is None:
        return 1
    work = state.steps[state.step].work(machine)
    waited = _waited(state, work)
    passed = sum(1 for entry in waited if not _entry_lacks(state, entry, report))
    return 2 + passed + data.arrived(state, machine)


def silent(state: State) -> tuple[MachineName, ...]:
    """Machines of the step of which nothing was heard since it began."""
    if not state.steps:
        return ()
    return tuple(
        machine for machine in state.steps[state.step].machines if _is_silent(state, machine)
    )


def _is_silent(state: State, machine: MachineName) -> bool:
    """Whether nothing was heard of it since the step began."""
    heard_ms = state.seen[machine].heard_ms if machine in state.seen else None
    return heard_ms is None or heard_ms < state.step_ms


def machine_lacks(state: State, machine: MachineName) -> tuple[Trouble, ...]:
    """What the present step waits for on one machine; nothing if it has passed there."""
    if machine not in state.offered:
        return (
            Trouble(machine=machine, lack=Lack.OFFER, said=f"{machine} was not offered the step."),
        )
    report = _answer(state, machine, settled=True)
    work = state.steps[state.step].work(machine)
    if report is None:
        waiting = [entry for entry in _waited(state, work) if entry in state.refused]
        is_applying = _answer(state, machine, settled=False) is not None
        refused = tuple(_refused(state, entry) for entry in waiting if is_applying)
        return refused or (_unsettled(state, machine),)
    found: list[Trouble] = []
    for entry in _waited(state, work):
        rows = _entry_lacks(state, entry, report)
        found.extend((_refused(state, entry),) if rows and entry in state.refused else rows)
    return tuple(found)


def _waited(state: State, work: Work) -> tuple[EntryId, ...]:
    if state.back:
        fled = (entry for entry in work.awaited if entry in state.refuges)
        return (*work.rekeyed, *work.live, *fled, *work.removed, *work.yielded)
    return (
        *work.rekeyed,
        *work.live,
        *work.awaited,
        *work.tightened,
        *work.removed,
        *work.yielded,
    )


def _unsettled(state: State, machine: MachineName) -> Trouble:
    number = state.offers[machine]
    if _is_silent(state, machine):
        said = f"{machine} has said nothing since it was offered {number}."
        return Trouble(machine=machine, lack=Lack.VOICE, said=said)
    report = state.seen[machine].report
    if report.offer < number:
        why = "" if report.refused is None else f": {report.refused}"
        said = f"{machine} has not accepted {number}; it has {report.offer}{why}"
        return Trouble(machine=machine, lack=Lack.ACCEPTANCE, said=said, cause=report.refused)
    said = f"{machine} accepted {report.offer} and is still applying it."
    return Trouble(machine=machine, lack=Lack.SETTLING, said=said)


def _entry_lacks(state: State, entry: EntryId, report: Report) -> tuple[Trouble, ...]:
    said = report.entries.get(entry)
    if not state.back and entry in state.steps[state.step].yielded:
        lacking = data.not_given(state, entry, said)
        return () if lacking is None else (_of_entry(entry, Lack.SETTLING, lacking, None),)
    if state.back and data.is_still_given(state, entry, said):
        text = f"{entry} does not go on with its data yet."
        return (_of_entry(entry, Lack.SETTLING, text, None),)
    wanted = returning.key(state, entry) if state.back else state.keys.get(entry)
    if wanted is None:
        if said is None:
            return ()
        text = f"{entry} is still there ({said.state})."
        return (_of_entry(entry, Lack.REMOVAL, text, said.cause),)
    if said is None or said.key != wanted:
        text = f"{entry} is not what it was declared to be."
        return (_of_entry(entry, Lack.SETTLING, text, None),)
    if is_sound(said) or (state.back and was_ill(state, entry)):
        return ()
    return tuple(_entry_troubles(entry, said, Lack.HEALTH))


def _refused(state: State, entry: EntryId) -> Trouble:
    said = f"{entry}: its stop waits for a permit, as {state.refused[entry]}."
    return _of_entry(entry, Lack.SETTLING, said, None)


def was_ill(state: State, entry: EntryId) -> bool:
    """What was not well before need not be so to be as it was."""
    if entry in state.refuges:
        return state.refuges[entry].was_ill
    report = state.before.get(split_entry(entry)[2])
    said = None if report is None else report.entries.get(entry)
    return said is None or not is_sound(said)


def is_back_well(state: State, entry: EntryId) -> bool:
    """Whether it is what it was before, and well: it may not have been seen so before."""
    report = _answer(state, split_entry(entry)[2], settled=True) if state.back else None
    said = None if report is None else report.entries.get(entry)
    return said is not None and said.key == state.former.get(entry) and is_sound(said)


def is_sound(said: EntryReport) -> bool:
    """An entry in which nothing runs has no health: that it is applied is all there is."""
    if said.state is EntryState.APPLIED:
        return all(unit.state in _SOUND for unit in said.units.values())
    return said.state in (EntryState.HEALTHY, EntryState.STALE, EntryState.STOPPED)


def _entry_troubles(entry: EntryId, said: EntryReport, lack: Lack) -> Iterable[Trouble]:
    """Of each unit that is not sound; of the entry itself if none is.

    Where the entry failed, a unit that was not even tried says nothing of why.
    """
    found = False
    if lack is Lack.SUCCESS:
        told = _ENDED
    elif said.state is EntryState.FAILED:
        told = (*_ENDED, UnitState.UNHEALTHY)
    else:
        told = tuple(each for each in UnitState if each not in _SOUND)
    for name, unit in sorted(said.units.items()):
        if unit.state not in told:
            continue
        found = True
        cause = unit.cause or unit.last_exit
        yield Trouble(
            machine=split_entry(entry)[2],
            lack=lack,
            said=f"{name} of {entry} is {unit.state}" + (f": {cause}" if cause else "."),
            entry=entry,
            unit=name,
            cause=cause,
            log_tail=unit.log_tail,
        )
    if not found:
        text = f"{entry} is {said.state}" + (f": {said.cause}" if said.cause else ".")
        tails = (unit.log_tail for _, unit in sorted(said.units.items()))
        yield replace(
            _of_entry(entry, lack, text, said.cause), log_tail=next(filter(None, tails), ())
        )


def _answer(state: State, machine: MachineName, *, settled: bool) -> Report | None:
    """The machine's report, if it is about what it was last offered here or something later."""
    number, seen = state.offers.get(machine), state.seen.get(machine)
    if number is None or seen is None:
        return None
    reached = seen.report.settled if settled else seen.report.offer
    return seen.report if reached >= number else None


def _of_entry(entry: EntryId, lack: Lack, said: str, cause: str | None) -> Trouble:
    return Trouble(machine=split_entry(entry)[2], lack=lack, said=said, entry=entry, cause=cause)
