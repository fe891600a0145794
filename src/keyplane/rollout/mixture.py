"""What every machine is to be at a step: whole, of base and target together.

Entries of steps that were sent are the target's; those of later steps stay as they are in the
base, and an entry that a later step removes is still there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout import grants
from keyplane.rollout.permits import Guard, Guards
from keyplane.rollout.planned import MixedEntry, Planned
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Entries, and the bytes of the grants that neither plan has."""

    entries: Mapping[EntryId, Planned]
    contents: Mapping[Digest, bytes] = field(default_factory=dict[Digest, bytes])
    guards: Guards = field(default_factory=dict[str, Guard])
    """The roles of which some members have to stay up."""

    def by_machine(
        self, machines: Collection[MachineName]
    ) -> dict[MachineName, dict[EntryId, Planned]]:
        """Of these. A machine without an entry has no row."""
        asked = frozenset(machines)
        here = sorted(entry for entry in self.entries if split_entry(entry)[2] in asked)
        found: dict[MachineName, dict[EntryId, Planned]] = {}
        for entry in here:
            found.setdefault(split_entry(entry)[2], {})[entry] = self.entries[entry]
        return found


def mix(  # noqa: PLR0913, PLR0917  # both ends, and how far it is between them
    base: Mapping[EntryId, Planned],
    target: Mapping[EntryId, Planned],
    steps: Sequence[Step],
    sent: int,
    contents: Mapping[Digest, bytes],
    back: Mapping[EntryId, Refuge] | None = None,
) -> Mixture:
    """The mixture once so many steps were sent; `contents` has the grants of both plans.

    Those of `back` are what their refuges say.
    """
    entries: dict[EntryId, Planned] = dict(target)
    for step in steps[sent:]:
        for entry in step.activated:
            del entries[entry]
        for entry in (*step.changed, *step.live, *step.removed):
            entries[entry] = base[entry]
    made: dict[Digest, bytes] = {}
    waiting = {entry for step in steps[sent:] for entry in step.tightened}
    switched = {entry for step in steps[:sent] for entry in step.switched}
    for entry in sorted(waiting & switched):
        entries[entry] = _widened(base[entry], target[entry], contents, made)
    for entry, refuge in (back or {}).items():
        entries.pop(entry, None)
        if refuge.planned is not None:
            entries[entry] = refuge.planned
    return Mixture(entries=entries, contents=made)


def _widened(
    base: Planned, target: Planned, contents: Mapping[Digest, bytes], made: dict[Digest, bytes]
) -> MixedEntry:
    merged = dict(target.grants)
    for path, digest in target.grants.items():
        if path in base.grants:
            both = grants.merge(base.grants[path], digest, contents)
            merged[path] = both.digest
            if both.content is not None:
                made[both.digest] = both.content
    return MixedEntry(entry=target.entry, grants=merged, udp=target.udp)


def mix_edges(
    base_edges: Sequence[Edge], target_edges: Sequence[Edge], steps: Sequence[Step], sent: int
) -> tuple[Edge, ...]:
    """The edges of that mixture: each consumer's own, of the plan that it is of.

    Without those to a provider that had to go first: the step that removed it has said so.
    """
    gaps = {gap for step in steps[:sent] for gap in step.gaps}
    later = steps[sent:]
    of_base = {
        entry
        for step in later
        for entry in (*step.changed, *step.live, *step.removed, *step.rewired)
    }
    absent = {entry for step in later for entry in step.activated}
    return (
        *(
            edge
            for edge in base_edges
            if edge.consumer in of_base and (edge.consumer, edge.provider) not in gaps
        ),
        *(edge for edge in target_edges if edge.consumer not in of_base | absent),
    )
