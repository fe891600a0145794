"""On which facts a plan hangs: where none of them is another, neither is the plan."""

from collections.abc import Iterator, Mapping, Sequence

from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.program import Family
from keyplane.planner.require import Requirements
from keyplane.planner.terms import OwnKind


def facts_asked(draft: Draft, every: Mapping[str, Sequence[Family]]) -> frozenset[tuple[str, str]]:
    """Machine and fact of each, and maybe of some on which nothing hangs."""
    found = {fact for notes in draft.noted.values() for fact in notes.facts}
    with draft.noting(("looking", "")):
        for assignment in draft.assignments.values():
            if assignment.body.requirements:
                found.update(Requirements(draft, assignment).asked(_pool(draft, assignment)))
    del draft.noted["looking", ""]
    for families in every.values():
        for family in families:
            found.update(
                (machine, name) for name in _own_facts(family) for machine in family.machines
            )
    return frozenset(found)


def _own_facts(family: Family) -> Iterator[str]:
    for own in (*family.owns, *family.states):
        if own.kind is OwnKind.FACT:
            yield own.name


def _pool(draft: Draft, assignment: Assignment) -> tuple[str, ...]:
    """Where it might be placed: a machine that nobody asks of adds nothing but its name."""
    placement = assignment.placement
    if placement is None or placement.machines is None:
        return tuple(draft.fleet.machines)
    return tuple(placement.machines)
