"""A role's requirements at one machine: resolved, and judged by the machine's facts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from keyplane.documents.references import Reference
from keyplane.model.module import Json, Lifecycle
from keyplane.planner import predicates, settings, terms
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.looks import Term
from keyplane.planner.scope import Scope
from keyplane.planner.terms import Lost, Parts

_NO_FACTS: Mapping[str, Json] = {}
"""Of a machine without a snapshot: it meets no `exists`."""
_ANYWHERE = frozenset({"settings", "state", "reads", "secrets"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """A requirement that a machine does not meet."""

    requirement: dict[str, Json]
    fact: Json

    def __str__(self) -> str:
        known = self.fact is not None
        said = f"it is {settings.show(self.fact)}" if known else "it has no value"
        return f"{predicates.describe(self.requirement)} ({said})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a machine does not meet, the needed apart from the wanted."""

    needed: tuple[Unmet, ...] = ()
    wanted: tuple[Unmet, ...] = ()


MET = Verdict()
_PLAIN = frozenset({str, type(None)})
"""Facts of these types are the same fact where they are equal: not so `true` and `1`."""


class Requirements:
    """The requirements of one assignment, to be asked machine by machine."""

    def __init__(self, draft: Draft, assignment: Assignment) -> None:
        self._draft = draft
        self._assignment = assignment
        self._judged: dict[tuple[Json, ...], Verdict] = {}
        self._fixed: list[dict[str, Json]] | None = None
        if all(
            reference.root in _ANYWHERE or str(reference) in {"${self.instance}", "${self.role}"}
            for tree in assignment.body.requirements
            for reference in terms.references_in(tree)
        ):
            self._fixed = self._resolve(next(iter(draft.fleet.machines), ""))
        self._subjects = [one["subject"] for one in self._fixed or ()]

    @property
    def none(self) -> bool:
        return not self._assignment.body.requirements

    def judge(self, machine: str) -> Verdict:
        return self.judge_all((machine,))[0]

    def judge_all(self, machines: Sequence[str]) -> list[Verdict]:
        """A verdict for each machine; machines whose facts say the same share theirs."""
        if self._draft.request.all_met:
            return [MET] * len(machines)
        snapshots = self._draft.request.documents.facts
        found: list[Verdict] = []
        for machine in machines:
            snapshot = snapshots.get(machine)
            facts = _NO_FACTS if snapshot is None else snapshot.facts
            if self._fixed is None:
                found.append(_verdict(self._at(machine), facts))
                continue
            said = tuple([facts.get(subject) for subject in self._subjects])
            if not _PLAIN.issuperset(map(type, said)):
                found.append(_verdict(self._fixed, facts))
                continue
            verdict = self._judged.get(said)
            if verdict is None:
                verdict = self._judged[said] = _verdict(self._fixed, facts)
            found.append(verdict)
        return found

    def looked_at(self, machine: str) -> Verdict:
        """A verdict that an answer hangs on which nobody asks for again."""
        verdict = self.judge(machine)
        self._draft.notes.facts.update((machine, subject) for subject in self._subjects)
        return verdict

    def asked(self, machines: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The facts by which these machines are judged; others are noted when they are."""
        for machine in machines:
            for subject in self._subjects:
                yield machine, subject

    def told(self, machine: str, fact: str) -> str | None:
        """What its verdict on the machine comes to; None where the fact has no part in it."""
        if fact not in self._subjects:
            return None
        verdict = self.judge(machine)
        return repr([[*map(str, verdict.needed)], [*map(str, verdict.wanted)]])

    def _at(self, machine: str) -> list[dict[str, Json]]:
        """Those that say something else on each machine; what they ask of is looked at."""
        found = self._resolve(machine)
        self._draft.notes.facts.update((machine, one["subject"]) for one in found)
        return found

    def _resolve(self, machine: str) -> list[dict[str, Json]]:
        """Those that can be judged. What is refused or names nothing has a row of its own."""
        scope = Scope.at(self._draft, self._assignment, machine)
        found: list[dict[str, Json]] = []
        for tree in self._assignment.body.requirements:
            filled = {
                key: scope.fill(item, _judge, text=key in {"subject", "pattern", "bounds"})
                for key, item in tree.items()
            }
            texts = [parts for _, parts in terms.texts_in(filled, "")]
            if any(isinstance(part, Lost) for parts in texts for part in parts):
                continue
            found.append(
                {key: terms.written(v) if terms.is_text(v) else v for key, v in filled.items()}
            )
        return found


def _verdict(requirements: list[dict[str, Json]], facts: Mapping[str, Json]) -> Verdict:
    needed: list[Unmet] = []
    wanted: list[Unmet] = []
    for requirement in requirements:
        fact = facts.get(requirement["subject"])
        if predicates.met(requirement, fact):
            continue
        unmet = Unmet(requirement=requirement, fact=fact)
        (needed if requirement["severity"] == "require" else wanted).append(unmet)
    if not needed and not wanted:
        return MET
    return Verdict(needed=tuple(needed), wanted=tuple(wanted))


def _judge(reference: Reference, term: Term) -> Parts:
    if term.lifecycle is Lifecycle.DYNAMIC:
        return (Lost(str(reference)),)
    return term.parts
