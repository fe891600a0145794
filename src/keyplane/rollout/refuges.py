"""Which entries have a refuge: of what one rollout leaves, and of what the next can go back to.

A rollout begins from what is declared, its base, and its difference is told against that. Some of
the base may be what an earlier one sent and nobody saw well. To go back to that is to go back to
what failed: such an entry goes back to what it was before the earlier one, through any number of
rollouts that took over from each other.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from keyplane.model.names import EntryId, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout import claims, gate, returning
from keyplane.rollout.permits import role_of
from keyplane.rollout.planned import MixedEntry, Planned
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.state import Phase, State
from keyplane.rollout.volumes import Transfers

Refuges = Mapping[EntryId, Refuge]


def left(
    state: State, base: Mapping[EntryId, Planned], unproven: Collection[EntryId]
) -> dict[EntryId, Refuge]:
    """Of what a rollout from that base leaves `unproven`.

    None has one whose machine it went on without: others may have come to need what it is now.
    """
    came = state.sent if state.phase is Phase.DONE else min(state.step, state.sent)
    moving = frozenset[EntryId]()
    if state.back:
        came = min(state.step, state.furthest - 1)
        # What is on its way back is not proven either, and has nothing better to go back to.
        moving = frozenset((*returning.entries(state), *returning.unpassed(state)))
    elif state.sent > state.step:
        moving = frozenset(state.steps[state.step].switched)
    passed = {e for step in state.steps[:came] for e in (*step.switched, *step.awaited)}
    gone = {role_of(entry) for step in state.steps[: state.sent] for entry in step.removed}
    found: dict[EntryId, Refuge] = {}
    for entry in sorted(set(unproven) - passed):
        if entry in state.refuges:
            found[entry] = state.refuges[entry]
        elif entry in moving and (entry not in state.unproven or _was_well(state, entry)):
            if entry in base:
                found[entry] = _of(state, entry, base[entry])
            elif role_of(entry) not in gone and _was_absent(state, entry):
                found[entry] = Refuge(planned=None)
    return found


def _of(state: State, entry: EntryId, planned: Planned) -> Refuge:
    return Refuge(
        planned=MixedEntry(entry=planned.entry, grants=planned.grants, udp=planned.udp),
        edges=tuple(edge for edge in state.edges if edge.consumer == entry),
        was_ill=gate.was_ill(state, entry),
    )


def _was_well(state: State, entry: EntryId) -> bool:
    """By itself, though the step that sent it did not pass."""
    report = state.before.get(split_entry(entry)[2])
    said = None if report is None else report.entries.get(entry)
    return said is not None and said.key == state.former.get(entry) and gate.is_sound(said)


def _was_absent(state: State, entry: EntryId) -> bool:
    """A lost inventory does not know of what runs: only the machine's word tells that it did not."""
    report = state.before.get(split_entry(entry)[2])
    return report is not None and entry not in report.entries


def usable(
    refuges: Refuges,
    base: Mapping[EntryId, Planned],
    base_edges: Sequence[Edge],
    transfers: Transfers,
) -> dict[EntryId, Refuge]:
    """Those that can be had, all together, with everything else as the base has it.

    Data that moves, or that would be left without its entry, keeps who has it where it is.
    """
    tied = {*transfers.gives, *transfers.takes}
    found = {
        entry: refuge
        for entry, refuge in sorted(refuges.items())
        if entry in base
        and entry not in tied
        and (refuge.planned is not None or not base[entry].entry.volumes)
    }
    while amiss := {*_unprovided(found, base, base_edges), *_clashing(found, base)}:
        found = {entry: refuge for entry, refuge in found.items() if entry not in amiss}
    return found


def _unprovided(
    refuges: Refuges, base: Mapping[EntryId, Planned], base_edges: Sequence[Edge]
) -> Iterable[EntryId]:
    """Those by which a consumer would have no provider."""
    gone = {entry for entry, refuge in refuges.items() if refuge.planned is None}
    for entry, refuge in refuges.items():
        ends = [EntryId(edge.provider) for edge in refuge.edges]
        if any(provider not in base or provider in gone for provider in ends):
            yield entry
    for edge in base_edges if gone else ():
        if edge.provider in gone and edge.consumer not in refuges:
            yield EntryId(edge.provider)


def _clashing(refuges: Refuges, base: Mapping[EntryId, Planned]) -> Iterable[EntryId]:
    """Those that would hold what another one of their machine holds."""
    machines = {split_entry(entry)[2] for entry in refuges}
    holders: dict[tuple[str, str], list[EntryId]] = {}
    for entry in sorted(base):
        machine = split_entry(entry)[2]
        refuge = refuges.get(entry)
        planned = base[entry] if refuge is None else refuge.planned
        if machine in machines and planned is not None:
            for claim in claims.claims(planned):
                holders.setdefault((machine, claim), []).append(entry)
    for (_, claim), entries in holders.items():
        for entry in entries if len(entries) > 1 else ():
            if entry in refuges and claim not in claims.claims(base[entry]):
                yield entry
