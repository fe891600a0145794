"""The one step of the agent's brain: an event goes in, the next state and its effects come out.

The caller saves what `saving.due` names before it runs the effects. Then a crash between any two
effects loses nothing: a new life starts from what was saved, observes the machine, and finds the
same effects still to be done.
"""

from keyplane.converge import (
    caching,
    dynamic,
    effects,
    events,
    folding,
    persons,
    reaction_limits,
    reaction_state,
    reconciler,
    reporting,
    resting,
)
from keyplane.converge import wanted as wanting
from keyplane.converge.draft import Draft
from keyplane.converge.effects import Effect
from keyplane.converge.events import Event
from keyplane.converge.frozen import replace
from keyplane.converge.history import History
from keyplane.converge.saved import EarlierLife
from keyplane.converge.state import Ledger, Reporting, State
from keyplane.model.declaration import NO_OFFER, Declaration, Report
from keyplane.model.names import EntryId, MachineName


def begin(
    *, machine: MachineName, boot: str, earlier: EarlierLife, now_ms: int, wall_ms: int
) -> State:
    """The first state of a life, from what an earlier one saved; `wall_ms` is the wall clock's."""
    ledger, declaration = earlier.ledger or Ledger(), earlier.declaration
    if declaration is not None and declaration.offer > ledger.offer:
        ledger = replace(ledger, offer=declaration.offer)
    wanted = wanting.of_declaration(declaration)
    state = State(
        machine=machine,
        boot=boot,
        now_ms=now_ms,
        ledger=ledger,
        declaration=declaration,
        wanted=wanted,
        declared_at=wanting.owners(wanted),
        next_pass_ms=now_ms,
        history=earlier.history or History(name=boot),
        wall_ms=wall_ms - now_ms,
        reporting=Reporting(
            untried=frozenset(wanted),
            settled=ledger.offer if declaration is not None and not wanted else NO_OFFER,
        ),
        reactions=dynamic.begin(earlier.reactions, ledger, declaration, now_ms=now_ms),
    )
    draft = Draft(state, at_ms=now_ms)
    persons.heed(draft)  # a ledger that was lost had heeded them
    return draft.freeze()


_OF_UNITS = (events.Ticked, events.Probed, events.Exited, events.ValuesTold, events.Silence)


def step(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """Fold one event in, and decide what to do next."""
    return resting.step(state, event) or decide(state, event)


def decide(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """The same in full, also where nothing is to be done but to look again later."""
    settled = state.reporting.settled
    if isinstance(event, events.Offered):
        before = state.wanted
        state, changed = _offer(state, event.declaration, at_ms=max(state.now_ms, event.at_ms))
        draft = Draft(state, at_ms=event.at_ms)
        for entry in sorted(before.keys() - state.wanted.keys()):
            if before[entry].declared.guarded:  # a ledger that was lost may not say so
                draft.remember_declared(entry, before[entry].declared)
        for entry in changed:
            folding.try_again(draft, entry)
        persons.heed(draft)
        touched = sorted(draft.known())
    else:
        draft = Draft(state, at_ms=event.at_ms)
        touched = sorted(set(folding.fold(draft, event)))
    dynamic.heed_stops(draft)
    due_ms = reaction_limits.due_ms(draft.reactions)
    if due_ms is not None and due_ms <= draft.now:
        draft.react(reaction_state.Ticked(now_ms=draft.now))
    # These say nothing of files: a probed unit a second costs no look at each path of its entry.
    of_units = isinstance(event, _OF_UNITS)
    for entry in touched:
        reconciler.reconcile(draft, entry, of_units=of_units)
    for entry in sorted({row.entry for row in draft.reacted}):
        reconciler.reconcile(draft, entry, of_units=False)
    if isinstance(event, events.Observed) or draft.reporting.settled != settled:
        caching.let_go(draft)
    wake_ms = _finish(draft)
    after = draft.freeze()
    after = replace(after, rests=resting.kept(draft, event, touched, after))
    issued = list(draft.issued)
    if wake_ms is not None and (wake_ms != state.wake_ms or isinstance(event, events.Ticked)):
        issued.append(effects.WakeAt(at_ms=wake_ms))
    return replace(after, wake_ms=wake_ms), tuple(issued)


def report(state: State) -> Report:
    """How the machine stands now, as it is told or soon will be."""
    return reporting.compose(
        state, state.reporting, state.entries, state.history, state.ledger.copies
    )


def _offer(state: State, offered: Declaration, *, at_ms: int) -> tuple[State, frozenset[EntryId]]:
    """Accept or refuse a declaration; with it come the entries that it changes."""
    refused = _refusal(state, offered)
    if refused is not None:
        reporting_ = replace(state.reporting, refused=refused, refused_offer=offered.offer)
        return replace(state, reporting=reporting_), frozenset()
    before = state.wanted
    wanted = wanting.of_declaration(offered)
    wanted = {
        entry: before[entry] if entry in before and before[entry] == each else each
        for entry, each in wanted.items()
    }
    leaving = before.keys() - wanted.keys()
    changed = {entry for entry, each in wanted.items() if before.get(entry) is not each} | leaving
    is_new = state.declaration is None or offered.offer != state.declaration.offer
    untried = state.reporting.untried
    if is_new:
        kept = {owned.entry for owned in state.ledger.paths.values()}
        untried = frozenset({*wanted, *leaving, *state.ledger.entries, *kept, *state.entries})
    settled = state.reporting.settled if untried else offered.offer
    reactions = dynamic.declare(state.reactions, offered, state.ledger, now_ms=at_ms)
    return (
        replace(
            state,
            reactions=reactions,
            ledger=replace(state.ledger, offer=offered.offer),
            intents=state.intents + 1,
            declaration=offered,
            wanted=wanted,
            declared_at=wanting.owners(wanted),
            reporting=replace(
                state.reporting, refused=None, refused_offer=None, untried=untried, settled=settled
            ),
        ),
        frozenset(changed),
    )


def _refusal(state: State, offered: Declaration) -> str | None:
    highest = state.ledger.offer
    if offered.machine != state.machine:
        return f"offer {offered.offer} is for machine {offered.machine}"
    if offered.offer < highest:
        return f"offer {offered.offer} is older than {highest}, which was accepted"
    known = state.declaration
    if (
        known is not None
        and offered.offer == known.offer
        and replace(offered, generation=known.generation) != known
    ):
        return f"offer {offered.offer} was accepted with other content"
    fault = wanting.fault(offered)
    return None if fault is None else f"offer {offered.offer}: {fault}"


def _finish(draft: Draft) -> int | None:
    """Look, report, and say when to be woken."""
    times = [live.wake_ms for live in draft.entries().values() if live.wake_ms is not None]
    due_ms = reaction_limits.due_ms(draft.reactions)
    if due_ms is not None:
        times.append(due_ms)
    if not draft.busy(effects.OBSERVE):
        retry = draft.retries.get(effects.OBSERVE)
        at_ms = draft.now if draft.look else draft.next_pass_ms
        at_ms = at_ms if retry is None else max(at_ms, retry.at_ms)
        if at_ms <= draft.now:
            declared = draft.state.declared_at
            looked_at = {*declared, *draft.paths, *draft.copies}
            effect = effects.Observe(paths=tuple(sorted(looked_at)))
            draft.in_flight[effects.OBSERVE] = effect
            draft.issued.append(effect)
        else:
            times.append(at_ms)
    report_ms = reporting.send(draft)
    if report_ms is not None:
        times.append(report_ms)
    return min(times, default=None)
