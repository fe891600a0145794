"""From a fleet's text to what an apply of it would do. Reads; changes nothing."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from keyplane import planner
from keyplane.documents.reading import Reading
from keyplane.model.diagnostic import Diagnostic, Severity, in_order
from keyplane.model.documents import Documents
from keyplane.model.names import Digest, EntryId, MachineName, ModuleName, split_entry
from keyplane.model.plan import Diff, Edge, Entry, Plan
from keyplane.parts import by_facts, fitting
from keyplane.parts.control_messages import Text
from keyplane.plancheck import plan as plancheck
from keyplane.planner import compare
from keyplane.planner.explain import Explained, explain_all
from keyplane.planner.request import PlanRequest, PlanResult
from keyplane.ports.inventory import PlannedEntry, StoredPlan
from keyplane.ports.store import Pack
from keyplane.rollout import declaring, policies
from keyplane.rollout.permits import Guard, Guards
from keyplane.rollout.planned import MixedEntry
from keyplane.rollout.policies import Rules
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.refuges import Refuges

_NO_FLEET = Diagnostic(
    code="unreadable",
    subject="fleet",
    path="",
    message="the text holds no fleet.toml, fleet.json or fleet.star",
    resolution=("a fleet of nothing is a fleet.toml with its name alone",),
)
"""Without it a text with no fleet would be one that asks for nothing: all would be stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """How far the last rollout has come."""

    rollout: int
    steps: int
    back: tuple[int, int] | None = None
    """On its way back: in which step, and with how many refuges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What the machines are declared to be now: a plan, or a mixture of two."""

    entries: Mapping[EntryId, PlannedEntry]
    edges: Sequence[Edge]
    plan: Plan | None
    """The last target, whose other parts count; None before the first apply."""
    contents: Mapping[Digest, bytes] = field(default_factory=dict[Digest, bytes])
    """Of grants that no plan has."""
    unproven: tuple[EntryId, ...] = ()
    """What was sent and not seen well since."""
    refuges: Refuges = field(default_factory=dict[EntryId, Refuge])
    """What of these to go back to, instead of what is declared."""
    guards: Guards = field(default_factory=dict[str, Guard])
    """What keeps some members of a role up, by role."""
    seen: Sent | None = None
    """What this was worked out from; None before the first rollout."""

    def fled(self) -> dict[EntryId, MixedEntry]:
        """What is declared no more, and may be gone back to."""
        found = ((entry, refuge.planned) for entry, refuge in self.refuges.items())
        return {entry: planned for entry, planned in found if planned is not None}

    def as_plan(self) -> Plan | None:
        if self.plan is None:
            return None
        entries = {entry: planned.entry for entry, planned in self.entries.items()}
        return msgspec.structs.replace(
            self.plan, entries=dict(sorted(entries.items())), edges=list(self.edges)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A text, planned against the target."""

    text: Text
    documents: Documents
    plan: Plan
    entries: Mapping[EntryId, PlannedEntry]
    contents: Mapping[Digest, bytes]
    rows: list[Diagnostic]
    """Of the plan, and of what this release's agents cannot run."""
    diff: Diff
    archives: Mapping[Digest, EntryId]
    """What machines will fetch, and an entry that wants each; none of a plan that is refused."""
    rules: Rules
    """How each instance is rolled out."""
    facts: frozenset[tuple[str, str]] = frozenset()
    """Machine and fact, of each on which the plan hangs."""
    lacks_facts: bool = False
    """Something of it has no place, or a hole, as facts stand."""

    @property
    def refused(self) -> bool:
        return any(row.severity is Severity.ERROR for row in self.rows)


class Planning:
    """Reads texts and plans them."""

    def __init__(
        self,
        *,
        read: Callable[[Mapping[str, bytes]], Reading],
        archive: Callable[[Mapping[str, bytes], str, str], Pack],
    ) -> None:
        """`archive` sends the tar of a directory below a module's folder, from the text."""
        self._read = read
        self._archive = archive
        self._last: tuple[bytes, Planned] | None = None
        """What was planned last, and from what."""

    def plan(  # noqa: PLR0913, PLR0917  # all that a plan is made from
        self,
        text: Text,
        target: StoredPlan | None,
        base: Base,
        known: Collection[MachineName],
        facts: by_facts.Known,
        cordoned: Mapping[str, bool] | None = None,
    ) -> Planned:
        """Plan a text as the successor of a target; `known` are machines that had an agent.

        `facts` are what machines say of themselves; `cordoned` as in a `PlanRequest`.

        An apply asks what its proposal has just asked: the last answer is kept until `drop`. It is
        given again only if all that it was made from is the same, byte by byte.
        """
        asked = _asked(text, target, base, known, facts)
        asked += repr(sorted((cordoned or {}).items())).encode()
        last = self._last
        if last is None or last[0] != asked:
            last = self._last = asked, self._plan(text, target, base, known, facts, cordoned or {})
        return last[1]

    def drop(self) -> None:
        """Keep nothing: a plan of a large fleet is hundreds of megabytes."""
        self._last = None

    def _plan(  # noqa: PLR0913, PLR0917  # all that a plan is made from
        self,
        text: Text,
        target: StoredPlan | None,
        base: Base,
        known: Collection[MachineName],
        facts: by_facts.Known,
        cordoned: Mapping[str, bool],
    ) -> Planned:
        reading = self._read(text.files)
        request = PlanRequest(
            documents=by_facts.merged(reading.documents, facts),
            evaluate=reading.evaluate,
            previous=target.plan if target is not None else None,
            cordoned=cordoned,
        )
        documents = request.documents
        result = planner.plan(request)
        entries, contents = _entries(result, documents)
        before = base.as_plan() or msgspec.structs.replace(
            result.plan, entries={}, edges=[], exports={}
        )
        diff = compare.diff(before, result.plan)
        of_facts = by_facts.rows(request, result.plan.diagnostics)
        rows = [
            *(by_facts.softened(r) if r in of_facts else r for r in result.plan.diagnostics),
            *plancheck.check(result.plan, documents),
        ]
        if documents.fleet is None and not any(row.severity is Severity.ERROR for row in rows):
            rows.append(_NO_FLEET)
        archives: Mapping[Digest, EntryId] = {}
        if not any(row.severity is Severity.ERROR for row in rows):
            checked = declaring.check(entries)
            archives = checked.archives
            rows += checked.rows
            rows += _unreachable(documents, entries, known)
            rows += fitting.check(entries, contents)
        return Planned(
            text=text,
            documents=documents,
            plan=result.plan,
            entries=entries,
            contents=contents,
            rows=in_order(rows),
            diff=diff,
            archives=archives,
            rules=policies.rules(documents),
            facts=result.facts,
            lacks_facts=bool(of_facts) or any(e.holes for e in result.plan.entries.values()),
        )

    def documents(self, files: Mapping[str, bytes]) -> Documents:
        return self._read(files).documents

    def explain(
        self,
        files: Mapping[str, bytes],
        target: Plan,
        machine: MachineName | None,
        facts: by_facts.Known,
    ) -> tuple[Documents, dict[str, list[Explained]]]:
        """The documents of the target's text; the values of each entry of a machine, if one is named."""
        reading = self._read(files)
        documents = by_facts.merged(reading.documents, facts)
        if machine is None:
            return documents, {}
        request = PlanRequest(documents=documents, evaluate=reading.evaluate, previous=target)
        return documents, explain_all(request, machine)

    def rules(self, files: Mapping[str, bytes]) -> Rules:
        """How each instance of a text is rolled out."""
        return policies.rules(self._read(files).documents)

    def archive(self, planned: Planned, digest: Digest) -> Pack:
        """The tar of an archive of the text; the digest is one of its documents'."""
        artifacts = planned.documents.artifacts
        module, name = next(pair for pair, each in artifacts.items() if each == digest)
        document = planned.documents.modules[module]
        folder = document.file.rpartition("/")[0]
        return self._archive(planned.text.files, folder, document.build.archives[name])


def _asked(
    text: Text,
    target: StoredPlan | None,
    base: Base,
    heard: Collection[MachineName],
    facts: by_facts.Known,
) -> bytes:
    """The hash of all that a plan, its rows and its difference are made from."""
    encode = msgspec.json.Encoder(order="sorted").encode
    found = hashlib.sha256()
    found.update(encode(text))
    found.update(encode([None if target is None else target.plan.generation, sorted(heard)]))
    found.update(encode(None if base.plan is None else base.plan.generation))
    for machine in sorted(facts):
        found.update(encode((machine, facts[machine].planned_digest)))
    for entry in sorted(base.entries):
        found.update(encode((entry, base.entries[entry])))
    for edge in base.edges:
        found.update(encode(edge))
    return found.digest()


def _entries(
    result: PlanResult, documents: Documents
) -> tuple[dict[EntryId, PlannedEntry], dict[Digest, bytes]]:
    """Each entry with what its plan does not show; the bytes of its grants join the contents."""
    contents = {Digest(digest): content for digest, content in result.contents.items()}
    entries: dict[EntryId, PlannedEntry] = {}
    for entry, planned in result.plan.entries.items():
        grants: dict[str, Digest] = {}
        for path, content in result.grants.get(entry, {}).items():
            digest = Digest("sha256-" + hashlib.sha256(content).hexdigest())
            grants[path], contents[digest] = digest, content
        udp = udp_listens(documents, EntryId(entry), planned) if planned.listens else ()
        entries[EntryId(entry)] = PlannedEntry(entry=planned, grants=grants, udp=udp)
    return entries, contents


def udp_listens(documents: Documents, entry: EntryId, planned: Entry) -> tuple[str, ...]:
    """Names of those of its listens that are of UDP."""
    listens = documents.modules[ModuleName(planned.module)].roles[split_entry(entry)[1]].listens
    return tuple(name for name in sorted(planned.listens) if listens[name].protocol == "udp")


def _unreachable(
    documents: Documents, entries: Mapping[EntryId, PlannedEntry], known: Collection[MachineName]
) -> list[Diagnostic]:
    """A row for each machine that is given something and never had an agent to take it."""
    if documents.fleet is None:
        return []
    machines = documents.fleet.machines
    wanted = {split_entry(entry)[2] for entry in entries} & machines.keys()
    return [
        Diagnostic(
            code="machine-absent",
            subject=name,
            path=f"machines.{name}",
            message=f"no agent of {name} was ever heard: nothing can be applied there",
            resolution=(
                f"machines.{name}.local = true runs its agent on this box",
                f"or place nothing on {name}",
            ),
        )
        for name in sorted(wanted)
        if not machines[name].local and name not in known
    ]
