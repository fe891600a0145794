"""What became of processes: facts folded into the state. Decides nothing.

A process is known by its pid and start time. Its end may be told twice, late, or before its
start was; each is counted once.
"""

from collections.abc import Iterable, Mapping

from keyplane.converge import backoff, effects, noting
from keyplane.converge.draft import Draft
from keyplane.converge.events import EffectFailed
from keyplane.converge.frozen import replace
from keyplane.converge.state import NextStart, UnitLive, UnitMemory
from keyplane.model.declaration import DeclaredUnit, Restart
from keyplane.model.host import ObservedProcess, ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.occurrence import Act

LONG_RUN_MS = 10_000
"""A process that ran so long is no longer in a row of deaths: the ten seconds in which systemd
counts starts too."""

DONE_KEPT = 20
"""Digests of a run-once job that are remembered as done: as many as generations are kept, so
that no rollback runs one again."""


def declared(draft: Draft, entry: EntryId, unit: UnitName) -> DeclaredUnit | None:
    wanted = draft.state.wanted.get(entry)
    return None if wanted is None else wanted.declared.units.get(unit)


def is_over(declared: DeclaredUnit, memory: UnitMemory | None) -> bool:
    """It ended by itself and is not to be started again."""
    if memory is None or memory.digest != declared.digest or not memory.down or declared.run_once:
        return False
    match declared.restart:
        case Restart.ALWAYS:
            return False
        case Restart.ON_FAILURE:
            return memory.succeeded
        case Restart.NO:
            return True


def started(draft: Draft, process: ObservedProcess, tail: tuple[str, ...]) -> None:
    """A start was done: the process runs, or ended before it was told that it runs."""
    entry, unit = process.entry, process.unit
    live = draft.unit_live(entry, unit)
    early = live.early
    if early is not None:
        draft.set_unit(entry, unit, replace(live, early=None))
    running = replace(process, running=True)
    if process.cause is None:
        noting.started(draft, running)
    adopt(draft, running, seen_before=False)
    if not process.running:
        ended(draft, process, tail)
    elif early is not None and _same(early, process):
        ended(draft, early, ())


def adopt(draft: Draft, process: ObservedProcess, *, seen_before: bool) -> None:
    """A process runs; `seen_before` if it ran before this life of the agent began."""
    entry, unit, digest = process.entry, process.unit, process.digest
    live = draft.unit_live(entry, unit)
    live = replace(live, processes={**live.processes, digest: process})
    memory = draft.unit_memory(entry, unit)
    if memory is None or memory.digest != digest:
        declares = declared(draft, entry, unit)
        if memory is not None and declares is not None and declares.digest != digest:
            draft.set_unit(entry, unit, live)  # the memory is of a newer one beside it
            return
        memory = UnitMemory(digest=digest)
    if memory.next is not None and not noting.is_known(memory, process):
        memory = started_with(memory, memory.next)
    draft.remember(
        entry,
        unit,
        replace(
            memory,
            up=True,
            pid=process.pid,
            start_ticks=process.start_ticks,
            starts=memory.starts if noting.is_known(memory, process) else memory.starts + 1,
            down=False,
        ),
    )
    # A process that was found running had come up before; one in a row of deaths is watched anew.
    long_run = seen_before and memory.deaths == 0
    live = replace(
        live,
        of=digest,
        since_ms=draft.now - LONG_RUN_MS if long_run else draft.now,
        probe_ms=draft.now,
        failures=0,
        was_healthy=False,
        unhealthy=False,
        problem=None,
        retry_ms=None,
    )
    draft.set_unit(entry, unit, live)


def unstartable(draft: Draft, spec: ProcessSpec, failure: EffectFailed) -> None:
    """A start failed. It is tried again as after a death."""
    entry, unit = spec.entry, spec.unit
    live = draft.unit_live(entry, unit)
    memory = draft.unit_memory(entry, unit)
    if memory is None:
        return
    deaths = memory.deaths + 1
    noting.failed(draft, entry, unit, memory, failure.cause)
    draft.remember(
        entry,
        unit,
        replace(
            memory, deaths=deaths, cause=failure.cause, unstartable=failure.permanent, up=False
        ),
    )
    retry_ms = draft.now + backoff.delay_ms(deaths)
    draft.set_unit(
        entry, unit, replace(live, early=None, retry_ms=retry_ms, tail=failure.tail or live.tail)
    )


def ended(draft: Draft, process: ObservedProcess, tail: tuple[str, ...]) -> None:
    """A process ended, by itself or because it was stopped."""
    entry, unit = process.entry, process.unit
    live = draft.unit_live(entry, unit)
    known = live.processes.get(process.digest)
    flight = draft.in_flight.get(effects.unit_resource(entry, unit))
    if isinstance(flight, effects.StartProcess) and flight.spec.digest == process.digest:
        draft.set_unit(entry, unit, replace(live, early=process, tail=tail or live.tail))
        return
    if known is not None and known.running and not _same(known, process):
        return  # of an earlier one
    if known is not None and not known.running:
        return  # told already
    live = replace(live, processes={**live.processes, process.digest: process})
    if live.of == process.digest:
        live = replace(live, of=None, tail=tail or live.tail)
    draft.set_unit(entry, unit, live)
    _forget_former(draft, entry, unit, process.digest)
    memory = draft.unit_memory(entry, unit)
    if memory is None or memory.digest != process.digest or not memory.up:
        return
    is_stop = isinstance(flight, effects.StopProcess) and flight.digest == process.digest
    if is_stop or entry in draft.stops:
        draft.remember(entry, unit, replace(memory, up=False))
        return
    if process.asked:
        why = noting.asked(draft, process, memory)
        draft.remember(entry, unit, replace(memory, up=False, why=why))
        return
    _count(draft, process, memory)


def _count(draft: Draft, process: ObservedProcess, memory: UnitMemory) -> None:
    entry, unit = process.entry, process.unit
    live = draft.unit_live(entry, unit)
    declares = declared(draft, entry, unit)
    alone = noting.by_itself(process)
    succeeded = process.exit_code == 0
    is_job = declares is not None and declares.run_once
    long_run = not is_job and draft.now - live.since_ms >= LONG_RUN_MS
    deaths = 1 if long_run else memory.deaths + 1
    how = exit_text(process)
    cause = process.cause or (f"ended: {how}" if how else "is gone, and nobody saw it end")
    why = noting.why(process, is_over=succeeded and (is_job or not noting.runs_on(declares)))
    if process.cause is not None:
        why = memory.why
        noting.failed(draft, entry, unit, memory, cause)
    else:
        detail = process.notes[-1] if process.lost and process.notes else how or cause
        draft.note(entry, unit, Act.END, why, detail)
    draft.remember(
        entry,
        unit,
        replace(
            memory,
            up=False,
            deaths=0 if is_job and succeeded else deaths,
            # An end that nobody saw is the machine's, not its own: it is started again.
            down=alone,
            succeeded=succeeded,
            unstartable=process.cause is not None,
            last_exit=how or memory.last_exit,
            cause=cause,
            why=why,
        ),
    )
    retry_ms = draft.now + backoff.delay_ms(deaths)
    draft.set_unit(entry, unit, replace(live, retry_ms=retry_ms))
    if is_job and succeeded:
        of_entry = draft.memory(entry)
        before = () if of_entry is None else of_entry.done.get(unit, ())
        done = (*(each for each in before if each != process.digest), process.digest)
        draft.remember_done(entry, unit, done[-DONE_KEPT:])


def stopped(draft: Draft, entry: EntryId, unit: UnitName, digest: Digest, *, killed: bool) -> None:
    """A stop was done: nothing of it is left but its remains."""
    noting.stopped(draft, entry, unit, digest, killed=killed)
    live = draft.unit_live(entry, unit)
    known = live.processes.get(digest)
    remains = ObservedProcess(entry=entry, unit=unit, digest=digest, running=False)
    if known is not None:
        remains = replace(known, running=False)
    live = replace(live, processes={**live.processes, digest: remains})
    draft.set_unit(entry, unit, replace(live, of=None) if live.of == digest else live)
    _forget_former(draft, entry, unit, digest)
    memory = draft.unit_memory(entry, unit)
    if memory is not None and memory.digest == digest:
        draft.remember(entry, unit, replace(memory, up=False), is_outcome=True)


def _forget_former(draft: Draft, entry: EntryId, unit: UnitName, digest: Digest) -> None:
    """Nothing can be taken back from a version that has ended."""
    memory = draft.unit_memory(entry, unit)
    if memory is not None and memory.former is not None and memory.former.digest == digest:
        draft.remember(entry, unit, replace(memory, former=None))


def forgotten(draft: Draft, entry: EntryId, unit: UnitName, digest: Digest) -> None:
    live = draft.unit_live(entry, unit)
    processes = {each: live.processes[each] for each in live.processes if each != digest}
    draft.set_unit(entry, unit, replace(live, processes=processes))


def observed(
    draft: Draft,
    processes: Iterable[ObservedProcess],
    tails: Mapping[tuple[EntryId, UnitName], tuple[str, ...]],
) -> None:
    """All processes of the machine, at one time."""
    units: dict[tuple[EntryId, UnitName], dict[Digest, ObservedProcess]] = {}
    for entry, of_entry in draft.entries().items():
        for unit in of_entry.units:
            units[entry, unit] = {}
    for process in processes:
        units.setdefault((process.entry, process.unit), {})[process.digest] = process
    for (entry, unit), found in sorted(units.items()):
        if draft.busy(effects.unit_resource(entry, unit)):
            continue  # what is being changed is told when it is done
        known = draft.unit_live(entry, unit).processes
        for digest in sorted(found.keys() | known.keys()):
            _observe(draft, known.get(digest), found.get(digest), tails.get((entry, unit), ()))


def _observe(
    draft: Draft,
    known: ObservedProcess | None,
    found: ObservedProcess | None,
    tail: tuple[str, ...],
) -> None:
    if found is None:
        assert known is not None
        if known.running:
            gone = replace(known, running=False)
            ended(draft, gone, tail)
        forgotten(draft, known.entry, known.unit, known.digest)
        return
    if found.running:
        if known is None or not known.running or not _same(known, found):
            noting.found(draft, found, seen_before=not draft.looked)
            adopt(draft, found, seen_before=not draft.looked)
        return
    if known is not None and known.running:
        ended(draft, found, tail)
    elif known is None:
        _found_ended(draft, found, tail)


def _found_ended(draft: Draft, found: ObservedProcess, tail: tuple[str, ...]) -> None:
    """Remains that this life of the agent did not see end."""
    entry, unit = found.entry, found.unit
    memory = draft.unit_memory(entry, unit)
    counted = memory is not None and (memory.digest != found.digest or not memory.up)
    declares = declared(draft, entry, unit)
    if memory is None and declares is not None and declares.digest == found.digest:
        # Without a ledger its remains are all that tells how it ended.
        draft.remember(entry, unit, UnitMemory(digest=found.digest, starts=1, up=True))
    if counted:
        live = draft.unit_live(entry, unit)
        live = replace(live, processes={**live.processes, found.digest: found}, tail=tail)
        if memory is not None and memory.deaths and memory.digest == found.digest:
            live = replace(live, retry_ms=draft.now + backoff.delay_ms(memory.deaths))
        draft.set_unit(entry, unit, live)
        return
    ended(draft, found, tail)
    if not noting.by_itself(found) and found.cause is None:
        # The machine went down with it: it is no death of its own.
        memory = draft.unit_memory(entry, unit)
        if memory is not None and memory.digest == found.digest:
            draft.remember(entry, unit, replace(memory, deaths=max(0, memory.deaths - 1)))
        live = replace(draft.unit_live(entry, unit), retry_ms=None)
        draft.set_unit(entry, unit, live)


def _same(known: ObservedProcess, other: ObservedProcess) -> bool:
    if known.pid is None or other.pid is None:
        return True
    return (known.pid, known.start_ticks) == (other.pid, other.start_ticks)


def exit_text(process: ObservedProcess) -> str | None:
    if process.exit_signal is not None:
        return f"signal {signal_name(process.exit_signal)}"
    return None if process.exit_code is None else f"exit {process.exit_code}"


_SIGNALS = {
    1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL",
    10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 24: "XCPU", 25: "XFSZ",
}  # fmt: skip


def signal_name(number: int) -> str:
    return _SIGNALS.get(number, str(number))


def fresh_memory(memory: UnitMemory | None, digest: Digest) -> UnitMemory:
    return memory if memory is not None and memory.digest == digest else UnitMemory(digest=digest)


def started_with(memory: UnitMemory, start: NextStart) -> UnitMemory:
    """The memory of a unit once it was started with that."""
    return replace(memory, turn=start.turn, values=start.values, loaded=start.loaded, next=None)


def reset(draft: Draft, entry: EntryId, unit: UnitName, live: UnitLive) -> None:
    """Somebody changed something: what failed before is tried at once."""
    memory = draft.unit_memory(entry, unit)
    if memory is not None and (memory.deaths or memory.unstartable):
        draft.remember(entry, unit, replace(memory, deaths=0, unstartable=False))
    if live.retry_ms is not None:
        draft.set_unit(entry, unit, replace(live, retry_ms=None))
