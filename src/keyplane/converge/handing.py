"""A unit that takes over: from its own former version, or from a unit that is declared no more.

Both run for a while: the old one is stopped once the new one is well, and never before. Decides
who waits for whom; `units` starts and stops.
"""

from collections.abc import Iterator

from keyplane.converge import health, processes
from keyplane.converge.draft import Draft
from keyplane.converge.frozen import replace
from keyplane.converge.state import UnitLive, UnitMemory, Wanted
from keyplane.model.declaration import DeclaredUnit, UnitState
from keyplane.model.host import ObservedProcess
from keyplane.model.names import Digest, EntryId, UnitName


def former_of(memory: UnitMemory | None, live: UnitLive, digest: Digest) -> UnitMemory | None:
    """The version that runs and that the declared one takes over from.

    Where a handover was overtaken by another, that is the one that was well before both.
    """
    if memory is None:
        return None
    chain = (memory.former, memory) if memory.digest != digest else (memory.former,)
    for each in chain:
        if each is not None and each.digest != digest and _runs(live, each.digest):
            return replace(each, former=None)
    return None


def take_back(draft: Draft, entry: EntryId, unit: UnitName, digest: Digest) -> None:
    """The version that was to be taken over from is declared again: it is the unit, as it was.

    Where it runs no more, what was to take over serves: it is taken over from in turn.
    """
    memory = draft.unit_memory(entry, unit)
    if memory is None or memory.digest == digest:
        return
    former, live = memory.former, draft.unit_live(entry, unit)
    if former is None or former.digest != digest or not _runs(live, digest):
        return
    draft.remember(entry, unit, former)
    draft.set_unit(
        entry,
        unit,
        replace(
            live,
            of=digest,
            since_ms=draft.now - processes.LONG_RUN_MS,
            probe_ms=draft.now,
            failures=0,
            was_healthy=False,
            unhealthy=False,
            problem=None,
            retry_ms=None,
        ),
    )


def is_well(draft: Draft, entry: EntryId, unit: UnitName, declared: DeclaredUnit) -> bool:
    """The declared version is healthy, or has done what it is for."""
    memory = draft.memory(entry)
    if declared.run_once:
        return memory is not None and declared.digest in memory.done.get(unit, ())
    kept, live = draft.unit_memory(entry, unit), draft.unit_live(entry, unit)
    if kept is None or kept.digest != declared.digest:
        return False
    if not _runs(live, declared.digest):
        return kept.down and kept.succeeded and processes.is_over(declared, kept)
    return health.running_state(declared, live, kept, now=draft.now) is UnitState.HEALTHY


def serves_on(
    draft: Draft, entry: EntryId, unit: UnitName, declared: DeclaredUnit
) -> ObservedProcess | None:
    """The former version, for as long as the declared one is not well."""
    if not declared.start_first or declared.run_once:
        return None
    live = draft.unit_live(entry, unit)
    former = former_of(draft.unit_memory(entry, unit), live, declared.digest)
    if former is None or is_well(draft, entry, unit, declared):
        return None
    return live.processes[former.digest]


def successor(draft: Draft, entry: EntryId, wanted: Wanted, unit: UnitName) -> UnitName | None:
    """Who is to take over from a unit that is declared no more, and is not well yet."""
    if entry in draft.stops or not _is_up(draft.unit_live(entry, unit)):
        return None
    for name, declared in wanted.units:
        if declared.replaces == unit and not is_well(draft, entry, name, declared):
            return name
    return None


def port_holder(draft: Draft, entry: EntryId) -> ObservedProcess | None:
    """A process of another entry that was given a port that is now this entry's."""
    wanted = draft.state.wanted.get(entry)
    if wanted is None or not wanted.ports:
        return None
    for other, of_other in draft.entries().items():
        if other == entry:
            continue
        for name, live in of_other.units.items():
            memory = draft.unit_memory(other, name)
            if memory is None or wanted.ports.isdisjoint(memory.ports):
                continue
            declares = processes.declared(draft, other, name)
            for digest in sorted(live.processes):
                if _runs(live, digest) and (declares is None or declares.digest != digest):
                    return live.processes[digest]
    return None


def gives_way(draft: Draft, entry: EntryId) -> bool:
    """Whether its former version goes before the declared one starts, though that is to be first.

    Entries that took each other's ports would wait for each other for ever: the first by name of
    such a circle is stopped first.
    """
    circle = [entry]
    while (holder := port_holder(draft, circle[-1])) is not None:
        if holder.entry == entry:
            return entry == min(circle)
        if holder.entry in circle:
            return False
        circle.append(holder.entry)
    return False


def notes(draft: Draft, entry: EntryId, wanted: Wanted) -> Iterator[str]:
    """What runs beside the units that are declared, and until when."""
    for unit, live in draft.live(entry).units.items():
        declared = wanted.declared.units.get(unit)
        for digest, process in live.processes.items():
            if not process.running:
                continue
            if declared is None:
                after = successor(draft, entry, wanted, unit)
                if after is not None:
                    yield f"{unit}: runs on as pid {process.pid} until {after} is healthy"
            elif declared.start_first and digest != declared.digest:
                yield f"{unit}: its former version runs on as pid {process.pid} until it is healthy"


def _runs(live: UnitLive, digest: Digest) -> bool:
    process = live.processes.get(digest)
    return process is not None and process.running


def _is_up(live: UnitLive) -> bool:
    return any(process.running for process in live.processes.values())
