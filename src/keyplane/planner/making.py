"""The entries that are made again when a kept plan changes, with the keys that move with theirs."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from keyplane.planner import entries, key, resolve, texts
from keyplane.planner.draft import Draft
from keyplane.planner.key import Keyed
from keyplane.planner.program import Family
from keyplane.planner.request import PlanResult
from keyplane.planner.resolve import Resolved
from keyplane.planner.texts import Text

Dirty = dict[Family, Sequence[str]]
"""By family: the machines whose entries are to be made again, in order."""


class Making:
    """The entries that are made again, with the keys that move with theirs."""

    def __init__(
        self,
        draft: Draft,
        old: PlanResult,
        kept: Mapping[str, Text],
        places: Mapping[str, Mapping[str, int]],
    ) -> None:
        self._draft = draft
        self._old = old
        self._texts = kept
        self._places = places
        self._moved: dict[str, set[str]] = {}
        """By role: the machines on which its key moved."""
        self.made: dict[Family, Resolved] = {}
        """Parts of families."""
        self.entries = old.plan.entries
        self.digests = dict(old.digests)
        self.touched: set[str] = set()
        """The machines that have another entry."""

    def make(
        self,
        groups: Sequence[key.Group],
        every: Mapping[str, list[Family]],
        keying: key.Keying,
        dirty: Dirty,
    ) -> None:
        """Providers before readers, as keys move on."""
        for group in groups:
            several = [family for name in group.roles for family in every[name]]
            if group.circle:
                if any(self._machines(family, dirty) for family in several):
                    self._circle(several, keying)
                continue
            for family in several:
                machines = self._machines(family, dirty)
                if machines:
                    self._part(part_of(family, machines), keying)

    def hashes(self) -> dict[str, str]:
        return {name: self._texts[name].hash() for name in self.touched}

    def _machines(self, family: Family, dirty: Dirty) -> Sequence[str]:
        """Where the family's entries are to be made again."""
        found = set(dirty.get(family, ()))
        for target in family.program.targets:
            provider = target.offer.assignment
            moved = self._moved.get(provider.id) if provider is not None else None
            if not moved:
                continue
            if target.machine is None:
                found.update(moved)
            elif target.machine in moved:
                return family.machines
        if len(found) * 8 < len(family.machines):  # else looking each up takes longer
            return sorted(name for name in found if stands(family, name))
        return [name for name in family.machines if name in found]

    def _part(self, part: Family, keying: key.Keying) -> None:
        resolved = resolve.resolve(self._draft, part)
        keyed = keying.family(part, resolved)
        before = keying.keys[part.assignment.id]
        moved = {
            machine
            for machine, one in zip(part.machines, keyed.keys, strict=True)
            if before[machine] != one
        }
        self._moved.setdefault(part.assignment.id, set()).update(moved)
        keying.remember(part, keyed.keys)
        self._put(part, resolved, keyed)

    def _circle(self, several: Sequence[Family], keying: key.Keying) -> None:
        roles = {family.assignment.id for family in several}
        before = {name: dict(keying.keys[name]) for name in roles if name in keying.keys}
        resolved = {family: resolve.resolve(self._draft, family) for family in several}
        keyed = keying.circle(several, resolved)
        for name, was in before.items():
            now = keying.keys[name]
            self._moved[name] = {machine for machine in was if was[machine] != now[machine]}
        for family in several:
            self._put(family, resolved[family], keyed[family])

    def _put(self, part: Family, resolved: Resolved, keyed: Keyed) -> None:
        """Take the entries that came out otherwise; the others stay the same things."""
        made = entries.make(part, resolved, keyed)
        self.made[part] = resolved
        role = part.assignment.id
        was = self.digests[role]
        changed = [
            index
            for index, (name, digest) in enumerate(zip(made.ids, made.digests, strict=True))
            if was[name] != digest
        ]
        if not changed:
            return
        if self.entries is self._old.plan.entries:
            self.entries = self.entries.copy()
        digests = {**was, **{made.ids[index]: made.digests[index] for index in changed}}
        self.digests[role] = digests
        for index in changed:
            name, machine, digest = made.ids[index], part.machines[index], made.digests[index]
            self.entries[name] = made.entries[index]
            self._texts[machine].entries[self._places[machine][role]] = texts.entry(name, digest)
            self.touched.add(machine)


def part_of(family: Family, machines: Sequence[str]) -> Family:
    """The family's entries on some of its machines."""
    if len(machines) == len(family.machines):
        return family
    part = Family(
        assignment=family.assignment,
        bindings=family.bindings,
        machines=list(machines),
        states=family.states,
    )
    part.body, part.program, part.owns = family.body, family.program, family.owns
    return part


def stands(family: Family, machine: str) -> bool:
    at = bisect_left(family.machines, machine)
    return at < len(family.machines) and family.machines[at] == machine
