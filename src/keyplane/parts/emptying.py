"""What stands on a machine, and how it gets away from there: what `drain` and `machine remove` say."""

from collections.abc import Iterable, Iterator, Sequence

from keyplane.model.fleet import Fleet, Placement, Strategy
from keyplane.model.names import EntryId, MachineName, split_entry


def on(entries: Iterable[EntryId], machine: MachineName) -> list[EntryId]:
    return sorted(entry for entry in entries if split_entry(entry)[2] == machine)


def drained(fleet: Fleet, machine: MachineName, here: Sequence[EntryId]) -> tuple[str, str]:
    """What a drain is to do to what is there, and what it did."""
    moves = [entry for entry in here if _by_count(_placement(fleet, entry))]
    stays = [entry for entry in here if entry not in moves]
    if moves:
        will = f"what is placed on {machine} by count will go elsewhere: {', '.join(moves)}"
        said = f"what is placed on {machine} by count goes elsewhere"
    else:
        will = f"nothing is placed on {machine} by count, and nothing new will be"
        said = f"nothing is placed on {machine} by count, and nothing new is"
    if stays:
        will += (
            f"; what is placed there otherwise will stay: {', '.join(stays)} "
            f"(`keyplane unassign INSTANCE {machine}`, or edit its placement)"
        )
    return will, said


def ways(fleet: Fleet, machine: MachineName, here: Sequence[EntryId]) -> Iterator[str]:
    """What helps before the machine is removed, for each kind of placement that it has."""
    by_count = [entry for entry in here if _by_count(_placement(fleet, entry))]
    if by_count:
        yield f"`keyplane drain {machine}` moves {', '.join(by_count)} elsewhere"
    with_it: list[EntryId] = []
    for entry in here:
        placement = _placement(fleet, entry)
        role = entry.rpartition("@")[0]
        if placement is None or _by_count(placement):
            continue  # what was implied goes with what needs it
        if placement.machines is None:
            with_it.append(entry)
            continue
        yield (
            f"`keyplane assign {role} MACHINE` has {role} elsewhere too, and "
            f"`keyplane unassign {role} {machine}` takes it from here"
        )
    if with_it:
        where = "on all machines, or by their tags"
        yield (
            f"{', '.join(with_it)}: placed {where}, so no drain moves it; after `keyplane drain "
            f"{machine}` it goes with the machine"
        )
    yield f"`keyplane machine remove {machine} --lost` if it will not be back"


def _placement(fleet: Fleet, entry: EntryId) -> Placement | None:
    instance, role, _ = split_entry(entry)
    found = fleet.instances.get(instance)
    return None if found is None else found.placement.get(role)


def _by_count(placement: Placement | None) -> bool:
    return placement is not None and placement.strategy is Strategy.COUNT
