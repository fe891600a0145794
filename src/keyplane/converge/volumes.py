"""What is done with an entry's volumes by order: saved, given away, taken from elsewhere.

While an order is carried out nothing of the entry runs. Data that was given away is an old copy
from then on: the entry does not start on it again, unless a later order says so.
"""

from collections.abc import Mapping

from keyplane.converge import effects, units
from keyplane.converge.draft import Draft, Standing
from keyplane.converge.events import EffectDone
from keyplane.converge.frozen import replace
from keyplane.converge.state import VolumesMemory, Wanted
from keyplane.model.declaration import SaveOrder, TakeOrder
from keyplane.model.host import PathKind
from keyplane.model.names import EntryId
from keyplane.model.occurrence import Cause
from keyplane.model.volumes import OldCopy, Saved, VolumesReport

_resource = effects.volume_resource


def converge(draft: Draft, entry: EntryId, wanted: Wanted, standing: Standing) -> bool:
    """Carry out what was ordered; True once paths and units may be made as declared."""
    save, take = wanted.declared.save, wanted.declared.take
    if save is None and take is None and not draft.copies:
        return True
    memory = draft.volumes.get(entry, VolumesMemory())
    if take is not None and take.number > max(memory.taken, _newest_copy(draft, wanted)):
        if not _is_down(draft, entry, standing) or not _take(draft, entry, wanted, take, standing):
            return False
        memory = draft.volumes[entry]
    if save is not None and save.number > max(memory.saved, memory.taken if save.gives else 0):
        why = None if save.gives else Cause.BACKUP
        if not _is_down(draft, entry, standing, why) or not _save(draft, entry, save, standing):
            return False
        memory = draft.volumes[entry]
    if not _given(draft, entry, wanted):
        return True
    if _is_down(draft, entry, standing):
        _tell_given(draft, wanted, standing)
    return False


def _is_down(draft: Draft, entry: EntryId, standing: Standing, why: Cause | None = None) -> bool:
    """Stop all that runs of it; True once nothing does. `why` is told of the start after it."""
    down = True
    for unit in units.known(draft, entry):
        memory = draft.unit_memory(entry, unit)
        if why is not None and memory is not None and memory.up and memory.why is None:
            draft.remember(entry, unit, replace(memory, why=why))
        down = units.stop_all(draft, entry, unit, standing) and down
    return down


def _take(
    draft: Draft, entry: EntryId, wanted: Wanted, take: TakeOrder, standing: Standing
) -> bool:
    memory = draft.volumes.get(entry, VolumesMemory())
    if take.keeps:
        for path in _volumes(wanted):
            draft.copies.pop(path, None)
    elif take.contents is None:
        standing.waits.append(f"waits for its data from {take.source}")
        return False
    else:
        took = memory.took if memory.taking == take.number else ()
        missing = [path for path in sorted(take.contents) if path not in took]
        for path in missing:
            spec = wanted.paths.get(path)
            effect = effects.TakeVolume(
                entry=entry,
                path=path,
                digest=take.contents[path],
                number=take.number,
                mode=None if spec is None else spec.mode,
                owner=None if spec is None else spec.owner,
            )
            _attempt(draft, entry, effect, standing)
        if missing:
            return False
    draft.volumes[entry] = replace(memory, taken=take.number, taking=0, took=())
    return True


def _save(draft: Draft, entry: EntryId, save: SaveOrder, standing: Standing) -> bool:
    memory = draft.volumes.get(entry, VolumesMemory())
    parts = _parts(memory, save.number)
    missing = [path for path in save.paths if path not in parts]
    for path in missing:
        effect = effects.SaveVolume(entry=entry, path=path, number=save.number, gives=save.gives)
        _attempt(draft, entry, effect, standing)
    if missing:
        return False
    draft.volumes[entry] = replace(
        memory, saved=save.number, volumes=parts, problem="", saving=0, parts={}
    )
    if save.gives:
        for path in save.paths:
            draft.copies[path] = OldCopy(
                entry=entry,
                volume=path,
                since_ms=draft.wall_ms + draft.now,
                number=save.number,
                why=f"handed over to {save.to}",
            )
    return True


def _newest_copy(draft: Draft, wanted: Wanted) -> int:
    """The number of the last order by which what stands at its volumes was given away; or 0."""
    numbers = (copy.number for path in _volumes(wanted) if (copy := draft.copies.get(path)))
    return max(numbers, default=0)


def _parts(memory: VolumesMemory, number: int) -> Mapping[str, Saved]:
    """What was saved by now for that order."""
    return memory.parts if memory.saving == number else {}


def _attempt(draft: Draft, entry: EntryId, effect: effects.OfVolume, standing: Standing) -> None:
    under_way = draft.attempt(entry, effect)
    retry = draft.retries.get(effects.attempt(effect))
    standing.blame(f"volume {effect.path}", retry, under_way=under_way)


def _given(draft: Draft, entry: EntryId, wanted: Wanted) -> int:
    """The number of the order by which its data was given away; 0 if it was not, or is back."""
    save, take = wanted.declared.save, wanted.declared.take
    memory = draft.volumes.get(entry, VolumesMemory())
    number = _newest_copy(draft, wanted)
    if save is not None and save.gives and save.number <= memory.saved:
        number = max(number, save.number)
    kept = 0 if take is None else take.number
    return 0 if max(kept, memory.taken) > number else number


def _tell_given(draft: Draft, wanted: Wanted, standing: Standing) -> None:
    save = wanted.declared.save
    copy = next((c for p in _volumes(wanted) if (c := draft.copies.get(p))), None)
    why = "given away" if copy is None else copy.why
    if save is not None and save.gives:
        standing.given = f"its data was {why}"
    else:
        standing.failures.append(
            f"its data was {why}, and what is left here is an old copy: it does not start on that; "
            "`keyplane backups` says what there is"
        )


def _volumes(wanted: Wanted) -> list[str]:
    return [path for path, spec in wanted.paths.items() if spec.keep]


def done(draft: Draft, effect: effects.OfVolume, event: EffectDone) -> None:
    """One volume was saved, or has become what it was to be."""
    memory = draft.volumes.get(effect.entry, VolumesMemory())
    number, path = effect.number, effect.path
    if isinstance(effect, effects.SaveVolume):
        if event.saved is None or memory.saved >= number:
            return
        parts = {**_parts(memory, number), path: event.saved}
        draft.volumes[effect.entry] = replace(memory, saving=number, parts=parts)
        return
    took = memory.took if memory.taking == number else ()
    draft.volumes[effect.entry] = replace(memory, taking=number, took=(*took, path))
    draft.disown(path)
    draft.forget_below(path)
    if event.path is not None:
        draft.see(path, event.path)
    former = draft.copies.pop(path, None)
    if event.kept is not None:
        draft.copies[event.kept] = OldCopy(
            entry=effect.entry,
            volume=path,
            since_ms=draft.wall_ms + draft.now,
            number=number,
            why="replaced when its data came anew" if former is None else former.why,
        )


def failed(draft: Draft, effect: effects.OfVolume, cause: str) -> None:
    """A save that keeps its entry from running is not tried for long: it comes to nothing."""
    if isinstance(effect, effects.SaveVolume) and not effect.gives:
        memory = draft.volumes.get(effect.entry, VolumesMemory())
        draft.volumes[effect.entry] = replace(
            memory, saved=effect.number, volumes={}, problem=cause, saving=0, parts={}
        )
        draft.clear([effects.attempt(effect)])


def forget_removed(draft: Draft) -> None:
    """Old copies that somebody has removed are none any more."""
    for path in list(draft.copies):
        seen = draft.seen.get(path)
        gone = seen is not None and seen.kind is PathKind.ABSENT
        if gone and draft.copies[path].entry not in draft.state.wanted:
            del draft.copies[path]


def told(draft: Draft, entry: EntryId, wanted: Wanted) -> VolumesReport | None:
    memory = draft.volumes.get(entry)
    given = _given(draft, entry, wanted)
    if memory is None and not given:
        return None
    memory = memory or VolumesMemory()
    return VolumesReport(
        saved=memory.saved,
        volumes=memory.volumes,
        problem=memory.problem,
        given=given,
        taken=memory.taken,
    )
