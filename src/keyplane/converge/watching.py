"""When the health of what runs is looked at next. What is made of it is `health`'s to say."""

from collections.abc import Callable

from keyplane.converge import effects, health, permits
from keyplane.converge.draft import Draft
from keyplane.converge.frozen import replace
from keyplane.converge.state import UnitMemory
from keyplane.model.host import ProcessSpec
from keyplane.model.names import EntryId, UnitName

Spec = Callable[[Draft], ProcessSpec]


def watch(draft: Draft, entry: EntryId, name: UnitName, memory: UnitMemory, spec: Spec) -> None:
    """Look at what runs of a unit by its own check, and be back in time for the next look."""
    live = draft.unit_live(entry, name)
    if memory.health is None:
        settled_at = health.settled_at(live, memory)
        if draft.now < settled_at:
            draft.wake(entry, settled_at)
        return
    check = memory.health

    def probe() -> effects.Probe:
        of = replace(spec(draft), digest=memory.digest)
        return effects.Probe(spec=of, health=check, pid=memory.pid)

    draft.checks.setdefault(entry, []).append(probe)
    if not draft.busy(effects.probe_resource(entry, name)):
        if draft.now >= live.probe_ms:
            draft.attempt(entry, probe())
        else:
            draft.wake(entry, live.probe_ms, to_check=True)


def watch_on(draft: Draft, entry: EntryId, name: UnitName, spec: Spec) -> None:
    """Watch what runs on until its stop is permitted: whether it is well decides of others."""
    memory = draft.unit_memory(entry, name)
    if memory is None or not permits.awaits(draft, entry):
        return
    if draft.unit_live(entry, name).of == memory.digest:
        watch(draft, entry, name, memory, spec)
