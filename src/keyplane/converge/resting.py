"""Entries of which all is well, and nothing is due but their health checks.

To decide on one anew would come to the same for as long as nothing else happens; and most of what an
agent hears are answers that all is still well. So these are taken in by themselves. Whatever else
happens is decided on in full, and ends the rest of all that it may concern.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from keyplane.converge import effects, events, reaction_limits
from keyplane.converge.draft import Draft, Standing
from keyplane.converge.frozen import replace
from keyplane.converge.state import EntryLive, EntryMemory, Rest, State, UnitLive, Wanted
from keyplane.model.declaration import EntryState
from keyplane.model.names import EntryId

_HARMLESS = (effects.Probe, effects.SendReport, effects.Observe)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """An entry as it was before it was decided on."""

    live: EntryLive
    memory: EntryMemory | None


def before(draft: Draft, entry: EntryId) -> Before:
    return Before(live=draft.live(entry), memory=draft.memory(entry))


def see(draft: Draft, entry: EntryId, wanted: Wanted, standing: Standing, was: Before) -> None:
    """Note that an entry rests, if what was just decided is nothing, and would be so again."""
    live = draft.live(entry)
    if (
        standing.pending
        or live.report is None
        or live.report.state is not EntryState.HEALTHY
        or not live.in_place
        or live.units is not was.live.units
        or live.report is not was.live.report
        or live.drift is not was.live.drift
        or live.in_place != was.live.in_place
        or draft.memory(entry) is not was.memory
        or any(declared.dynamic for _, declared in wanted.units)
    ):
        return
    checks = {
        effects.resource(probe): probe
        for probe in (check() for check in draft.checks.get(entry, ()))
        if live.units[probe.spec.unit].of == probe.spec.digest
    }
    if len(checks) == len(draft.checks.get(entry, ())):
        draft.rests[entry] = live, Rest(until_ms=draft.dues.get(entry), checks=checks)


def kept(
    draft: Draft, event: events.Event, touched: Collection[EntryId], after: State
) -> Mapping[EntryId, Rest]:
    """Which entries rest after a step that was decided in full."""
    state = draft.state
    if (
        isinstance(event, events.Offered)
        or after.ledger is not state.ledger
        or after.reactions is not state.reactions
        or not all(isinstance(each, _HARMLESS) for each in draft.issued)
    ):
        return {}
    found = {
        entry: rest for entry, (live, rest) in draft.rests.items() if draft.live(entry) is live
    }
    if not _is_of_some(event):
        return found
    others = {entry: rest for entry, rest in state.rests.items() if entry not in touched}
    return {**others, **found}


def _is_of_some(event: events.Event) -> bool:
    """Whether it says nothing of any entry but those that are decided on by it."""
    match event:
        case events.Ticked() | events.Probed():
            return True
        case events.EffectDone(resource=resource):
            return resource == effects.REPORT
        case _:
            return False


def step(state: State, event: events.Event) -> tuple[State, tuple[effects.Effect, ...]] | None:
    """As it would be decided in full, in a fraction of the time; None of what has to be."""
    if not state.rests or not isinstance(event, events.Ticked | events.Probed):
        return None
    now = max(state.now_ms, event.at_ms)
    due_ms = reaction_limits.due_ms(state.reactions)
    if (
        state.reporting.due_ms is not None
        or effects.REPORT in state.in_flight
        or effects.OBSERVE in state.in_flight
        or effects.OBSERVE in state.retries
        or state.next_pass_ms <= now
        or (due_ms is not None and due_ms <= now)
    ):
        return None
    entries, in_flight = dict(state.entries), dict(state.in_flight)
    if isinstance(event, events.Probed):
        live = _probed(state, event, now)
        if live is None:
            return None
        del in_flight[effects.probe_resource(event.entry, event.unit)]
        entries[event.entry] = live
        touched = [event.entry]
    else:
        touched = sorted(
            entry
            for entry, live in entries.items()
            if live.wake_ms is not None and live.wake_ms <= now
        )
    issued: list[effects.Effect] = []
    for entry in touched:
        rest = state.rests.get(entry)
        if rest is None or (rest.until_ms is not None and rest.until_ms <= now):
            return None
        wake_ms = rest.until_ms
        for resource, probe in rest.checks.items():
            if resource in in_flight:
                continue
            if effects.attempt(probe) in state.retries:
                return None
            probe_ms = entries[entry].units[probe.spec.unit].probe_ms
            if probe_ms <= now:
                in_flight[resource] = probe
                issued.append(probe)
            elif wake_ms is None or probe_ms < wake_ms:
                wake_ms = probe_ms
        entries[entry] = replace(entries[entry], wake_ms=wake_ms)
    times = [live.wake_ms for live in entries.values() if live.wake_ms is not None]
    times += [state.next_pass_ms] if due_ms is None else [state.next_pass_ms, due_ms]
    wake_ms = min(times)
    if wake_ms != state.wake_ms or isinstance(event, events.Ticked):
        issued.append(effects.WakeAt(at_ms=wake_ms))
    after = replace(state, now_ms=now, entries=entries, in_flight=in_flight, wake_ms=wake_ms)
    return after, tuple(issued)


def _probed(state: State, event: events.Probed, now: int) -> EntryLive | None:
    """The entry after an answer that changes nothing but when it is asked next."""
    rest = state.rests.get(event.entry)
    resource = effects.probe_resource(event.entry, event.unit)
    effect = state.in_flight.get(resource)
    if (
        rest is None
        or effect is None
        or effect != rest.checks.get(resource)
        or event.problem is not None
        or event.tail
    ):
        return None
    live = state.entries[event.entry]
    unit = live.units[event.unit]
    if unit.failures or unit.unhealthy or unit.problem is not None or not unit.was_healthy:
        return None
    asked: UnitLive = replace(unit, probe_ms=now + rest.checks[resource].health.interval_ms)
    return replace(live, units={**live.units, event.unit: asked})
