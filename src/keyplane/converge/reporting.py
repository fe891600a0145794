"""What is told of an entry and of the machine. Decides nothing but the words and the time.

A report is whole, and goes out when its content has changed.
"""

from collections.abc import Mapping

from keyplane.converge import (
    backoff,
    drifting,
    dynamic,
    effects,
    handing,
    health,
    permits,
    processes,
    serving,
    units,
    volumes,
)
from keyplane.converge.draft import Draft, Standing
from keyplane.converge.frozen import replace
from keyplane.converge.history import History
from keyplane.converge.reaction_state import ReactionState, Unit
from keyplane.converge.state import EntryLive, Reporting, State, UnitLive, UnitMemory, Wanted
from keyplane.model.declaration import (
    DeclaredUnit,
    EntryReport,
    EntryState,
    Report,
    UnitReport,
    UnitState,
)
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.volumes import OldCopy

WINDOW_MS = 50
"""Changes within it make one report: an entry whose units start one after another, or an agent
that finds what it adopts, is told once; a person does not notice so short a wait."""

_WITH_TAIL = (UnitState.BACKING_OFF, UnitState.FAILED, UnitState.UNHEALTHY)


def of_entry(
    draft: Draft, entry: EntryId, wanted: Wanted | None, standing: Standing
) -> EntryReport:
    """The report of an entry that was just looked at; one that is leaving has nothing wanted."""
    if wanted is None:
        memory = draft.memory(entry)
        return EntryReport(
            state=EntryState.FAILED if standing.failures else EntryState.APPLYING,
            key=Digest("") if memory is None else memory.key,
            cause=_cause(standing),
            member=serving.member(draft, entry),
        )
    reports: dict[UnitName, UnitReport] = {}
    notes: list[str] = []
    for name, declared in sorted(wanted.units):
        reports[name] = _unit(draft, entry, name, declared, standing)
        for process in draft.unit_live(entry, name).processes.values():
            if process.running:
                notes.extend(f"{name}: {note}" for note in process.notes)
    notes.extend(handing.notes(draft, entry, wanted))
    return EntryReport(
        state=_entry_state(draft, entry, reports, standing),
        key=wanted.declared.key,
        units=reports,
        cause=_cause(standing),
        notes=tuple(notes),
        stopped=draft.stops.get(entry),
        drift=drifting.told(draft, entry),
        member=serving.member(draft, entry),
        volumes=volumes.told(draft, entry, wanted),
        tries=_tries(draft, entry, standing),
    )


def _tries(draft: Draft, entry: EntryId, standing: Standing) -> int:
    if not standing.stuck:
        return 0
    said = draft.live(entry).report
    is_again = entry in draft.tried or (standing.refused and draft.seen_anew)
    return max(1, (0 if said is None else said.tries) + is_again)


def _cause(standing: Standing) -> str | None:
    causes = standing.failures or standing.waits or ([standing.given] if standing.given else [])
    return "; ".join(causes) if causes else None


def _entry_state(
    draft: Draft, entry: EntryId, reports: dict[UnitName, UnitReport], standing: Standing
) -> EntryState:
    if standing.failures:
        return EntryState.FAILED
    if standing.pending:
        return EntryState.APPLYING
    if standing.given:
        return EntryState.STOPPED
    states = {report.state for report in reports.values()}
    if standing.reacts and states <= {UnitState.HEALTHY, UnitState.DONE}:
        return EntryState.STALE
    if permits.awaits(draft, entry):
        return EntryState.APPLYING
    if entry in draft.stops or UnitState.STOPPED in states:
        return EntryState.STOPPED
    reactions = {
        report.reaction for report in reports.values() if report.state is UnitState.PENDING
    }
    if ReactionState.WAITING in reactions:
        return EntryState.WAITING
    if states & {UnitState.PENDING, UnitState.STOPPING, UnitState.BACKING_OFF} or standing.waits:
        return EntryState.APPLYING
    if not states <= {UnitState.HEALTHY, UnitState.DONE}:
        return EntryState.APPLIED
    is_stale = any(report.reaction == ReactionState.STALE for report in reports.values())
    return EntryState.STALE if is_stale else EntryState.HEALTHY


def _unit(
    draft: Draft, entry: EntryId, name: UnitName, declared: DeclaredUnit, standing: Standing
) -> UnitReport:
    live = draft.unit_live(entry, name)
    memory = draft.unit_memory(entry, name) or UnitMemory(digest=declared.digest)
    up = units.running(live)
    current = next((each for each in up if each.digest == declared.digest), None)
    serves = handing.serves_on(draft, entry, name, declared)
    shown = serves or current or (up[0] if up else None)
    state = _unit_state(draft, entry, name, declared)
    cause = _unit_cause(state, declared, live, memory)
    if cause is not None:
        if _is_failed(state, declared, memory):
            standing.failures.append(f"{name}: {cause}")
        elif state is not UnitState.STARTING:
            standing.waits.append(f"{name}: {cause}")
    reacting = dynamic.unit_of(draft, entry, name) if declared.dynamic else None
    if reacting is not None and state in {UnitState.HEALTHY, UnitState.FAILED}:
        dynamic.see(draft, entry, name, is_up=state is UnitState.HEALTHY)
        reacting = dynamic.unit_of(draft, entry, name)
    hold = None if reacting is None else reacting.hold
    is_late = reacting is not None and dynamic.is_late(draft, reacting)
    is_of = memory.digest in (declared.digest, declared.digest if shown is None else shown.digest)
    return UnitReport(
        state=state,
        digest=declared.digest if shown is None else shown.digest,
        pid=None if shown is None else shown.pid,
        start_ticks=None if shown is None else shown.start_ticks,
        restarts=memory.restarts if is_of else 0,
        reloads=memory.reloads if is_of else 0,
        last_exit=memory.last_exit if is_of else None,
        cause=cause,
        log_tail=live.tail if state in _WITH_TAIL or _is_failed(state, declared, memory) else (),
        reaction=None if reacting is None else _reaction(reacting, is_late),
        overdue=hold is not None and hold.overdue,
        stale_since_ms={} if reacting is None else dynamic.stale_since(draft, reacting),
    )


def _reaction(unit: Unit, is_late: bool) -> str:  # noqa: FBT001
    return (ReactionState.STALE if is_late else unit.state).value


def _unit_state(draft: Draft, entry: EntryId, name: UnitName, declared: DeclaredUnit) -> UnitState:
    live = draft.unit_live(entry, name)
    memory = draft.unit_memory(entry, name) or UnitMemory(digest=declared.digest)
    flight = draft.in_flight.get(effects.unit_resource(entry, name))
    up = units.running(live)
    if isinstance(flight, effects.StopProcess):
        return UnitState.STOPPING
    is_kept = bool(up) and permits.awaits(draft, entry)
    if entry in draft.stops and not is_kept:
        return UnitState.STOPPING if up else UnitState.STOPPED
    if units.is_done(draft, entry, name, declared):
        return UnitState.DONE
    reacting = dynamic.unit_of(draft, entry, name) if declared.dynamic else None
    if reacting is not None and reacting.state is ReactionState.STOPPED and not is_kept:
        return UnitState.STOPPING if up else UnitState.STOPPED
    if isinstance(flight, effects.StartProcess):
        return UnitState.STARTING
    if any(each.digest == declared.digest for each in up):
        return health.running_state(declared, live, memory, now=draft.now)
    if processes.is_over(declared, memory):
        return UnitState.DONE if memory.succeeded else UnitState.FAILED
    if memory.digest == declared.digest and memory.deaths:
        return UnitState.BACKING_OFF
    return UnitState.PENDING


def _is_failed(state: UnitState, declared: DeclaredUnit, memory: UnitMemory) -> bool:
    """Whether a rollout may end on it. One that is still tried again may be told as failed."""
    if state in {UnitState.FAILED, UnitState.UNHEALTHY}:
        return True
    if state not in {UnitState.BACKING_OFF, UnitState.STARTING}:
        return False
    over_and_over = memory.unstartable or memory.deaths >= backoff.FAILED_AFTER
    return memory.digest == declared.digest and over_and_over


def _unit_cause(
    state: UnitState, declared: DeclaredUnit, live: UnitLive, memory: UnitMemory
) -> str | None:
    if state is UnitState.UNHEALTHY:
        return f"unhealthy: {live.problem}"
    if state in {UnitState.BACKING_OFF, UnitState.FAILED}:
        return memory.cause
    if state is UnitState.STARTING and memory.digest == declared.digest and memory.deaths:
        return memory.cause
    if state is UnitState.STARTING and live.problem is not None:
        return f"not healthy yet: {live.problem}"
    return None


def compose(
    state: State,
    reporting: Reporting,
    live: Mapping[EntryId, EntryLive],
    history: History,
    copies: Mapping[str, OldCopy],
) -> Report:
    """The whole report; its sequence is the last one's until it is sent."""
    unsaved = reporting.unsaved
    offer = state.ledger.offer if unsaved is None else unsaved.offer
    return Report(
        machine=state.machine,
        offer=offer,
        settled=min(reporting.settled, offer),
        sequence=reporting.sequence,
        boot=state.boot,
        entries={
            entry: report for entry in sorted(live) if (report := live[entry].report) is not None
        },
        refused=reporting.refused if unsaved is None else unsaved.cause,
        refused_offer=reporting.refused_offer,
        history=history.name,
        occurrences=history.untold(),
        copies=copies,
    )


def send(draft: Draft) -> int | None:
    """Send the report if its content is new and it is time; else when it will be time."""
    if not draft.looked or draft.busy(effects.REPORT):
        return None
    reporting = draft.reporting
    report = compose(draft.state, reporting, draft.entries(), draft.history(), draft.copies)
    if reporting.sent is not None and replace(reporting.sent, sequence=report.sequence) == report:
        draft.reporting = replace(reporting, due_ms=None)
        return None
    due_ms = draft.now + WINDOW_MS if reporting.due_ms is None else reporting.due_ms
    retry = draft.retries.get(effects.REPORT)
    if retry is not None:
        due_ms = max(due_ms, retry.at_ms)
    if due_ms > draft.now:
        draft.reporting = replace(reporting, due_ms=due_ms)
        return due_ms
    report = replace(report, sequence=reporting.sequence + 1)
    draft.reporting = replace(reporting, sequence=report.sequence, due_ms=None)
    effect = effects.SendReport(report=report)
    draft.in_flight[effects.REPORT] = effect
    draft.issued.append(effect)
    return None
