"""A plan that is kept with how it came about, so that a change of values costs what it reaches.

What is kept is changed in place; the plans that were handed out share with the next what is the
same in both, and are never changed. Every step is the cold planner's own, done for fewer entries.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from keyplane.documents.evaluation import Evaluate
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.documents import Documents
from keyplane.planner import (
    assemble,
    canonical,
    conflicts,
    families,
    grants,
    key,
    making,
    notes,
    reach,
    sizes,
)
from keyplane.planner.changes import Delta
from keyplane.planner.contents import Contents
from keyplane.planner.draft import Draft
from keyplane.planner.making import Dirty, Making
from keyplane.planner.notes import Notes
from keyplane.planner.program import Family
from keyplane.planner.reach import Readers
from keyplane.planner.request import PlanResult
from keyplane.planner.require import Requirements
from keyplane.planner.rounds import Worked
from keyplane.planner.terms import OwnKind


def can_keep(draft: Draft) -> bool:
    """Whether the plan is what planning it again with itself as the previous plan gives.

    Not where a port is missing, as one that was freed rests for one plan; nor where the plan is
    too full for a role, or a function came to a limit: what is said of a role hangs on others then.
    """
    return (
        not draft.crowded
        and not draft.spent
        and not draft.noted[notes.STRUCTURE].rows.places("placement-short")
    )


class Kept:
    def __init__(self, worked: Worked) -> None:
        self.result = worked.result
        self._draft = draft = worked.draft
        draft.request = replace(draft.request, previous=None)
        self._families = worked.families
        self._keying = worked.keying
        self._standing = worked.standing
        self._texts = worked.texts
        self._groups = key.groups(worked.families)
        self._readers = Readers(draft, worked.families)
        self._places = _places(draft)
        self._with_facts = _with_facts(worked.families)
        self._judges = _judges(draft)
        self._contents = Contents(worked.result.contents)
        for step in draft.noted.values():
            self._contents.count(step.contents)
        for family, resolved in worked.resolved.items():
            self._contents.of_entries(family, resolved)
        self._contents.current()

    def update(self, documents: Documents, evaluate: Evaluate, delta: Delta) -> PlanResult | None:
        """The plan of the documents; None where it has to be planned as a whole.

        After None, or if something is raised, what is kept is of no use any more.
        """
        draft = self._draft
        before = dict(draft.noted)
        told = self._told(delta.facts)
        draft.request = replace(draft.request, documents=documents, evaluate=evaluate)
        draft.fleet = documents.fleet or draft.fleet
        if told is None or self._told(delta.facts) != told:
            return None
        dirty: Dirty | None = {}
        roles = self._evaluated(delta)
        if roles is not None:
            roles |= self._by_facts(delta.facts, dirty)
            dirty = self._derive(sorted(roles), dirty)
        if roles is None or dirty is None or draft.spent or not sizes.fit(draft):
            return None
        self._settle_notes(before)
        made = Making(draft, self.result, self._texts, self._places)
        made.make(self._groups, self._families, self._keying, dirty)
        return self._assembled(made, before, delta)

    def _told(self, facts: Iterable[tuple[str, str]]) -> list[str | None] | None:
        """What placement makes of the facts; None where it hangs on one in another way."""
        looked = self._draft.noted[notes.STRUCTURE].facts
        if not looked.isdisjoint(facts):
            return None
        return [judge.told(*fact) for fact in sorted(facts) for judge in self._judges]

    def _evaluated(self, delta: Delta) -> set[str] | None:
        """Evaluate what changed: the roles that are to be derived for that."""
        draft = self._draft
        modules = {module for module, _ in delta.bodies}
        changed = set(delta.settings)
        for name, assignment in draft.assignments.items():
            if assignment.module.name in modules:
                draft.forget_compiled()
                assignment.module = draft.request.documents.modules[assignment.module.name]
                assignment.role = assignment.module.roles[assignment.role_name]
                if (assignment.module.name, assignment.role_name) in delta.bodies:
                    changed.add(name)
        exports: list[reach.ReadExport] = []
        for name in sorted(changed):
            assignment = draft.assignments.get(name)
            found = None if assignment is None else reach.evaluate_again(draft, assignment)
            if found is None:
                return None
            if draft.spent:
                return None
            exports += found
        for name in sorted(delta.externals):
            found = reach.read_again(draft, name)
            if found is None:
                return None
            exports += found
        return changed if self._readers.reached(changed, exports) else None

    def _by_facts(self, facts: Iterable[tuple[str, str]], dirty: Dirty) -> set[str]:
        """The roles that have to be derived for the facts; single entries become dirty."""
        facts = sorted(facts)
        found = {
            name
            for name in (self._draft.assignments if facts else ())
            if not self._draft.noted[notes.of_deriving(name)].facts.isdisjoint(facts)
        }
        for machine, fact in facts:
            for name in self._with_facts.get(fact, ()):
                for family in self._families[name]:
                    if not making.stands(family, machine):
                        continue
                    if self._has_same_states(family, machine, fact):
                        known = set(dirty.get(family, ()))
                        dirty[family] = sorted(known | {machine})
                    else:
                        found.add(name)
        return found

    def _has_same_states(self, family: Family, machine: str, fact: str) -> bool:
        """Whether the machine lacks no other values than before."""
        with self._draft.noting(("looking", "")):
            states = [
                (family.states.get(own), families.fact_state(self._draft, machine, own))
                for own in (*family.owns, *family.states)
                if own.kind is OwnKind.FACT and own.name == fact
            ]
        del self._draft.noted["looking", ""]
        return all(was is None and now is None for was, now in states)

    def _derive(self, roles: Sequence[str], dirty: Dirty) -> Dirty | None:
        """Derive roles again, and find the entries that come out otherwise."""
        regroup = False
        for name in roles:
            old = self._families[name]
            probed = self._draft.noted[notes.of_deriving(name)].probed
            new = families.derive_role(self._draft, self._draft.assignments[name])
            found = reach.pair(old, new)
            if found is None or self._draft.noted[notes.of_deriving(name)].probed != probed:
                return None
            by_fact = {machine for family in old for machine in dirty.pop(family, ())}
            for family in new:
                machines = {*found.get(family, ()), *(by_fact & set(family.machines))}
                if machines:
                    dirty[family] = sorted(machines)
            self._families[name] = new
            regroup = regroup or [_grouped(one) for one in old] != [_grouped(one) for one in new]
        if roles:
            self._with_facts = _with_facts(self._families)
        if regroup:
            self._groups = key.groups(self._families)
        return dirty

    def _settle_notes(self, before: Mapping[tuple[str, str], Notes]) -> None:
        """Count the contents of the steps that were done again."""
        for step in self._draft.noted.keys() | before.keys():
            was, now = before.get(step), self._draft.noted.get(step)
            if was is not now:
                self._contents.count({} if now is None else now.contents)
                self._contents.drop({} if was is None else was.contents)

    def _assembled(
        self, made: Making, before: Mapping[tuple[str, str], Notes], delta: Delta
    ) -> PlanResult:
        draft, old = self._draft, self.result
        asked = False
        news = False
        for family, resolved in made.made.items():
            self._contents.of_entries(family, resolved)
            news = conflicts.stand(family, resolved, self._standing) or news
            program = family.program
            asked = asked or bool(program.requests) or "grants" in program.extras
        if news:
            with draft.noting(notes.CONFLICTS):
                conflicts.judge(draft, self._standing)
        hashes = old.machines
        plan = old.plan
        if made.touched:
            hashes = {**hashes, **made.hashes()}
            plan = msgspec.structs.replace(
                plan,
                entries=made.entries,
                generation=canonical.digest(canonical.encode_plain(hashes)),
            )
        if delta.diagnostics or _tells(before, draft.noted):
            plan = msgspec.structs.replace(plan, diagnostics=self._diagnostics())
        self.result = PlanResult(
            plan=plan,
            contents=self._contents.current(),
            grants=grants.grants(draft, self._families) if asked else old.grants,
            machines=hashes,
            digests=made.digests,
        )
        return self.result

    def _diagnostics(self) -> list[Diagnostic]:
        return assemble.diagnostics(self._draft)


def _grouped(family: Family) -> object:
    """What the order of keying hangs on."""
    return family.program.targets, family.machines if len(family.machines) == 1 else None


def _places(draft: Draft) -> dict[str, Mapping[str, int]]:
    """By machine and role: which of the machine's entries it is. Machines alike share theirs."""
    roles: dict[str, list[str]] = {name: [] for name in draft.fleet.machines}
    for name, assignment in draft.assignments.items():
        for machine in assignment.bound:
            roles[machine].append(name)
    shared: dict[tuple[str, ...], Mapping[str, int]] = {}
    found: dict[str, Mapping[str, int]] = {}
    for machine, several in roles.items():
        names = tuple(several)
        if names not in shared:
            shared[names] = {name: index for index, name in enumerate(names)}
        found[machine] = shared[names]
    return found


def _with_facts(every: Mapping[str, Sequence[Family]]) -> dict[str, list[str]]:
    """By fact: the roles whose entries wait for it from their own machines."""
    found: dict[str, dict[str, None]] = {}
    for name, several in every.items():
        for family in several:
            for own in (*family.owns, *family.states):
                if own.kind is OwnKind.FACT:
                    found.setdefault(own.name, {})[name] = None
    return {fact: list(names) for fact, names in found.items()}


def _judges(draft: Draft) -> list[Requirements]:
    """The requirements of each role that has some."""
    with draft.noting(("looking", "")):
        found = [
            Requirements(draft, one) for one in draft.assignments.values() if one.body.requirements
        ]
    del draft.noted["looking", ""]
    return found


def _tells(before: Mapping[tuple[str, str], Notes], after: Mapping[tuple[str, str], Notes]) -> bool:
    """Whether a step that was done again has rows, or had."""
    return any(
        before.get(step) is not after.get(step)
        and not all(one is None or one.rows.none for one in (before.get(step), after.get(step)))
        for step in before.keys() | after.keys()
    )
