"""Why the key of an entry moved since an earlier plan, input by input, back to the root causes.

Inputs are named as in the diff's `why`. Values are shown as the plans have them, secrets hidden.
"""

import itertools
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from keyplane.model.module import Json
from keyplane.model.plan import Diff, Entry, Plan
from keyplane.planner import compare, explain_hiding, explain_inputs, rounds
from keyplane.planner.explain_inputs import Inputs
from keyplane.planner.explain_origins import Chain, Origins
from keyplane.planner.request import PlanRequest

_CAUSES_MAX = 100
"""Root causes of one input that are named: who reads more wants the diff."""
_ARTIFACT_FIELDS = ("archive", "bundle", "nix", "image")


class Since(StrEnum):
    """What became of an entry since the earlier plan."""

    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    RELOADED = "reloaded"
    """Its key is the same, its configData is not."""
    REWIRED = "rewired"
    """Its key is the same; something that is applied live is not."""
    UNCHANGED = "unchanged"


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """One input of the key that moved."""

    input: str
    old: Json
    """None: there was no such input."""
    new: Json
    from_: list[Chain] = msgspec.field(name="from")
    """For each source that moved the steps to it; of a provider's key, to each root cause."""
    units: list[str]
    """Those that restart for it."""


class Moves(msgspec.Struct, frozen=True, kw_only=True):
    since: Since
    elsewhere: str | None
    """For an entry that came or went: the machine that its role came from or went to."""
    moved: list[Moved]


def moves(request: PlanRequest, old: Plan, new: Plan, entry: str) -> Moves | None:
    """`new` is the plan of the request; None: neither plan has the entry."""
    if entry not in old.entries and entry not in new.entries:
        return None
    diff = compare.diff(old, new)
    since = _since(diff, old, new, entry)
    found: list[Moved] = []
    if since is Since.CHANGED:
        derived = rounds.derived(request)
        assert derived is not None
        draft, families = derived
        origins = Origins(draft, old, new)
        found = _Moving(Inputs(families, origins, old, new), origins, diff, old, new).moved(entry)
    return Moves(since=since, elsewhere=_elsewhere(diff, entry), moved=found)


def _since(diff: Diff, old: Plan, new: Plan, entry: str) -> Since:
    if entry not in old.entries:
        return Since.NEW
    if entry not in new.entries:
        return Since.GONE
    if entry in diff.why:
        return Since.CHANGED
    if entry in diff.reload:
        return Since.RELOADED
    return Since.REWIRED if entry in diff.rewire else Since.UNCHANGED


def _elsewhere(diff: Diff, entry: str) -> str | None:
    role, _, machine = entry.rpartition("@")
    for move in diff.moves:
        if move.entry == role and machine in (move.from_, move.to):
            return move.from_ if machine == move.to else move.to
    return None


class _Moving:
    def __init__(self, inputs: Inputs, origins: Origins, diff: Diff, old: Plan, new: Plan) -> None:
        self._inputs = inputs
        self._origins = origins
        self._diff = diff
        self._old = old
        self._new = new

    def moved(self, entry: str) -> list[Moved]:
        return [self._one(entry, reason) for reason in self._diff.why[entry]]

    def _one(self, entry: str, reason: str) -> Moved:
        was, now = self._old.entries[entry], self._new.entries[entry]
        if reason.startswith("dependency "):
            provider = reason.removeprefix("dependency ")
            old = _key(self._old, provider) if provider in was.dependencies else None
            new = _key(self._new, provider) if provider in now.dependencies else None
            return Moved(
                input=reason,
                old=old,
                new=new,
                from_=list(itertools.islice(self._roots(entry, provider), _CAUSES_MAX)),
                units=self._readers(entry, provider),
            )
        old, new = self._inputs.values(entry, reason)
        chains = self._inputs.sources(entry, reason, old, new)
        names = (reason, *(chain[-1] for chain in chains))
        return Moved(
            input=reason,
            old=explain_hiding.shown(old, *names),
            new=explain_hiding.shown(new, *names),
            from_=chains,
            units=self._restarted(entry, reason),
        )

    def _roots(self, entry: str, provider: str) -> Iterator[Chain]:
        """The inputs that moved first, each by the shortest way to it."""
        here = self._here(entry, provider)
        if here is not None:
            yield here
            return
        seen = {entry, provider}
        waiting: list[tuple[str, Chain]] = [(provider, ())]
        causes = 0
        for name, way in waiting:
            for reason in self._diff.why.get(name, ()):
                other = reason.removeprefix("dependency ")
                if other == reason:
                    causes += 1
                    old, new = self._inputs.values(name, reason)
                    sources = self._inputs.sources(name, reason, old, new) or [()]
                    yield from ((*way, reason, *source) for source in sources)
                elif (cut := self._here(name, other)) is not None:
                    causes += 1
                    yield (*way, reason, *cut)
                elif other not in seen:
                    seen.add(other)
                    waiting.append((other, (*way, reason)))
        if not causes:
            yield (f"{provider} is in a circle with {entry}",)

    def _here(self, entry: str, provider: str) -> Chain | None:
        """Why the entry depends on a provider now, or no longer does; None: it did and does."""
        was, now = self._old.entries[entry], self._new.entries[entry]
        if provider in was.dependencies and provider in now.dependencies:
            return None
        if provider not in self._new.entries:
            return (f"{provider} is gone",)
        slots = self._origins.slots_to(entry, provider)
        bound = [said for slot in slots if (said := self._origins.rebound(entry, slot))]
        if bound:
            return tuple(bound[:1])
        role = f"{provider.partition('@')[0]}/"
        for one in self._diff.retags:
            if entry in one.consumers and one.export.startswith(role):
                return (f"{one.export}: {one.from_} → {one.to}",)
        found = self._inputs.place(entry)
        slot = slots[0] if slots else "any"
        return () if found is None else self._origins.module_text(found[1], f"uses.{slot}")

    def _restarted(self, entry: str, reason: str) -> list[str]:
        moved = self._diff.units.get(entry, [])
        kind, _, rest = reason.partition(".")
        unit, _, name = rest.partition(".")
        if kind == "closure" and unit == "artifacts":
            was, now = self._old.entries[entry], self._new.entries[entry]
            return [one for one in moved if name in (*_artifacts(was, one), *_artifacts(now, one))]
        return [unit] if unit in moved else []

    def _readers(self, entry: str, provider: str) -> list[str]:
        """The units that read a provider; of one left, those that read what is in its place."""
        found = self._inputs.place(entry)
        if found is None:
            return []
        family, place = found
        there = {provider}
        if provider not in self._new.entries[entry].dependencies:
            there = self._origins.instead_of(entry, provider)
        readers = {
            unit.name
            for unit in family.program.units
            for target in unit.targets
            if target.offer.assignment is not None
            and f"{target.offer.assignment.prefix}{target.machine or place.machine}" in there
        }
        for name, unit in self._new.entries[entry].units.items():
            live = [one.from_ for one in unit.dynamic.values()]
            sources = [one for said in live for one in ([said] if isinstance(said, str) else said)]
            if any(one.partition("/")[0] in there for one in sources):
                readers.add(name)
        return [name for name in self._diff.units.get(entry, ()) if name in readers]


def _key(plan: Plan, entry: str) -> str | None:
    found = plan.entries.get(entry)
    return None if found is None else found.key


def _artifacts(entry: Entry, unit: str) -> list[Json]:
    return [explain_inputs.field(entry, unit, name) for name in _ARTIFACT_FIELDS]
