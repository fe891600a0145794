"""What a reference stands for, seen from one role at one place.

The place is a machine, or "the entry's own machine": then what the machine gives is left as `Own`
parts, and one look serves all entries that are bound alike. Exports are resolved in the scope of
their provider and written into the reader's text; nothing that was written in is looked at again.
"""

from dataclasses import replace
from typing import Self

from keyplane.documents.references import Reference
from keyplane.documents.trees import is_list, is_table
from keyplane.model import places
from keyplane.model.interface import ValueType
from keyplane.model.module import Lifecycle, Reach
from keyplane.planner import canonical, scope_rows, settings, terms
from keyplane.planner.draft import ANY, Assignment, Binding, Draft, Export, SlotSpec, Target
from keyplane.planner.looks import (
    LOST,
    TEXT_MAX,
    TEXTS_MAX,
    Active,
    FactState,
    Judge,
    Seen,
    Term,
    strongest,
)
from keyplane.planner.terms import ADDRESS, NAME, Hole, Live, Lost, Own, OwnKind, Parts, Tree


class Scope:
    """One role as it is seen while its texts are resolved."""

    def __init__(self, draft: Draft, assignment: Assignment, seen: Seen) -> None:
        self.draft = draft
        self.assignment = assignment
        self.machine = seen.machine
        self.faults = seen.faults
        self._seen = seen

    @classmethod
    def at(cls, draft: Draft, assignment: Assignment, machine: str) -> Self:
        """The scope of one entry, with all that its machine gives."""
        return cls(draft, assignment, Seen(machine=machine, sample=machine))

    def fill(self, tree: Tree, judge: Judge, *, text: bool = False) -> Tree:
        """The tree with its references resolved; with `text` every leaf becomes a string."""
        if terms.is_text(tree):
            return self._fill_text(tree, judge, text=text)
        if is_table(tree):
            return {key: self.fill(item, judge, text=text) for key, item in tree.items()}
        if is_list(tree):
            return [self.fill(item, judge, text=text) for item in tree]
        return canonical.text(tree) if text and not isinstance(tree, str) else tree

    def look(self, reference: Reference) -> Term:
        """What the reference stands for; lost where it names nothing."""
        term = self._look(reference)
        holes = [part for part in term.parts if isinstance(part, Hole)]
        if any(isinstance(part, Lost) for part in term.parts):
            return term._replace(parts=(Lost(str(reference)),))
        if holes:
            hole = holes[0]
            parts = (Hole(hole.fact, hole.machine, hole.type, str(reference)),)
            return term._replace(parts=parts)
        if term.lifecycle is Lifecycle.DYNAMIC:
            return term._replace(
                parts=tuple(
                    replace(part, text=str(reference))
                    if isinstance(part, Live) and not part.text
                    else part
                    for part in term.parts
                )
            )
        return term

    def binding(self, slot: SlotSpec) -> Binding | None:
        return self.draft.lookup(self.assignment, slot, self.machine or self._seen.sample)

    def request(self, slot: str, name: str, active: Active) -> Parts:
        """What the role asks for under this name, or lost where that is refused."""
        tree = self.assignment.compiled.requests.get(slot, {}).get(name, (Lost(""),))
        seen = replace(self._seen, faults=[], active=active)
        scope = Scope(self.draft, self.assignment, seen)
        return _parts(scope.fill(tree, only_static))

    def export(self, slot: SlotSpec, target: Target, name: str) -> Term:
        """One export of one placement, as this role reads it."""
        export = target.offer.exports.get(name)
        if export is None:
            return LOST
        machine = self.machine if target.machine is None else target.machine
        provider = target.offer.assignment
        match export.lifecycle:
            case Lifecycle.DYNAMIC:
                live = Live(
                    provider=target.offer.id if provider is None else provider.prefix,
                    machine="" if provider is None else machine,
                    suffix=f"/provides/{target.offer.provide}/{name}",
                    reaction=f"{slot.name}.{name}",
                )
                return Term((live,), Lifecycle.DYNAMIC, (target,))
            case Lifecycle.PROBED:
                if provider is None or export.fact is None:
                    return LOST
                where = f"provides.{target.offer.provide}.exports.{name}"
                own = Own(OwnKind.FACT, export.fact, provider.id, export.type, where)
                part = self._fact(machine, own)
                return Term((part,), Lifecycle.PROBED, (target,))
            case Lifecycle.STATIC:
                return self._static(slot, target, export, machine)

    def _fill_text(self, parts: Parts, judge: Judge, *, text: bool) -> Tree:
        out: list[terms.Part] = []
        room = TEXT_MAX
        for part in parts:
            pieces = judge(part, self.look(part)) if isinstance(part, Reference) else (part,)
            room -= terms.length(pieces)
            if room < 0:
                scope_rows.too_long(self.draft, self.assignment.id, "a text", TEXT_MAX)
                return (Lost(terms.written(parts)),)
            out.extend(pieces)
        if not self._seen.active:
            known = self._seen.known
            known.room -= TEXT_MAX - room
            if known.room < 0:
                scope_rows.too_long(self.draft, self.assignment.id, "all texts", TEXTS_MAX)
                return (Lost(terms.written(parts)),)
        if len(parts) == 1 and len(out) == 1 and terms.is_value(out[0]):
            return canonical.text(out[0]) if text else out[0]
        joined = terms.joined(tuple(out))
        if len(joined) != 1:
            return joined or ""
        if terms.is_value(joined[0]):
            return canonical.text(joined[0])
        # The empty literal makes a text of a port or a fact that stands alone.
        return (joined[0], "") if text and isinstance(joined[0], Own) else joined

    def _static(self, slot: SlotSpec, target: Target, export: Export, machine: str | None) -> Term:
        offer = target.offer
        if not any(terms.texts_in(export.value, "")):
            return Term((export.value,), Lifecycle.STATIC, (target,))
        fact = terms.sole_fact(export.value)
        if fact is not None and offer.assignment is not None and not offer.free:
            where = f"provides.{offer.provide}.exports.{export.name}"
            own = Own(OwnKind.FACT, fact, offer.id, export.type, where)
            self.draft.notes.probed.add((offer.id, offer.provide, export.name))
            return Term((self._fact(machine, own),), Lifecycle.PROBED, (target,))
        mark = (offer.id, offer.provide, export.name, machine or "")
        place = (*mark, self.assignment.id, self.machine or "", slot.name)
        known, active = self._seen.known, self._seen.active
        found = known.terms.get(place)
        if found is not None:
            return found
        if mark in active or known.is_deep(active):
            known.cut += 1
            scope_rows.cut_off(self.draft, target, export.name, active, circle=mark in active)
            return LOST
        cut = known.cut
        found = self._resolved(
            slot,
            target,
            export,
            replace(self._seen, machine=machine, faults=[], active=active | {mark}),
        )
        if known.cut == cut:
            known.terms[place] = found
        return found

    def _resolved(self, slot: SlotSpec, target: Target, export: Export, seen: Seen) -> Term:
        """An export's value in its provider's scope."""
        offer = target.offer
        scope = _ProviderScope(self, slot, target, seen)
        parts = _parts(scope.fill(export.value, scope.judge))
        if scope.lifecycle is Lifecycle.PROBED:
            self.draft.notes.probed.add((offer.id, offer.provide, export.name))
        return Term(parts, scope.lifecycle, (target,))

    def _look(self, reference: Reference) -> Term:
        role = self.assignment
        match reference.root, reference.path:
            case "settings", (name,) if name in role.settings:
                return Term((role.settings[name],))
            case "results", (slot, *_):
                return self._results(reference, slot)
            case "alloc", ("ports", name) if name in role.role.listens:
                return self._port(name)
            case "machine", ("facts", *words) if any(words):
                own = Own(OwnKind.FACT, ".".join(words), role.id)
                part = self._fact(self.machine, own)
                return Term((part,), Lifecycle.PROBED)
            case "machine", (word,):
                return self._machine(word)
            case "self", (word,):
                return self._self(word)
            case "bound", (slot, "address"):
                return self._bound(reference, slot)
            case "credentials", (slot,):
                return self._credentials(reference, slot)
            case "state", (name,) if name in role.role.state:
                return Term((places.bucket_name(role.instance, role.role_name, name),))
            case "reads", (instance, other, bucket) if (
                f"{instance}:{other}/{bucket}" in role.role.reads
            ):
                return Term((places.bucket_name(instance, other, bucket),))
            case "secrets", (name,) if name in role.role.secrets:
                return Term((places.secret_path(role.instance, role.role_name, name),))
            case _:
                return LOST

    def _machine(self, word: str) -> Term:
        if word == "name":
            return Term((NAME if self.machine is None else self.machine,))
        if word != "address":
            return LOST
        if self.machine is None:
            return Term((ADDRESS,))
        return Term((self.draft.fleet.machines[self.machine].address,))

    def _self(self, word: str) -> Term:
        role = self.assignment
        match word:
            case "instance":
                return Term((role.instance,))
            case "role":
                return Term((role.role_name,))
            case "entry":
                return Term((role.prefix, NAME if self.machine is None else self.machine))
            case _:
                return LOST

    def _port(self, listen: str) -> Term:
        if self.machine is None:
            own = Own(OwnKind.PORT, listen, self.assignment.id)
            return LOST if own in self._seen.states else Term((own,))
        ports = self.draft.ports.get(self.machine, {})
        port = ports.get(f"{self.assignment.id}/{listen}")
        return LOST if port is None else Term((port,))

    def _fact(self, machine: str | None, own: Own) -> terms.Part:
        kind = (own.type or ValueType.STRING).value
        if machine is None:
            match self._seen.states.get(own):
                case None:
                    return own
                case FactState.NONE:
                    return Hole(own.name, None, kind)
                case FactState.WRONG:
                    return Lost("")
        value = self.draft.look_at_fact(machine, own.name)
        if value is None:
            return Hole(own.name, machine, kind)
        if own.type is not None and not settings.is_of(value, own.type):
            scope_rows.ill_typed_fact(self.draft, machine, own)
            return Lost("")
        return value

    def _results(self, reference: Reference, name: str) -> Term:
        slot = self.assignment.slot(name)
        if slot is None or slot.presence:
            return LOST
        binding = self.binding(slot)
        export = reference.path[-1]
        if slot.reach is not Reach.ALL:
            if binding is None or len(reference.path) != 2:
                return LOST
            return self.export(slot, binding.targets[0], export)
        if len(reference.path) != 3:
            return LOST
        members = {} if binding is None else self.members(binding)
        wanted = reference.path[1]
        if wanted == "*":
            return self._joined(slot, members, export)
        if wanted not in members:
            if wanted == ANY or wanted in self.draft.fleet.machines:
                self.faults.append(scope_rows.no_member(reference, slot, wanted, members))
            return LOST
        return self.export(slot, members[wanted], export)

    def members(self, binding: Binding) -> dict[str, Target]:
        """The set by machine, in the order of names."""
        found: dict[str, Target] = {}
        for target in binding.targets:
            if target.offer.free:
                found[ANY] = target
            else:
                found[target.machine or self.machine or self._seen.sample] = target
        return dict(sorted(found.items()))

    def _joined(self, slot: SlotSpec, members: dict[str, Target], export: str) -> Term:
        parts: list[terms.Part] = []
        lifecycles: list[Lifecycle] = []
        for machine, target in members.items():
            term = self.export(slot, target, export)
            if parts:
                parts.append(" ")
            lifecycles.append(term.lifecycle)
            text = f"${{results.{slot.name}.{machine}.{export}}}"
            parts += [
                Live(part.provider, part.machine, part.suffix, part.reaction, text)
                if isinstance(part, Live)
                else part
                for part in term.parts
            ]
        joined = terms.joined(tuple(parts)) or ("",)
        if len(joined) == 1 and terms.is_value(joined[0]):
            joined = (canonical.text(joined[0]),)
        return Term(joined, strongest(lifecycles), tuple(members.values()))

    def _bound(self, reference: Reference, name: str) -> Term:
        slot = self.assignment.slot(name)
        binding = self.binding(slot) if slot is not None else None
        if slot is None or binding is None or slot.reach is Reach.ALL:
            return LOST
        target = binding.targets[0]
        if target.offer.free:
            self.faults.append(scope_rows.no_address(reference, name, target.offer))
            return LOST
        machine = self.machine if target.machine is None else target.machine
        address = ADDRESS if machine is None else self.draft.fleet.machines[machine].address
        return Term((address,))

    def _credentials(self, reference: Reference, name: str) -> Term:
        slot = self.assignment.slot(name)
        if slot is None or slot.presence:
            return LOST
        binding = self.binding(slot)
        if binding is None:
            return LOST
        offer = binding.targets[0].offer
        if not offer.credentials:
            self.faults.append(scope_rows.no_credentials(reference, name, offer))
            return LOST
        role = self.assignment
        return Term((places.credential_path(role.instance, role.role_name, name),))


class _ProviderScope(Scope):
    """A provider's scope while one of its exports is resolved for one reader."""

    def __init__(self, reader: Scope, slot: SlotSpec, target: Target, seen: Seen) -> None:
        super().__init__(reader.draft, target.offer.assignment or reader.assignment, seen)
        self._reader = reader
        self._slot = slot
        self._target = target
        self.lifecycle = Lifecycle.STATIC

    def judge(self, reference: Reference, term: Term) -> Parts:
        """An export reads static and probed values; one that reads a probed value is probed."""
        match term.lifecycle:
            case Lifecycle.STATIC:
                return term.parts
            case Lifecycle.PROBED:
                self.lifecycle = Lifecycle.PROBED
                return term.parts
            case Lifecycle.DYNAMIC:
                scope_rows.dynamic(self.draft, self._target, reference)
                return (Lost(str(reference)),)

    def _look(self, reference: Reference) -> Term:
        if reference.root == "consumer":
            return self._consumer(reference.path)
        if self._target.offer.assignment is None:
            return LOST
        if reference.root == "machine" and self._target.offer.free:
            return LOST
        return super()._look(reference)

    def _consumer(self, path: tuple[str, ...]) -> Term:
        reader = self._reader
        role = reader.assignment
        match path:
            case ("instance",):
                return Term((role.instance,))
            case ("role",):
                return Term((role.role_name,))
            case ("machine",):
                return Term((NAME if reader.machine is None else reader.machine,))
            case ("login",):
                return Term((role.instance.replace("-", "_"),))
            case ("request", name):
                return Term(reader.request(self._slot.name, name, self._seen.active))
            case _:
                return LOST


def _parts(filled: Tree) -> Parts:
    if terms.is_text(filled):
        return filled
    return terms.of_list(filled) if is_list(filled) else (filled,)


def only_static(reference: Reference, term: Term) -> Parts:
    if term.lifecycle is Lifecycle.STATIC:
        return term.parts
    return (Lost(str(reference)),)
