"""The state machine of a rollout: one table, one `step`.

Who drives it saves the state that it gives before the effects run, and may run them again. Every
event may come twice, late or out of order. Every rollout ends: by its reports, at a
deadline, or because another took over.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from keyplane.model.declaration import Report
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout import (
    beginning,
    deadlines,
    failing,
    gate,
    mixture,
    permits,
    policies,
    reckoning,
    refuges,
    returning,
    taking_in,
    tiers,
    waves,
)
from keyplane.rollout.outcome import Trouble
from keyplane.rollout.planned import Planned
from keyplane.rollout.policies import Terms
from keyplane.rollout.refuges import Refuges
from keyplane.rollout.state import (
    Effect,
    Event,
    Finish,
    Offer,
    Offered,
    Phase,
    Reported,
    Seen,
    Started,
    State,
    Superseded,
    Ticked,
    Unsendable,
    without_logs,
)
from keyplane.rollout.steps import Step
from keyplane.rollout.transitions import TRANSITIONS, Turn

DEADLINE_MS = 120_000
"""Longer than a start with the default start period (30 s) and three slow heartbeats together;
short enough that a person who waits at the prompt still does. What a unit says of its own start
and stop is added."""

FAILING_MS = 3_000
"""How long a failure is waited on, while others of its step are still at work: those that fail
with it do so within a second or two, and a person mends them all at once."""


def begin(  # noqa: PLR0913  # both ends of the difference, and how the machines are
    *,
    base: Mapping[EntryId, Planned],
    base_edges: Sequence[Edge],
    target: Mapping[EntryId, Planned],
    target_edges: Sequence[Edge],
    reports: Mapping[MachineName, Report],
    unproven: Collection[EntryId] = (),
    fled: Refuges | None = None,
    terms: Terms | None = None,
    deadline_ms: int = DEADLINE_MS,
) -> State:
    """A rollout from what is declared now to the target. Nothing happens before `Started`.

    `unproven` are those of the rollout before this one, if it did not come to its end, and `fled`
    is what of these has a refuge.
    """
    terms = terms or Terms()
    recorded = policies.recorded(base, target, terms)
    guarded = permits.guards(terms.rules, {*base, *target})
    down = permits.down(guarded, base, reports)
    fled = refuges.usable(fled or {}, base, base_edges, terms.transfers)

    def ordered(fled: Refuges) -> tuple[Step, ...]:
        return tiers.tiers(
            base,
            base_edges,
            target,
            target_edges,
            {*unproven, *terms.transfers.takes},
            recorded=recorded,
            gives=terms.transfers.gives,
            refuges=fled,
        )

    layers = ordered(fled)
    if fled and _cost(layers) > _cost(plain := ordered({})):
        fled, layers = {}, plain  # nobody does without anything for a way back that may not be gone
    steps = waves.waves(
        layers,
        base_edges,
        target_edges,
        target,
        terms.rules,
        terms.absent,
        terms.named,
        down,
        permits.asking(guarded, base, reports),
    )
    leaving = {
        entry
        for step in steps
        for entry in (*step.switched, *step.removed, *step.rewired, *step.yielded)
    }
    concerned = {
        entry for step in steps for entry in (*step.switched, *step.tightened, *step.awaited)
    }
    machines = {machine for step in steps for machine in step.machines}
    return State(
        phase=Phase.SENDING,
        step=0,
        steps=steps,
        edges=tuple(edge for edge in base_edges if edge.consumer in leaving),
        keys={entry: Digest(target[entry].entry.key) for entry in sorted(concerned)},
        former={e: Digest(base[e].entry.key) for e in sorted(leaving | concerned) if e in base},
        refuges=fled,
        gives=terms.transfers.gives,
        takes=terms.transfers.takes,
        returns=frozenset(name for name, rule in terms.rules.items() if rule.rolls_back),
        patience_ms=tuple(
            policies.patience_ms(step, target, terms.rules, deadline_ms) for step in steps
        ),
        before={m: without_logs(reports[m]) for m in sorted(machines) if m in reports},
        unproven=tuple(sorted(set(unproven) & base.keys())),
        absent=terms.absent,
        lost=terms.lost,
        named=terms.named,
        unnamed=terms.unnamed,
        paused=terms.paused,
        guards=guarded,
        paces=policies.paces(terms.rules, steps, target),
        elsewhere=sum(1 for entry in target if split_entry(entry)[2] not in machines),
        seen={
            m: Seen(report=reports[m], heard_ms=None, lives={reports[m].boot: reports[m].sequence})
            for m in sorted(machines)
            if m in reports
        },
    )


def _cost(steps: Sequence[Step]) -> int:
    return sum(len(step.remarks) + len(step.gaps) for step in steps)


def step(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """The state after an event, and what is asked for by it."""
    if not state.phase.is_open:
        again = isinstance(event, Started)
        return state, (Finish(outcome=reckoning.outcome(state)),) if again else ()
    if isinstance(event, Unsendable) and event.fled:
        # What was before the rollout can be had, if what was before another one cannot.
        if (kept := returning.without(state)) is None:
            return state, ()
        return (less := replace(state, refuges=kept)), (_offer(less),)
    before, is_begun = (state.phase, state.step), state.started_ms is not None
    state = _noted(taking_in.take_in(state, event), event)
    while state.phase.is_open:
        # One that is asked for already may have reached a machine, and its answer been lost.
        is_asked = is_begun and before == (state.phase, state.step)
        if (turn := _turn(state, event, is_asked=is_asked)) is None:
            break
        state = _turned(state, turn, event)
    if not state.phase.is_open:
        return state, (Finish(outcome=reckoning.outcome(state)),)
    sends = state.phase in (Phase.SENDING, Phase.RECALLING) and state.asked > 0
    if sends and (isinstance(event, Started) or before != (state.phase, state.step)):
        return state, (_offer(state),)
    return state, ()


def edges(state: State, target_edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """Of the mixture that is declared now: the base's edges for what was not sent yet."""
    made = mixture.mix_edges(state.edges, target_edges, state.steps, state.sent)
    back = returning.reached(state)
    return returning.edges(state, made, back) if back else made


def unproven(state: State) -> tuple[EntryId, ...]:
    """What was sent, by this rollout or one before, and not seen well until now.

    Who begins another rollout passes it on: else consumers would switch to what may never run.
    """
    if not state.steps:
        return ()
    back = returning.reached(state)
    found = {entry for machine in state.left for entry in gate.left_open(state, machine)}
    # What was to be another version, or to go, and is still the one that was not seen well before.
    unsent = (
        entry
        for step in state.steps[state.sent :]
        for entry in (*step.changed, *step.live, *step.removed)
    )
    found.update(
        entry
        for entry in unsent
        if entry in state.unproven and entry not in back and not gate.is_back_well(state, entry)
    )
    if state.phase is Phase.DONE:
        # What is held was not come to, and with it whatever of it was only waited for.
        found.update(entry for step in state.steps[state.asked :] for entry in step.awaited)
        return tuple(sorted(found))
    if state.back:
        awaited = {entry for step in state.steps for entry in step.awaited} - back.keys()
        asked = () if state.phase is Phase.ROLLED_BACK else returning.entries(state)
        late = returning.unpassed(state)
        return tuple(sorted({*awaited, *late, *(e for e in (*asked, *found) if e in state.former)}))
    if state.sent > state.step:
        found.update(state.steps[state.step].switched)
    found.update(entry for step in state.steps[state.step :] for entry in step.awaited)
    return tuple(sorted(found))


def _turn(state: State, event: Event, *, is_asked: bool) -> Turn | None:
    if isinstance(event, Superseded):
        return Turn.REPLACED
    if state.stopped:
        return Turn.ENDED
    if state.started_ms is None:
        return None
    if not state.asked:
        return Turn.EMPTY
    if state.phase is Phase.PAUSED and not state.paused:
        return Turn.GOES_ON
    if isinstance(event, Unsendable) and state.phase is not Phase.PAUSED:
        return Turn.RECALLED if failing.is_to_return(state, event.troubles) else Turn.UNSENDABLE
    if state.failing_ms is not None:
        is_time = event.now_ms - state.failing_ms >= FAILING_MS or not gate.undecided(state)
        if is_time and (troubles := failing.failures(state)):
            return Turn.RECALLED if failing.is_to_return(state, troubles) else Turn.ENTRY_FAILED
    if state.phase is Phase.SENDING and state.paused and not is_asked:
        return Turn.HELD_UP
    return _turn_by_progress(state, event.now_ms) or _turn_by_time(state, event)


def _turn_by_progress(state: State, now_ms: int) -> Turn | None:
    present = state.steps[state.step]
    # The numbers first, as most reports leave them apart: the rest is a look at every machine.
    is_well = len(state.passing) + len(state.skipped) >= len(present.machines) and all(
        machine in state.passing or machine in state.skipped for machine in present.machines
    )
    match state.phase:
        case Phase.SENDING | Phase.RECALLING:
            return Turn.OFFERED if len(state.offered) == len(present.machines) else None
        case Phase.WAITING if is_well:
            if present.settle_ms and state.passing and _is_followed(state):
                return Turn.WELL
            return Turn.PASSED if state.step + 1 < state.asked else Turn.LAST_PASSED
        case Phase.SETTLING if not is_well:
            # One that comes and goes is given no more time than one that never comes.
            if now_ms < deadlines.patient_ms(state):
                return Turn.UNWELL
            return _overdue(state)
        case Phase.SETTLING if now_ms >= state.well_ms + present.settle_ms:
            return Turn.PASSED
        case Phase.RETURNING if is_well:
            is_all = returning.next_step(state) is None
            return Turn.ALL_RETURNED if is_all else Turn.RETURNED
        case _:
            return None


def _is_followed(state: State) -> bool:
    """Whether a machine that is heard comes after this step in its tier."""
    tier = state.steps[state.step].tier
    later = (step for step in state.steps[state.step + 1 :] if step.tier == tier)
    return any(machine not in state.absent for step in later for machine in step.machines)


def _turn_by_time(state: State, event: Event) -> Turn | None:
    if not isinstance(event, Ticked):
        return None
    due = deadlines.due_ms(state)
    if due is None or event.now_ms < due:
        return None
    if state.phase is Phase.PAUSED:
        return Turn.FORGOTTEN
    return _overdue(state)


def _overdue(state: State) -> Turn:
    return Turn.RECALLED if failing.is_to_return(state, gate.lacks(state)) else Turn.OVERDUE


def _noted(state: State, event: Event) -> State:
    """Since when something fails: only what tells of a machine can show that."""
    match event:
        case Offered() | Reported() if state.failing_ms is None and state.steps:
            machine = event.machine if isinstance(event, Offered) else event.report.machine
            fails = bool(gate.failures(state, machine))
            return replace(state, failing_ms=event.now_ms) if fails else state
        case Ticked() if state.failing_ms is not None and not failing.failures(state):
            # Well again before the others were known: it has not failed.
            return replace(state, failing_ms=None)
        case _:
            return state


def _turned(state: State, turn: Turn, event: Event) -> State:
    phase, now_ms = TRANSITIONS[state.phase, turn], event.now_ms
    match turn:
        case Turn.PASSED:
            return beginning.at(replace(state, phase=phase), state.step + 1, now_ms)
        case Turn.RECALLED:
            troubles = failing.why(state, event)
            back = replace(state, phase=phase, back=True, troubles=troubles, paused="")
            first = returning.first_step(state)
            return beginning.at(replace(back, furthest=state.sent), first, now_ms)
        case Turn.RETURNED:
            index = returning.next_step(state)
            assert index is not None
            return beginning.at(replace(state, phase=phase), index, now_ms)
        case Turn.WELL:
            return replace(state, phase=phase, well_ms=now_ms)
        case Turn.OFFERED | Turn.UNWELL | Turn.HELD_UP:
            return replace(state, phase=phase)
        case Turn.GOES_ON:
            return beginning.at(replace(state, phase=phase), state.step, now_ms)
        case Turn.ENTRY_FAILED:
            return _ended(replace(state, phase=phase), now_ms, failing.failures(state))
        case Turn.UNSENDABLE:
            assert isinstance(event, Unsendable)
            return _ended(replace(state, phase=phase), now_ms, event.troubles)
        case Turn.OVERDUE:
            return _ended(replace(state, phase=phase), now_ms, gate.lacks(state))
        case Turn.FORGOTTEN:
            why = f"it was paused for a day ({state.paused})"
            return _ended(replace(state, phase=phase, stopped=why), now_ms)
        case Turn.EMPTY | Turn.LAST_PASSED | Turn.ALL_RETURNED | Turn.ENDED | Turn.REPLACED:
            return _ended(replace(state, phase=phase), now_ms)
        case _:
            assert_never(turn)


def _ended(state: State, now_ms: int, troubles: tuple[Trouble, ...] = ()) -> State:
    return replace(state, ended_ms=now_ms, troubles=(*state.troubles, *troubles))


def _offer(state: State) -> Offer:
    machines = state.steps[state.step].machines
    return Offer(step=state.step, machines=machines, back=state.back)
