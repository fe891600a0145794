"""In which order roles are placed: a role waits for those whose machines its own hang on.

A role waits for a provider if one of its requirements reads the provider's export, and a `count`
role if what it reads of the provider can only be read beside it. Roles that wait for each other
are not placed. A provider that is placed by `count` waits for readers whose machines are given;
where the reader is placed by `count` too, the provider goes first, to where the reader fits.
"""

from keyplane.model.fleet import Strategy
from keyplane.model.module import Reach, Scope
from keyplane.planner import compiled, graph
from keyplane.planner.draft import Assignment, Draft, Offer, SlotSpec


def order(draft: Draft) -> list[list[Assignment]]:
    """Groups of assignments, each after those that it waits for; several in one: a circle."""
    waits = {name: _waits(draft, one) for name, one in draft.assignments.items()}
    for name, reader in draft.assignments.items():
        if waits[name] or not _is_every(reader):
            continue
        for slot in reader.slots:
            for offer in beside_only(draft, reader, slot):
                assert offer.assignment is not None
                if offer.assignment is not reader and not _is_every(offer.assignment):
                    waits[offer.assignment.id].add(name)
    edges = {name: sorted(others) for name, others in waits.items()}
    return [
        [draft.assignments[name] for name in component]
        for component in graph.components(list(draft.assignments), edges)
    ]


def waits_for_itself(draft: Draft, assignment: Assignment) -> bool:
    return assignment.id in _waits(draft, assignment)


def candidates(draft: Draft, reader: Assignment, slot: SlotSpec) -> list[Offer]:
    """The offers that the slot may come to, whatever the machines; by bind, siblings, all."""
    said = reader.bind.get(slot.name)
    if said is not None:
        offers = draft.offers_bound(slot.interface, said)
    else:
        siblings = [
            offer
            for offer in draft.offers_of(slot.interface, reader.instance)
            if offer.assignment is not reader
        ]
        offers = siblings or draft.offers.get(slot.interface, [])
    return [offer for offer in offers if offer.assignment is not None]


def beside_only(draft: Draft, reader: Assignment, slot: SlotSpec) -> list[Offer]:
    """Those of the candidates that, once they are chosen, can be read beside them only."""
    if slot.presence:
        return []
    bound = slot.name in reader.bind
    return [
        offer
        for offer in candidates(draft, reader, slot)
        if not offer.free
        and (
            bound
            if offer.scope is Scope.MACHINE
            else slot.reach is Reach.LOCAL or not offer.routable(slot.reads)
        )
    ]


def reads_in_requirements(assignment: Assignment) -> set[str]:
    """The slots that have to be bound before its requirements can be judged."""
    return {
        name
        for requirement in assignment.body.requirements
        for name in compiled.slots_asked(requirement)
    }


def _waits(draft: Draft, assignment: Assignment) -> set[str]:
    found: set[str] = set()
    for name in sorted(reads_in_requirements(assignment)):
        slot = assignment.slot(name)
        if slot is not None:
            found.update(offer.id for offer in candidates(draft, assignment, slot))
    if not _is_every(assignment):
        for slot in assignment.slots:
            found.update(
                offer.id
                for offer in beside_only(draft, assignment, slot)
                if offer.assignment is not assignment
            )
    return found


def _is_every(assignment: Assignment) -> bool:
    placement = assignment.placement
    return placement is not None and placement.strategy is Strategy.EVERY
