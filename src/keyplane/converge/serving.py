"""Whether a guarded entry is up, as its controller is told, and when its permit is over.

Decides no act: what may be stopped is said by `permits`.
"""

from keyplane.converge import effects, health, permits, processes, units
from keyplane.converge.draft import Draft, Standing
from keyplane.converge.state import UnitLive, UnitMemory, Wanted
from keyplane.model.declaration import DeclaredUnit, Member, UnitState
from keyplane.model.host import ObservedProcess
from keyplane.model.names import EntryId, UnitName


def settle(draft: Draft, entry: EntryId, standing: Standing) -> None:
    """Let go of a permit that is not needed any more: nothing is to be stopped, and it is up.

    One that is still asked for is asked anew where the entry is up, and was not, or the reverse.
    """
    permit = draft.permits.get(entry)
    if permit is None:
        return
    up = is_up(draft, entry)
    if standing.asks:
        if not permit.held and permit.up != up:
            permits.ask(draft, entry, up=up, since_ms=permit.since_ms)
    elif not standing.pending and (up or not permit.held):
        del draft.permits[entry]


def member(draft: Draft, entry: EntryId) -> Member | None:
    """What is told of it, so that the controller can decide."""
    permit = draft.permits.get(entry)
    if permit is None and not permits.is_guarded(draft, entry):
        return None
    return Member(
        up=is_up(draft, entry),
        permit=None if permit is None else permit.name,
        held=permit is not None and permit.held,
    )


def is_up(draft: Draft, entry: EntryId) -> bool:
    """Whether it serves: each unit that is to run does, and was healthy when last looked at.

    What runs may be what is to be replaced. Of an entry that is to go, anything that runs counts.
    """
    wanted = draft.state.wanted.get(entry)
    live = draft.live(entry)
    if wanted is None:
        return any(units.running(each) for each in live.units.values())
    if any(name not in wanted.declared.units for name, each in live.units.items() if _runs(each)):
        return _as_before(draft, entry, wanted)
    return all(
        declared.run_once or _serves(draft, entry, name, declared)
        for name, declared in wanted.units
    )


def _as_before(draft: Draft, entry: EntryId, wanted: Wanted) -> bool:
    """Units that are declared no more run still: those that are new need not, to serve as before."""
    return all(
        declared.run_once
        or not _runs(draft.unit_live(entry, name))
        or _serves(draft, entry, name, declared)
        for name, declared in wanted.units
    )


def _runs(live: UnitLive) -> bool:
    return bool(units.running(live))


def _serves(draft: Draft, entry: EntryId, name: UnitName, declared: DeclaredUnit) -> bool:
    live, memory = draft.unit_live(entry, name), draft.unit_memory(entry, name)
    flight = draft.in_flight.get(effects.unit_resource(entry, name))
    stopping = flight.digest if isinstance(flight, effects.StopProcess) else None
    found = [each for each in units.running(live) if each.digest != stopping]
    if memory is None:
        return False
    if not found:
        return processes.is_over(declared, memory) and memory.succeeded
    if any(each.digest == declared.digest for each in found):
        state = health.running_state(declared, live, memory, now=draft.now)
        if state is UnitState.HEALTHY or not declared.start_first:
            return state is UnitState.HEALTHY
    return any(
        _former_serves(draft, live, memory, each)
        for each in found
        if each.digest != declared.digest
    )


def _former_serves(
    draft: Draft, live: UnitLive, memory: UnitMemory, process: ObservedProcess
) -> bool:
    """The same of what is to be replaced: by its own check, as long as that is the one made."""
    if live.of != process.digest:
        return memory.former is not None and memory.former.digest == process.digest
    if live.unhealthy:
        return False
    has_check = memory.health is not None
    return live.was_healthy if has_check else draft.now >= live.since_ms + health.SETTLE_MS
