"""The plan itself: entries, edges, exports and machines, in order; and its generation."""

from collections.abc import Mapping
from dataclasses import dataclass

from keyplane.model import duration, plan
from keyplane.model.diagnostic import Diagnostic, in_order
from keyplane.model.fleet import Machine
from keyplane.model.module import Json, Lifecycle
from keyplane.planner import canonical, edges, entries, texts
from keyplane.planner.draft import Draft, Offer
from keyplane.planner.entries import Made
from keyplane.planner.key import Keyed
from keyplane.planner.program import Families, Family
from keyplane.planner.request import Digests
from keyplane.planner.resolve import Resolved
from keyplane.planner.rows import Rows
from keyplane.planner.texts import Text

_Exports = dict[str, tuple[str, str, list[str]]]
"""Lifecycle, access and readers of each export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A plan, and hashes by which two plans are soon compared."""

    plan: plan.Plan
    machines: dict[str, str]
    """Of all that the plan says of a machine."""
    digests: Digests
    texts: dict[str, Text]
    """What the plan says of each machine, if it is to be kept."""


def assemble(
    draft: Draft,
    families: Families,
    resolved: Mapping[Family, Resolved],
    keyed: Mapping[Family, Keyed],
    *,
    keep: bool = False,
) -> Assembled:
    made = {family: entries.make(family, resolved[family], one) for family, one in keyed.items()}
    found: dict[str, plan.Entry] = {}
    digests: dict[str, dict[str, str]] = {}
    named: dict[str, list[bytes]] = {name: [] for name in draft.fleet.machines}
    for role, several in families.items():
        digests[role] = _place(several, made, found)
        for family in several:
            one = made[family]
            for machine, entry, digest in zip(family.machines, one.ids, one.digests, strict=True):
                named[machine].append(texts.entry(entry, digest))
    ids = {family: one.ids for family, one in made.items()}
    between = edges.edges(draft, families, ids)
    exports, read_on = _exports(draft, families, ids)
    machines = {name: _machine(one) for name, one in sorted(draft.fleet.machines.items())}
    said = _Said(named, between, exports, read_on)
    kept: dict[str, Text] = {}
    hashes: dict[str, str] = {}
    for name, machine in machines.items():
        text = Text(*said.parts(name, machine, draft.ports[name]))
        hashes[name] = text.hash()
        if keep:
            kept[name] = text
    return Assembled(
        plan=plan.Plan(
            format=plan.FORMAT,
            fleet=draft.fleet.name,
            generation=canonical.digest(canonical.encode_plain(hashes)),
            entries=found,
            allocations=plan.Allocations(ports={name: draft.ports[name] for name in machines}),
            edges=between.found,
            exports={
                name: plan.Export(lifecycle=lifecycle, access=access, readers=readers)
                for name, (lifecycle, access, readers) in sorted(exports.items())
            },
            machines=machines,
            diagnostics=diagnostics(draft),
        ),
        machines=hashes,
        digests=digests,
        texts=kept,
    )


def diagnostics(draft: Draft) -> list[Diagnostic]:
    """All rows of all steps."""
    rows = Rows()
    rows.found.extend(draft.request.documents.diagnostics)
    for one in draft.noted.values():
        rows.take(one.rows)
    rows.settle({name: len(one.bound) for name, one in draft.assignments.items()})
    return in_order(rows.found)


def rates_of(machine: Machine) -> dict[str, Json]:
    debounce, budget = machine.rates.debounce, machine.rates.restart_budget
    return {
        "debounce": {
            "burst": debounce.burst,
            "window": duration.print_ms(debounce.window.milliseconds),
        },
        "restartBudget": {
            "perUnit": budget.per_unit,
            "window": duration.print_ms(budget.window.milliseconds),
        },
    }


class _Said:
    """What the plan says of each machine, encoded."""

    def __init__(
        self,
        entries: dict[str, list[bytes]],
        edges: edges.Edges,
        exports: _Exports,
        read_on: dict[str, frozenset[str]],
    ) -> None:
        self._entries = entries
        self._edges = edges
        self._exports = exports
        self._read_on = read_on
        self._shared: dict[int, bytes] = {}
        """Ports and exports by identity: many machines share theirs."""

    def parts(
        self, name: str, machine: plan.PlannedMachine, ports: Mapping[str, int]
    ) -> tuple[bytes, list[bytes], bytes]:
        """Keys in order: address, allocations, edges, entries, exports, rates."""
        encode = canonical.encode_plain
        head = b'{"address":%b,"allocations":%b,"edges":[%b],"entries":{' % (
            encode(machine.address),
            self._ports(ports),
            self._edges.encoded(name),
        )
        tail = self._read(self._read_on[name]), encode(machine.rates)
        return head, self._entries[name], b'},"exports":%b,"rates":%b}' % tail

    def _ports(self, ports: Mapping[str, int]) -> bytes:
        found = self._shared.get(id(ports))
        if found is None:
            found = self._shared[id(ports)] = canonical.encode_plain(ports)
        return found

    def _read(self, names: frozenset[str]) -> bytes:
        found = self._shared.get(id(names))
        if found is None:
            said = {name: self._exports[name][:2] for name in names}
            found = self._shared[id(names)] = canonical.encode_plain(said)
        return found


def _place(
    families: list[Family],
    made: Mapping[Family, Made],
    found: dict[str, plan.Entry],
) -> dict[str, str]:
    """Put the entries of one role in their order; gives their digests."""
    if len(families) == 1:
        one = made[families[0]]
        found.update(zip(one.ids, one.entries, strict=True))
        return dict(zip(one.ids, one.digests, strict=True))
    rows = [
        row
        for family in families
        for row in zip(made[family].ids, made[family].entries, made[family].digests, strict=True)
    ]
    rows.sort(key=lambda row: row[0])
    found.update((name, entry) for name, entry, _ in rows)
    return {name: digest for name, _, digest in rows}


def _machine(machine: Machine) -> plan.PlannedMachine:
    return plan.PlannedMachine(
        key=canonical.digest_of({"name": machine.name, "platform": machine.platform}),
        address=machine.address,
        rates=rates_of(machine),
    )


def _export_id(offer: Offer, name: str) -> str:
    return f"{offer.id}/provides/{offer.provide}/{name}"


def _exports(
    draft: Draft, families: Families, ids: Mapping[Family, list[str]]
) -> tuple[_Exports, dict[str, frozenset[str]]]:
    """Each export that is read; and what each machine's entries read."""
    found: _Exports = {}
    probed = set[tuple[str, str, str]]().union(*(one.probed for one in draft.noted.values()))
    read_on: dict[str, frozenset[str]] = dict.fromkeys(draft.fleet.machines, frozenset())
    joined: dict[tuple[frozenset[str], frozenset[str]], frozenset[str]] = {}
    for several in families.values():
        for family in several:
            names: list[str] = []
            for offer, name in family.program.reads:
                exported = _export_id(offer, name)
                names.append(exported)
                if exported not in found:
                    lifecycle = offer.exports[name].lifecycle
                    if (offer.id, offer.provide, name) in probed:
                        lifecycle = Lifecycle.PROBED
                    access = offer.exports[name].access
                    found[exported] = lifecycle.value, access.value, []
                found[exported][2].extend(ids[family])
            reads = frozenset(names)
            for machine in family.machines if names else ():
                pair = read_on[machine], reads
                if pair not in joined:
                    joined[pair] = pair[0] | reads
                read_on[machine] = joined[pair]
    for _, _, readers in found.values():
        readers.sort()
    return found, read_on
