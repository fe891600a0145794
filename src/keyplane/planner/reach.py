"""What a change of values reaches: the roles that have to be derived again.

Where a change could move an entry, bind it otherwise or retag an export, nothing is bounded here:
then the fleet is planned as a whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from keyplane.model.module import Json
from keyplane.planner import compiled, exact, order, read, terms
from keyplane.planner.draft import Assignment, Draft, Offer
from keyplane.planner.program import Families, Family

ReadExport = tuple[Offer, str]


class Readers:
    """Who reads each export, as it is bound."""

    def __init__(self, draft: Draft, families: Families) -> None:
        self._draft = draft
        self._found: dict[ReadExport, set[str]] = {}
        for name, several in families.items():
            for family in several:
                for export in family.program.reads:
                    self._found.setdefault(export, set()).add(name)
        for name, assignment in draft.assignments.items():
            for slot in assignment.slots:
                if slot.count is not None:  # looks at each export of what it counts
                    for offer in draft.offers.get(slot.interface, []):
                        for export in offer.exports:
                            self._found.setdefault((offer, export), set()).add(name)

    def reached(self, roles: set[str], exports: Iterable[ReadExport]) -> bool:
        """Add the roles that the exports reach; whether placement hangs on none of them."""
        waiting = list(exports)
        while waiting:
            for name in self._found.get(waiting.pop(), ()):
                if name in roles:
                    continue
                assignment = self._draft.assignments[name]
                if order.reads_in_requirements(assignment):
                    return False
                roles.add(name)
                waiting += [
                    (offer, export)
                    for offer in assignment.offers
                    for export, said in offer.exports.items()
                    if any(compiled.slots_asked(said.value))
                ]
        return True


def evaluate_again(draft: Draft, assignment: Assignment) -> list[ReadExport] | None:
    """Settle and evaluate a role anew: the exports that may have another value than before.

    None where what it needs or offers is no longer the same.
    """
    before = _shape(assignment)
    settings, offers, body = assignment.settings, assignment.offers, assignment.body
    values = [{name: one.value for name, one in offer.exports.items()} for offer in offers]
    members = [step for step in draft.noted if step[0] == "members"] if assignment.role.impl else []
    for step in members:
        if step[1].startswith(f"{assignment.id} "):
            del draft.noted[step]
    assignment.by_members = {}
    assignment.sound = True
    read.evaluate_role(draft, assignment)
    if _shape(assignment) != before or order.reads_in_requirements(assignment):
        return None
    changed = {
        name
        for name in settings.keys() | assignment.settings.keys()
        if not exact.same(settings.get(name), assignment.settings.get(name))
    }
    if not exact.same(body.requirements, assignment.body.requirements):
        return None
    if any(_reads_settings(tree, changed) for tree in body.requirements):
        return None
    for offer, fresh in zip(offers, assignment.offers, strict=True):
        offer.exports = fresh.exports
    assignment.offers = offers
    return [
        (offer, name)
        for offer, was in zip(offers, values, strict=True)
        for name, export in offer.exports.items()
        if not exact.same(was[name], export.value)
        or _reads_settings(export.value, changed)
        or any(compiled.slots_asked(export.value))
    ]


def read_again(draft: Draft, name: str) -> list[ReadExport] | None:
    """Read an external anew; as `evaluate_again`."""
    external = draft.fleet.externals[name]
    offer = next(iter(draft.offers_of(external.interface, f"external:{name}")), None)
    fresh = read.read_external(draft, external)
    if offer is None or fresh is None or _offered(offer) != _offered(fresh):
        return None
    found = [
        (offer, export)
        for export, said in fresh.exports.items()
        if not exact.same(offer.exports[export].value, said.value)
    ]
    offer.exports, offer.external = fresh.exports, external
    return found


def pair(old: Sequence[Family], new: Sequence[Family]) -> dict[Family, list[str]] | None:
    """By new family: the machines whose entries say something else. None: or read something else.

    Both have the same machines.
    """
    by_machine: Mapping[str, Family] = (
        {} if len(old) == 1 else {name: one for one in old for name in one.machines}
    )
    alike: dict[tuple[Family, Family], bool] = {}
    found: dict[Family, list[str]] = {}
    for family in new:
        for machine in family.machines:
            was = old[0] if len(old) == 1 else by_machine[machine]
            both = was, family
            if both not in alike:
                if set(was.program.reads) != set(family.program.reads):
                    return None
                alike[both] = exact.same(was.program, family.program)
            if not alike[both]:
                found.setdefault(family, []).append(machine)
    return found


def _shape(assignment: Assignment) -> object:
    """All of an assignment that placement, binding and ports hang on, but for requirements."""
    return (
        assignment.failed,
        assignment.unitless,
        assignment.export_slots,
        [
            (one.name, one.interface, one.reach, one.reads, one.presence, one.follow, one.count)
            for one in assignment.slots
        ],
        [_offered(offer) for offer in assignment.offers],
    )


def _offered(offer: Offer) -> object:
    return (
        offer.provide,
        offer.interface,
        offer.scope,
        offer.follow,
        offer.credentials,
        [
            (name, one.type, one.lifecycle, one.access, one.fact, one.wrong)
            for name, one in offer.exports.items()
        ],
    )


def _reads_settings(tree: terms.Tree, names: set[str]) -> bool:
    return any(name in names for name in _settings_in(tree))


def _settings_in(tree: Json) -> Iterator[str]:
    for reference in terms.references_in(tree):
        if reference.root == "settings" and reference.path:
            yield reference.path[0]
