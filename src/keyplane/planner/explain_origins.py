"""Where an input of a key comes from, and which of its sources moved since an earlier plan.

The documents of the earlier plan are gone; its values are there. A value is a template of what
its sources give, so the old value is read along the template: what stands at a source's place is
what the source gave then. Where the old value does not fit, the text of the module is what moved.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from keyplane.documents.references import Reference
from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Json, Lifecycle, Reach
from keyplane.model.plan import Plan
from keyplane.planner import canonical, terms
from keyplane.planner.draft import ANY, Assignment, Draft, Target
from keyplane.planner.looks import DEPTH_MAX
from keyplane.planner.scope import Scope
from keyplane.planner.terms import Tree

_SEGMENTS_MAX = 10_000
"""Of one value. Exports that read each other could make any number."""

Chain = tuple[str, ...]
"""From what is nearer to the value to what a person, a machine or the planner said."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part of a text that one source gives."""

    chain: Chain
    text: str


Segments = list[str | Leaf]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A role on a machine, as it is reached from the value."""

    assignment: Assignment
    machine: str
    above: Chain = ()
    reader: "Place | None" = None
    """Who reads the export that is looked at, through which slot."""
    slot: str = ""
    active: frozenset[str] = frozenset()

    @property
    def entry(self) -> str:
        return f"{self.assignment.prefix}{self.machine}"


class Origins:
    """What the values of a plan are made of, beside what they were."""

    def __init__(self, draft: Draft, old: Plan, new: Plan) -> None:
        self._draft = draft
        self._old = old
        self._new = new
        self._bound_old = _bound(old)
        self._bound_new = _bound(new)

    def moved(self, place: Place, tree: Tree, old: Json, new: Json, path: str) -> list[Chain]:
        """The sources of a value that moved; `path` is where the role says it."""
        found = dict.fromkeys(self._moved(place, tree, old, new))
        return list(found) or [self.module_text(place, path)]

    def module_text(self, place: Place, path: str) -> Chain:
        role = place.assignment
        return (*place.above, f"{role.module.file}: roles.{role.role_name}.{path}")

    def rebound(self, entry: str, slot: str) -> str | None:
        """How the binding of a slot moved, if it did."""
        if entry not in self._old.entries:
            return None
        was, now = self._bound_old.get((entry, slot), []), self._bound_new.get((entry, slot), [])
        if was == now:
            return None
        return f"uses.{slot}: {_listed(was, now)} → {_listed(now, was)}"

    def slots_to(self, entry: str, provider: str) -> list[str]:
        """The slots that are or were bound to a provider."""
        both = (*self._bound_old.items(), *self._bound_new.items())
        return sorted({slot for (name, slot), ids in both if name == entry and provider in ids})

    def instead_of(self, entry: str, provider: str) -> set[str]:
        """What the slots that are or were bound to a provider are bound to now."""
        slots = self.slots_to(entry, provider)
        return {one for slot in slots for one in self._bound_new.get((entry, slot), ())}

    def port(self, place: Place, listen: str) -> Leaf:
        name = f"{place.assignment.id}/{listen}"
        port = self._draft.ports.get(place.machine, {}).get(name)
        chain = (*place.above, f"allocations.ports.{place.machine}.{name}")
        return Leaf(chain, "" if port is None else str(port))

    def _moved(self, place: Place, tree: Tree, old: Json, new: Json) -> Iterator[Chain]:
        if old == new:
            return
        if terms.is_text(tree):
            yield from self._moved_text(place, tree, old)
        elif is_table(tree) and is_table(old) and is_table(new):
            for name, item in tree.items():
                yield from self._moved(place, item, old.get(name), new.get(name))
        elif is_list(tree) and is_list(old) and is_list(new) and len(tree) == len(old) == len(new):
            for item, was, now in zip(tree, old, new, strict=True):
                yield from self._moved(place, item, was, now)

    def _moved_text(self, place: Place, parts: terms.Parts, old: Json) -> Iterator[Chain]:
        shifts = list(self._shifts(place, parts))
        if shifts:
            yield from shifts
            return
        found = (one for part in parts for one in self._segments(place, part))
        segments = _joined(itertools.islice(found, _SEGMENTS_MAX))
        if is_table(old) and isinstance(old.get("template"), str):
            old = old["template"]
        if is_table(old) and is_table(old.get("hole")):
            hole: Mapping[str, Json] = old["hole"]
            end = f"facts.{hole['machine']}.{hole['fact']}"
            yield from (
                one.chain for one in segments if isinstance(one, Leaf) and one.chain[-1] == end
            )
            return
        if old is None:
            return
        was = read_along(canonical.text(old), segments)
        if was is None:
            yield from self._choices(place, parts)
            return
        leaves = [one for one in segments if isinstance(one, Leaf)]
        yield from (leaf.chain for leaf, text in zip(leaves, was, strict=True) if text != leaf.text)

    def _shifts(self, place: Place, parts: Iterable[object]) -> Iterator[Chain]:
        """Slots that are bound elsewhere now, and exports with another lifecycle."""
        for part in parts:
            if not isinstance(part, Reference) or not part.path:
                continue
            if part.root in {"results", "bound"}:
                other = self.rebound(place.entry, part.path[0])
                if other is not None:
                    yield (*place.above, other)
                    continue
            if part.root == "results":
                for target in self._targets(place, part):
                    yield from self._retagged(place, target, part.path[-1])

    def _retagged(self, place: Place, target: Target, export: str) -> Iterator[Chain]:
        name = f"{target.offer.id}/provides/{target.offer.provide}/{export}"
        was, now = self._old.exports.get(name), self._new.exports.get(name)
        if was is not None and now is not None and was.lifecycle != now.lifecycle:
            yield (*place.above, f"{name}: {was.lifecycle} → {now.lifecycle}")

    def _choices(self, place: Place, parts: Iterable[object]) -> Iterator[Chain]:
        """The settings by which a provider chooses the variant of an export, if it has several."""
        for part in parts:
            if not isinstance(part, Reference) or part.root != "results" or not part.path:
                continue
            for target in self._targets(place, part):
                provider = target.offer.assignment
                if provider is None:
                    continue
                inner = self._inside(place, target, part)
                exports = provider.body.exports.get(target.offer.provide, {})
                variants = exports.get(part.path[-1], ())
                names = {name for one in variants for name in one.authored.when}
                yield from ((*inner.above, _setting(inner, name)) for name in sorted(names))

    def _segments(self, place: Place, part: object) -> Iterator[str | Leaf]:
        if not isinstance(part, Reference):
            yield canonical.text(part)
            return
        match part.root, part.path:
            case "settings", (name,) if name in place.assignment.settings:
                text = canonical.text(place.assignment.settings[name])
                yield Leaf((*place.above, _setting(place, name)), text)
            case "alloc", ("ports", name):
                yield self.port(place, name)
            case "machine", ("address",):
                yield self._address(place, place.machine)
            case "machine", ("facts", _, *_):
                name = ".".join(part.path[1:])
                value = self._draft.fact(place.machine, name)
                chain = (*place.above, f"facts.{place.machine}.{name}")
                yield Leaf(chain, "" if value is None else canonical.text(value))
            case "bound", (_, "address"):
                for target in self._targets(place, part):
                    yield self._address(place, target.machine or place.machine)
            case "consumer", path if place.reader is not None:
                yield from self._consumer(place.reader, place, path)
            case "results", _:
                yield from self._results(place, part)
            case _:
                yield self._text(place, part)

    def _address(self, place: Place, machine: str) -> Leaf:
        address = self._draft.fleet.machines[machine].address
        return Leaf((*place.above, f"machines.{machine}.address"), address)

    def _text(self, place: Place, reference: Reference) -> str:
        """What the names of entry and machine give: the same for as long as the entry is."""
        found = Scope.at(self._draft, place.assignment, place.machine).look(reference)
        return terms.written(found.parts)

    def _consumer(self, reader: Place, place: Place, path: Sequence[str]) -> Iterator[str | Leaf]:
        match path:
            case ("instance",):
                yield reader.assignment.instance
            case ("role",):
                yield reader.assignment.role_name
            case ("machine",):
                yield reader.machine
            case ("login",):
                yield reader.assignment.instance.replace("-", "_")
            case ("request", name):
                tree = reader.assignment.compiled.requests.get(place.slot, {}).get(name, "")
                above = (*place.above, f"uses.{place.slot}.request.{name}")
                asking = replace(reader, above=above, active=place.active)
                for part in tree if terms.is_text(tree) else (tree,):
                    yield from self._segments(asking, part)
            case _:
                yield ""

    def _results(self, place: Place, reference: Reference) -> Iterator[str | Leaf]:
        targets = self._targets(place, reference)
        if not targets or len(place.active) >= DEPTH_MAX:
            # Something has to be given each time: what is given is counted.
            yield ""
            return
        for number, target in enumerate(targets):
            if number:
                yield " "
            export = target.offer.exports.get(reference.path[-1])
            inner = self._inside(place, target, reference)
            if export is None or inner.above[-1] in place.active:
                yield ""
            elif export.lifecycle is Lifecycle.DYNAMIC:
                yield str(reference)
            elif target.offer.assignment is None:
                said = f"{target.offer.id.replace(':', 's.')}.exports.{export.name}"
                yield Leaf((*inner.above, said), _literal(export.value))
            elif export.fact is not None:
                value = self._draft.fact(inner.machine, export.fact)
                chain = (*inner.above, f"facts.{inner.machine}.{export.fact}")
                yield Leaf(chain, "" if value is None else canonical.text(value))
            else:
                value = export.value
                for part in value if terms.is_text(value) else (value,):
                    yield from self._segments(inner, part)

    def _inside(self, place: Place, target: Target, reference: Reference) -> Place:
        """The provider's place, as the reader comes to it."""
        offer, machine = target.offer, target.machine or place.machine
        where = "" if offer.assignment is None else f"@{machine}"
        hop = f"{offer.id}{where}/provides/{offer.provide}/{reference.path[-1]}"
        return Place(
            assignment=offer.assignment or place.assignment,
            machine=machine,
            above=(*place.above, hop),
            reader=place,
            slot=reference.path[0],
            active=place.active | {hop},
        )

    def _targets(self, place: Place, reference: Reference) -> list[Target]:
        """The placements whose export a reference reads, in the order in which it joins them."""
        slot = place.assignment.slot(reference.path[0])
        binding = (
            None if slot is None else self._draft.lookup(place.assignment, slot, place.machine)
        )
        if slot is None or binding is None:
            return []
        if slot.reach is not Reach.ALL:
            return [binding.targets[0]]
        members = Scope.at(self._draft, place.assignment, place.machine).members(binding)
        wanted = reference.path[1] if len(reference.path) == 3 else ANY
        return [one for name, one in members.items() if wanted in ("*", name)]


def read_along(text: str, segments: Segments) -> list[str] | None:
    """What stands in a text at the place of each leaf; None where the literals don't fit.

    A leaf ends where the literal after it begins for the first time; two with nothing between
    them cannot be told apart: the first is taken to have the length that it has now.
    """
    found: list[str] = []
    at = 0
    for number, one in enumerate(segments):
        if isinstance(one, str):
            if not text.startswith(one, at):
                return None
            at += len(one)
            continue
        after = segments[number + 1] if number + 1 < len(segments) else None
        if after is None:
            end = len(text)
        elif isinstance(after, str):
            last = number + 2 == len(segments)
            end = text.rfind(after, at) if last else text.find(after, at)
        else:
            end = min(at + len(one.text), len(text))
        if end < 0:
            return None
        found.append(text[at:end])
        at = end
    return found if at == len(text) else None


def _joined(segments: Iterable[str | Leaf]) -> Segments:
    """The same with adjoining literals made one, and empty ones left out."""
    found: Segments = []
    for one in segments:
        if isinstance(one, str) and found and isinstance(found[-1], str):
            found[-1] += one
        elif one != "":
            found.append(one)
    return found


def _setting(place: Place, name: str) -> str:
    return f"settings.{place.assignment.role_name}.{name}"


def _literal(value: Tree) -> str:
    return terms.written(value) if terms.is_text(value) else canonical.text(value)


def _bound(plan: Plan) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for edge in plan.edges:
        found.setdefault((edge.consumer, edge.slot), []).append(edge.provider)
    return {key: sorted(providers) for key, providers in found.items()}


def _listed(some: Sequence[str], others: Sequence[str]) -> str:
    """Those that the others are not, and "nothing" for none at all."""
    own = [one for one in some if one not in others]
    return ", ".join(own) or (f"{len(some)} the same" if some else "nothing")
