"""Takes in what happened: each event, and the answer to each effect. Decides no act.

It says which entries an event concerns; `brain` has them reconciled.
"""

from collections.abc import Iterable
from typing import assert_never

from keyplane.converge import (
    drifting,
    dynamic,
    effects,
    events,
    health,
    paths,
    permits,
    persons,
    processes,
    reaction_state,
    serving,
    volumes,
)
from keyplane.converge import wanted as wanting
from keyplane.converge.draft import Draft
from keyplane.converge.events import Event
from keyplane.converge.frozen import replace
from keyplane.converge.state import Kind, Unsaved
from keyplane.model.names import EntryId
from keyplane.model.occurrence import Act

FULL_PASS_MS = 30_000
"""What was changed under the agent is put right within half a minute, at the cost of reading
each declared file so often."""


def try_again(draft: Draft, entry: EntryId) -> None:
    """What failed may succeed now that the entry is another."""
    wanted = draft.state.wanted.get(entry)
    names = [
        effects.path_resource(path) for path, owned in draft.paths.items() if owned.entry == entry
    ]
    if wanted is not None:
        names += [effects.path_resource(path) for path in wanted.paths]
        draft.look_anew(wanted.paths)
        names += [effects.archive_resource(digest) for digest in wanting.archives(wanted)]
        names += [effects.volume_resource(path) for path in wanted.paths]
    for unit, live in draft.live(entry).units.items():
        resource = effects.unit_resource(entry, unit)
        names += [resource, f"reload-{resource}", f"stop-{resource}"]
        processes.reset(draft, entry, unit, live)
    draft.clear(names)


def fold(draft: Draft, event: Event) -> Iterable[EntryId]:
    """Take in what happened; the entries that it concerns."""
    match event:
        case events.Offered():
            return ()  # taken in by `_offer`
        case events.OfferRefused(cause=cause, offer=offer):
            draft.reporting = replace(draft.reporting, refused=cause, refused_offer=offer)
            return ()
        case events.Connected():
            draft.reporting = replace(draft.reporting, sent=None)
            draft.clear([effects.REPORT])
            return ()
        case events.Observed():
            return _observed(draft, event)
        case events.EffectDone():
            return _done(draft, event)
        case events.EffectFailed():
            return _failed(draft, event)
        case events.Exited(process=process, tail=tail):
            if draft.looked:  # else the first look sees its remains
                processes.ended(draft, process, tail)
            return (process.entry,)
        case events.Probed():
            return _probed(draft, event)
        case events.ValuesTold(news=news):
            draft.react(reaction_state.Told(now_ms=draft.now, news=news))
            return ()  # what the engine makes of it says whom it concerns
        case events.Silence(exports=exports, is_silent=is_silent):
            draft.react(
                reaction_state.Sounded(now_ms=draft.now, exports=exports, is_silent=is_silent)
            )
            return ()
        case events.PersonStopped(entry=entry, stop=stop):
            if entry in draft.known():
                persons.stop(draft, entry, stop, here=True)
            return (entry,)
        case events.PersonStarted(entry=entry, who=who):
            try_again(draft, entry)
            persons.start(draft, entry, who, here=True)
            return (entry,)
        case events.Permitted(permits=found):
            return [
                entry
                for entry, name in found.items()
                if permits.granted(draft, entry, name, up=serving.is_up(draft, entry))
            ]
        case events.SaveTried(cause=cause, offer=offer):
            unsaved = None if cause is None else Unsaved(cause=cause, offer=offer)
            draft.reporting = replace(draft.reporting, unsaved=unsaved)
            return ()
        case events.ClockSet(wall_ms=wall_ms):
            draft.wall_ms = wall_ms
            return ()
        case events.Ticked():
            return [
                entry
                for entry, live in draft.entries().items()
                if live.wake_ms is not None and live.wake_ms <= draft.now
            ]
        case _:
            assert_never(event)


def _observed(draft: Draft, event: events.Observed) -> Iterable[EntryId]:
    draft.in_flight.pop(effects.OBSERVE, None)
    draft.clear([effects.OBSERVE])
    draft.next_pass_ms = draft.now + FULL_PASS_MS
    changing = {
        path: seen for path, seen in draft.seen.items() if draft.busy(effects.path_resource(path))
    }
    draft.seen = {**event.paths, **changing}
    draft.unseen = event.unseen
    going = {e.digest for e in draft.in_flight.values() if isinstance(e, effects.LetGo)}
    draft.artifacts = event.artifacts - going
    processes.observed(draft, event.processes, event.tails)
    draft.looked = draft.seen_anew = True
    forgotten = [
        name
        for name, retry in draft.retries.items()
        if retry.at_ms + FULL_PASS_MS < draft.now  # nobody has wanted it since
    ]
    draft.clear(forgotten)
    drifting.forget_old(draft)
    volumes.forget_removed(draft)
    return draft.known()


def _done(draft: Draft, event: events.EffectDone) -> Iterable[EntryId]:
    effect = draft.in_flight.pop(event.resource, None)
    if effect is None:
        return ()
    draft.clear([effects.attempt(effect)])
    match effect:
        case effects.Fetch(digest=digest):
            draft.artifacts |= {digest}
            return draft.state.wanted
        case effects.LetGo():
            return draft.state.wanted  # one that is wanted again meanwhile is fetched now
        case effects.WriteFile() | effects.MakeDirectory() | effects.UnpackArchive():
            paths.applied(draft, effect.path, event.path)
            if isinstance(effect, effects.UnpackArchive):
                draft.forget_below(effect.path)
            return _around(draft, effect)
        case effects.RemovePath(path=path):
            paths.removed(draft, path)
            return _around(draft, effect)
        case effects.SaveVolume() | effects.TakeVolume():
            volumes.done(draft, effect, event)
            return (effect.entry,)
        case effects.StartProcess():
            if event.process is not None:
                processes.started(draft, event.process, event.tail)
            return (effect.spec.entry,)
        case effects.StopProcess(entry=entry, unit=unit, digest=digest):
            processes.stopped(draft, entry, unit, digest, killed=event.killed)
            return draft.known()  # a port that it held is free
        case effects.ForgetProcess(entry=entry, unit=unit, digest=digest):
            processes.forgotten(draft, entry, unit, digest)
            return (entry,)
        case effects.ReloadProcess(spec=spec, config=config):
            memory = draft.unit_memory(spec.entry, spec.unit)
            if memory is not None and memory.digest == spec.digest:
                taken = replace(memory, loaded=config, reloads=memory.reloads + 1)
                draft.remember(spec.entry, spec.unit, taken)
                why = dynamic.cause_of_reload(memory.loaded, config)
                draft.note(spec.entry, spec.unit, Act.RELOAD, why)
            return (spec.entry,)
        case effects.SendReport(report=report):
            if report.occurrences:
                draft.told = report.occurrences[-1].number
            draft.reporting = replace(draft.reporting, sent=replace(report, occurrences=()))
            return ()
        case effects.Observe() | effects.Probe() | effects.WakeAt():
            return ()  # answered by events of their own
        case _:
            assert_never(effect)


def _around(draft: Draft, effect: effects.OfPath) -> Iterable[EntryId]:
    """Who acted on the path, and who declares it now."""
    owner = draft.state.declared_at.get(effect.path)
    return {effect.entry} if owner is None else {effect.entry, owner}


def _failed(draft: Draft, event: events.EffectFailed) -> Iterable[EntryId]:
    effect = draft.in_flight.pop(event.resource, None)
    if effect is None:
        return ()
    if isinstance(effect, effects.StartProcess):
        spec = effect.spec
        processes.unstartable(draft, spec, event)
        return (spec.entry,)
    draft.failed(effect, event.cause, permanent=event.permanent)
    match effect:
        case effects.Fetch(digest=digest):
            wanted = draft.state.wanted.items()
            draft.tried.update(e for e, each in wanted if digest in wanting.archives(each))
            return draft.state.wanted
        case effects.LetGo():
            return draft.state.wanted
        case effects.RemovePath(path=path):
            draft.tried.update(_around(draft, effect))
            owned = draft.paths.get(path)
            if owned is not None and owned.spec.kind is Kind.DIRECTORY and event.permanent:
                draft.disown(path)  # what others have put something into is theirs now
            return _around(draft, effect)
        case effects.WriteFile() | effects.MakeDirectory() | effects.UnpackArchive():
            draft.tried.update(_around(draft, effect))
            paths.failed(draft, effect.path)
            return _around(draft, effect)
        case effects.StopProcess(entry=entry) | effects.ForgetProcess(entry=entry):
            return (entry,)
        case effects.SaveVolume() | effects.TakeVolume():
            volumes.failed(draft, effect, event.cause)
            return (effect.entry,)
        case effects.ReloadProcess(spec=spec) | effects.Probe(spec=spec):
            return (spec.entry,)
        case effects.SendReport():
            # It may have come, and only its answer was lost: what the controller has is not known.
            draft.reporting = replace(draft.reporting, sent=None)
            return ()
        case effects.Observe() | effects.WakeAt():
            return ()
        case _:
            assert_never(effect)


def _probed(draft: Draft, event: events.Probed) -> Iterable[EntryId]:
    effect = draft.in_flight.pop(effects.probe_resource(event.entry, event.unit), None)
    live = draft.unit_live(event.entry, event.unit)
    declared = processes.declared(draft, event.entry, event.unit)
    memory = draft.unit_memory(event.entry, event.unit)
    if (
        isinstance(effect, effects.Probe)
        and declared is not None
        and memory is not None
        and live.of == effect.spec.digest
        and memory.pid == effect.pid
        and (check := declared.health if live.of == declared.digest else memory.health) is not None
    ):
        live = health.probed(live, check, event.problem, now=draft.now)
        live = replace(live, tail=event.tail or live.tail)
        draft.set_unit(event.entry, event.unit, live)
    return (event.entry,)
