"""What is done with an entry's units: started, stopped, reloaded, watched.

A unit whose digest is declared as it runs is left alone. A replaced one is stopped last, when
everything that its successor needs is in place; where that one is to start first, once it is well.
"""

from dataclasses import dataclass

from keyplane.converge import dynamic, effects, handing, noting, permits, processes, watching
from keyplane.converge.draft import Draft, Standing
from keyplane.converge.frozen import replace
from keyplane.converge.reaction_state import ReactionState
from keyplane.converge.state import NextStart, UnitLive, Wanted
from keyplane.model.declaration import DeclaredUnit
from keyplane.model.host import ObservedProcess, ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.occurrence import Cause

_OWN = "/run/keyplane/"
"""What an entry has with its agent alone."""
STOP_TIMEOUT_MS = 10_000
"""For a process of which nothing is remembered: what a declaration says if it says nothing."""

_Changing = effects.StopProcess | effects.ReloadProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What an entry's units stand on."""

    in_place: bool
    """Every path is as declared."""
    tidy: bool
    """No path that is no longer declared is being removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One declared unit, and where it stands."""

    entry: EntryId
    name: UnitName
    declared: DeclaredUnit
    wanted: Wanted
    ready: bool
    """Everything that a start of it waits for is in place."""
    reloadable: bool
    """Its configData is as declared."""

    def spec(self, draft: Draft) -> ProcessSpec:
        """What a shim is told.

        It shows the unit all that is declared on its machine and in place: an export may be a
        path, such as that of its provider's socket.
        """
        in_place = {
            path
            for path in draft.paths.keys() & draft.state.declared_at.keys()
            if not path.startswith(_OWN)
        }
        return ProcessSpec(
            entry=self.entry,
            unit=self.name,
            digest=self.declared.digest,
            command=self.declared.command,
            env=dynamic.env_of(draft, self.entry, self.name, self.declared),
            archive=self.declared.archive,
            working_directory=self.declared.working_directory,
            user=self.declared.user,
            paths=tuple(sorted({*self.wanted.paths, *in_place})),
            limits=self.declared.limits,
            ports=() if self.declared.run_once else tuple(sorted(self.wanted.tcp_ports)),
            udp_ports=() if self.declared.run_once else tuple(sorted(self.wanted.udp_ports)),
            address=None if draft.state.declaration is None else draft.state.declaration.address,
        )

    def config(self, draft: Draft) -> dict[str, Digest]:
        """What it takes up when it starts or is reloaded."""
        declared = {path: config.digest for path, config in self.declared.config.items()}
        return {**declared, **dynamic.taken_by_reload(draft, self.entry, self.name)}


def is_done(draft: Draft, entry: EntryId, unit: UnitName, declared: DeclaredUnit) -> bool:
    """A run-once job that was done under this digest."""
    memory = draft.memory(entry)
    return declared.run_once and memory is not None and declared.digest in memory.done.get(unit, ())


def running(live: UnitLive) -> list[ObservedProcess]:
    return [
        live.processes[digest]
        for digest in sorted(live.processes)
        if live.processes[digest].running
    ]


def known(draft: Draft, entry: EntryId) -> list[UnitName]:
    """The units of an entry that are seen or remembered."""
    memory = draft.memory(entry)
    remembered = () if memory is None else memory.units
    return sorted({*draft.live(entry).units, *remembered})


def is_behind(draft: Draft, entry: EntryId, wanted: Wanted) -> bool:
    """A process runs that is to go, and may need what is no longer declared."""
    declared = wanted.declared.units
    return any(
        name not in declared or process.digest != declared[name].digest
        for name, live in draft.live(entry).units.items()
        for process in running(live)
    )


def converge(
    draft: Draft, entry: EntryId, wanted: Wanted, standing: Standing, ground: Ground
) -> None:
    """Bring the units of a declared entry nearer to what is declared, in order."""
    declared = wanted.declared.units
    undeclared = [unit for unit in known(draft, entry) if unit not in declared]
    leaving = [
        not retire(draft, entry, unit, standing)
        for unit in undeclared
        if handing.successor(draft, entry, wanted, unit) is None
    ]
    before = ground.in_place and not any(leaving)
    for name, each in wanted.units:
        fetched = each.archive is None or each.archive in draft.artifacts
        unit = Unit(
            entry=entry,
            name=name,
            declared=each,
            wanted=wanted,
            ready=before and fetched,
            reloadable=ground.in_place and ground.tidy,
        )
        if entry in draft.stops:
            if not stop_all(draft, entry, name, standing):
                watching.watch_on(draft, entry, name, unit.spec)
            continue
        if is_done(draft, entry, name, each):
            _forget_remains(draft, entry, name, keep=each.digest, standing=standing)
            continue
        _converge_unit(draft, unit, standing)
        if each.run_once:
            before = False


def _converge_unit(draft: Draft, unit: Unit, standing: Standing) -> None:
    entry, name, digest = unit.entry, unit.name, unit.declared.digest
    if _is_busy(draft, entry, name, standing):
        return
    reacting = dynamic.unit_of(draft, entry, name)
    if reacting is not None and reacting.state is ReactionState.STOPPED:
        _because_of_values(draft, entry, name)
        if stop_all(draft, entry, name, standing):
            gone = ", ".join(dynamic.gone(draft, reacting))
            standing.waits.append(f"{name}: stopped, as {gone} is missing")
        elif permits.awaits(draft, entry):
            standing.reacts = True
            watching.watch_on(draft, entry, name, unit.spec)
        return
    handing.take_back(draft, entry, name, digest)
    live = draft.unit_live(entry, name)
    current = live.processes.get(digest)
    is_current = current is not None and current.running
    stray = _stray(draft, unit, live)
    if stray is not None:
        if unit.ready or is_current:
            is_relieved = bool(is_current) and handing.is_well(draft, entry, name, unit.declared)
            _stop(draft, stray, standing, is_relieved=is_relieved)
            watching.watch_on(draft, entry, name, unit.spec)
        return
    if is_current or permits.awaits(draft, entry):
        dynamic.withdraw(draft, entry, name)
    outdated = dynamic.is_outdated(draft.unit_memory(entry, name), reacting)
    if is_current and outdated and not unit.declared.run_once:
        assert current is not None
        assert reacting is not None
        _because_of_values(draft, entry, name, dynamic.start_of(reacting, unit.config(draft)))
        if not unit.ready:
            standing.pending = True
            return
        _stop(draft, current, standing)
        if permits.awaits(draft, entry):
            standing.reacts = True
            watching.watch_on(draft, entry, name, unit.spec)
        return
    if is_current:
        _keep(draft, unit, standing)
    else:
        _start(draft, unit, standing)
    _forget_remains(draft, entry, name, keep=digest, standing=standing)


def _stray(draft: Draft, unit: Unit, live: UnitLive) -> ObservedProcess | None:
    """What runs of a unit and is to go now, if anything.

    The version before goes before the declared one starts or, if that is to be started first,
    once that is well, or has no port before. What else is left of it serves nobody.
    """
    strays = [each for each in running(live) if each.digest != unit.declared.digest]
    declared = unit.declared
    if not declared.start_first or declared.run_once:
        return strays[0] if strays else None
    former = handing.former_of(draft.unit_memory(unit.entry, unit.name), live, declared.digest)
    kept = None if former is None else former.digest
    others = [each for each in strays if each.digest != kept]
    if others or not strays:
        return others[0] if others else None
    is_relieved = handing.is_well(draft, unit.entry, unit.name, declared)
    return strays[0] if is_relieved or handing.gives_way(draft, unit.entry) else None


def _because_of_values(
    draft: Draft, entry: EntryId, name: UnitName, following: NextStart | None = None
) -> None:
    """What comes next of it is the engine's doing.

    Noted with the intent to write its files, so that neither stop nor start waits for the disk.
    """
    memory = draft.unit_memory(entry, name)
    if memory is not None and memory.up:
        why = memory.why or Cause.REACTION
        draft.remember(entry, name, replace(memory, why=why, next=following))


def _keep(draft: Draft, unit: Unit, standing: Standing) -> None:
    """It runs as declared: let it take up changed configData, and watch it."""
    entry, name, declared = unit.entry, unit.name, unit.declared
    memory = processes.fresh_memory(draft.unit_memory(entry, name), declared.digest)
    live = draft.unit_live(entry, name)
    kept = replace(memory, stop_timeout_ms=declared.stop_timeout_ms, health=declared.health)
    reacting = dynamic.unit_of(draft, entry, name)
    if reacting is not None and kept.turn is None:
        kept = replace(kept, turn=reacting.turn, values=dynamic.values_of(reacting))
    if memory.deaths and draft.now - live.since_ms >= processes.LONG_RUN_MS:
        kept = replace(kept, deaths=0, unstartable=False, cause=None)
    if unit.reloadable and memory.loaded != unit.config(draft):
        if memory.loaded is None or declared.reload is None:
            # Adopted, it is taken to have read what was found in place; and without a reload
            # it reads the file by itself or never.
            kept = replace(kept, loaded=unit.config(draft))
        else:
            effect = effects.ReloadProcess(
                spec=unit.spec(draft), how=declared.reload, config=unit.config(draft)
            )
            _attempt(draft, entry, effect, standing)
    draft.remember(entry, name, kept)
    if declared.run_once:
        standing.pending = True
        return
    if kept.deaths:
        draft.wake(entry, live.since_ms + processes.LONG_RUN_MS)
    watching.watch(draft, entry, name, kept, unit.spec)


def _start(draft: Draft, unit: Unit, standing: Standing) -> None:
    entry, name, declared = unit.entry, unit.name, unit.declared
    memory = processes.fresh_memory(draft.unit_memory(entry, name), declared.digest)
    reacting = dynamic.unit_of(draft, entry, name)
    if reacting is not None and reacting.state is ReactionState.WAITING:
        awaited = ", ".join(dynamic.awaited(draft, reacting))
        standing.waits.append(f"{name}: waits for a first value of {awaited}")
        return
    if dynamic.is_outdated(memory, reacting):
        # Other values than it ended with may be what it lacked.
        processes.reset(draft, entry, name, draft.unit_live(entry, name))
    elif processes.is_over(declared, memory):
        return
    if not unit.ready:
        return
    holder = handing.port_holder(draft, entry)
    if holder is not None:
        resource = effects.unit_resource(holder.entry, holder.unit)
        standing.pending = standing.pending or draft.busy(resource)
        standing.waits.append(
            f"{name}: a port of it is still held by {holder.unit} of {holder.entry}"
        )
        return
    live = draft.unit_live(entry, name)
    if live.retry_ms is not None and live.retry_ms > draft.now:
        draft.wake(entry, live.retry_ms)
        return
    for other, _ in unit.wanted.units:
        flight = draft.in_flight.get(effects.unit_resource(entry, other))
        if isinstance(flight, effects.StartProcess):
            standing.pending = True  # one after another, by name
            return
    if draft.attempt(entry, effects.StartProcess(spec=unit.spec(draft))):
        standing.pending = True
        before = draft.unit_memory(entry, name)
        if memory.starts == 0:
            memory = noting.after(before, memory)
        noted = memory.next
        known = memory if noted is None else processes.started_with(memory, noted)
        memory = replace(
            memory,
            former=handing.former_of(before, live, declared.digest),
            down=False,
            loaded=unit.config(draft),
            ports=tuple(sorted(unit.wanted.ports)),
            stop_timeout_ms=declared.stop_timeout_ms,
            health=declared.health,
            turn=None if reacting is None else reacting.turn,
            values=None if reacting is None else dynamic.values_of(reacting),
            next=None,
        )
        draft.remember(entry, name, memory, is_outcome=noted is not None and memory == known)


def retire(draft: Draft, entry: EntryId, unit: UnitName, standing: Standing) -> bool:
    """Stop and forget a unit that is not declared; True once nothing of it runs."""
    if not stop_all(draft, entry, unit, standing):
        return False
    if not draft.unit_live(entry, unit).processes:
        live = draft.live(entry)
        units = {each: live.units[each] for each in live.units if each != unit}
        draft.set_live(entry, replace(live, units=units))
        draft.remember(entry, unit, None)
    return True


def stop_all(draft: Draft, entry: EntryId, unit: UnitName, standing: Standing) -> bool:
    """Stop whatever runs of a unit, and drop its remains; True once nothing runs."""
    if _is_busy(draft, entry, unit, standing):
        return False
    for process in running(draft.unit_live(entry, unit)):
        _stop(draft, process, standing)
        return False
    _forget_remains(draft, entry, unit, keep=None, standing=standing)
    return True


def _stop(
    draft: Draft, process: ObservedProcess, standing: Standing, *, is_relieved: bool = False
) -> None:
    """Of what was relieved by a version that is well, nothing is taken away."""
    entry, unit = process.entry, process.unit
    memory = draft.unit_memory(entry, unit)
    if not is_relieved and not permits.may_stop(draft, entry, standing):
        standing.waits.append(f"{unit}: its stop waits for a permit")
        return
    timeout_ms = STOP_TIMEOUT_MS if memory is None else memory.stop_timeout_ms
    effect = effects.StopProcess(
        entry=entry, unit=unit, digest=process.digest, timeout_ms=timeout_ms
    )
    _attempt(draft, entry, effect, standing)


def _attempt(draft: Draft, entry: EntryId, effect: _Changing, standing: Standing) -> None:
    under_way = draft.attempt(entry, effect)
    _blame(draft, effect, standing, under_way=under_way)


def _is_busy(draft: Draft, entry: EntryId, unit: UnitName, standing: Standing) -> bool:
    """Whether something is done to it; what failed of that before is told until it is done."""
    flight = draft.in_flight.get(effects.unit_resource(entry, unit))
    if isinstance(flight, effects.StopProcess | effects.ReloadProcess):
        _blame(draft, flight, standing, under_way=True)
    elif flight is not None:
        standing.pending = True
    return flight is not None


def _blame(draft: Draft, effect: _Changing, standing: Standing, *, under_way: bool) -> None:
    match effect:
        case effects.StopProcess(unit=unit):
            what = f"stop of {unit}"
        case effects.ReloadProcess(spec=spec):
            what = f"reload of {spec.unit}"
    standing.blame(what, draft.retries.get(effects.attempt(effect)), under_way=under_way)


def _forget_remains(
    draft: Draft, entry: EntryId, unit: UnitName, *, keep: Digest | None, standing: Standing
) -> None:
    """Remains are dropped once nothing is told by them any more."""
    live = draft.unit_live(entry, unit)
    for digest in sorted(live.processes):
        if digest != keep and not live.processes[digest].running:
            effect = effects.ForgetProcess(entry=entry, unit=unit, digest=digest)
            if draft.busy(effects.unit_resource(entry, unit)):
                return
            if draft.attempt(entry, effect):
                standing.pending = True
            return
