"""What is noted of units, and by which cause: a start is of what ended the run before it.

Called where facts are folded in (`processes`). Decides no act; a restart is counted here.
"""

from keyplane.converge import dynamic
from keyplane.converge.draft import Draft
from keyplane.converge.frozen import replace
from keyplane.converge.state import UnitMemory
from keyplane.model.declaration import DeclaredUnit, Restart
from keyplane.model.host import ObservedProcess
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.occurrence import Act, Cause

_BEGINS = (Cause.PERSON, Cause.REBOOT, Cause.ROLLOUT)
"""Causes of a start that goes on from nothing that ran."""


def started(draft: Draft, process: ObservedProcess) -> None:
    """Say what was started and why, and count it if it is a restart of what is declared."""
    memory = draft.unit_memory(process.entry, process.unit)
    if memory is None or memory.digest != process.digest or is_known(memory, process):
        return
    cause = memory.why or Cause.ROLLOUT
    again = memory.follows or (memory.starts > 0 and cause not in _BEGINS)
    act = Act.RESTART if again else Act.START
    draft.note(process.entry, process.unit, act, cause, f"pid {process.pid}")
    counted = again and memory.starts > 0 and cause is not Cause.BACKUP  # which somebody asked for
    draft.remember(
        process.entry,
        process.unit,
        replace(memory, why=None, follows=False, restarts=memory.restarts + counted),
    )


def failed(draft: Draft, entry: EntryId, unit: UnitName, memory: UnitMemory, cause: str) -> None:
    """A start that failed; one that fails over and over is told once for each cause."""
    if memory.deaths == 0 or memory.cause != cause:
        draft.note(entry, unit, Act.FAIL, memory.why or Cause.ROLLOUT, cause)


def found(draft: Draft, process: ObservedProcess, *, seen_before: bool) -> None:
    """A process that runs though its start was never told of."""
    memory = draft.unit_memory(process.entry, process.unit)
    if memory is not None and memory.digest == process.digest and is_known(memory, process):
        return
    cause = Cause.ADOPTION if seen_before else Cause.DRIFT
    draft.note(process.entry, process.unit, Act.ADOPT, cause, f"pid {process.pid}")


def is_known(memory: UnitMemory, process: ObservedProcess) -> bool:
    return memory.up and (memory.pid, memory.start_ticks) == (process.pid, process.start_ticks)


def why(process: ObservedProcess, *, is_over: bool) -> Cause:
    """Of an end that nobody here asked for, and so of the start that follows it."""
    if not by_itself(process):
        return Cause.REBOOT if process.rebooted else Cause.DRIFT
    return Cause.DONE if is_over else Cause.CRASH


def runs_on(declares: DeclaredUnit | None) -> bool:
    return declares is None or declares.restart is Restart.ALWAYS


def stopped(draft: Draft, entry: EntryId, unit: UnitName, digest: Digest, *, killed: bool) -> None:
    """A stop before a start that takes over is told by that start alone."""
    memory = draft.unit_memory(entry, unit)
    detail = "it did not end in its time, and was killed" if killed else ""
    by_person = entry in draft.stops
    is_told = by_person or killed or not _declares(draft, entry, unit)
    if is_told or dynamic.is_stopped(draft, entry, unit):
        cause = Cause.PERSON if by_person else Cause.ROLLOUT
        if not by_person and memory is not None and memory.digest == digest:
            cause = memory.why or cause
        draft.note(entry, unit, Act.STOP, cause, detail)
    if by_person and memory is not None:
        draft.remember(entry, unit, replace(memory, why=Cause.PERSON))


def after(former: UnitMemory | None, memory: UnitMemory) -> UnitMemory:
    """The memory of a first start, with what it follows."""
    if former is None or former.digest == memory.digest:
        return memory
    if former.why is Cause.PERSON:
        return replace(memory, why=Cause.PERSON)
    return replace(memory, follows=former.follows or former.starts > 0)


def by_itself(process: ObservedProcess) -> bool:
    is_told = process.exit_code is not None or process.exit_signal is not None
    return is_told and not process.lost


def asked(draft: Draft, process: ObservedProcess, memory: UnitMemory) -> Cause | None:
    """An end that somebody asked its shim for, though not this life of the agent; why, if known.

    A former life of it did for a rollout, or for a value; else a person, as `down --units` does.
    """
    wanted = draft.state.wanted.get(process.entry)
    declares = None if wanted is None else wanted.declared.units.get(process.unit)
    if memory.why is not None or (declares is not None and declares.digest != process.digest):
        return memory.why
    cause = Cause.ROLLOUT if declares is None else Cause.PERSON
    cause = Cause.REBOOT if process.rebooted else cause
    draft.note(process.entry, process.unit, Act.STOP, cause)
    return cause


def _declares(draft: Draft, entry: EntryId, unit: UnitName) -> bool:
    wanted = draft.state.wanted.get(entry)
    return wanted is not None and unit in wanted.declared.units
