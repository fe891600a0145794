"""What `keyplane machine` shows: what a machine is, runs, and takes from other machines.

Computed from the text of the target's revision and from reports. Reads; changes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping

from keyplane.model.documents import Documents
from keyplane.model.fleet import FactSnapshot, Machine
from keyplane.model.names import MachineName, split_entry
from keyplane.model.plan import Edge, Plan
from keyplane.parts import control_messages as messages
from keyplane.parts import status
from keyplane.parts.status import Known
from keyplane.planner.explain import Explained
from keyplane.ports.fact_order import StoredFact, StoredFacts
from keyplane.ports.inventory import StoredPlan

_PROVIDES = "/provides/"


def names(target: StoredPlan | None, documents: Documents, known: Known) -> list[MachineName]:
    """Those of the text, and those that have something though no text names them."""
    said = dict[str, Machine]() if documents.fleet is None else documents.fleet.machines
    planned = target.plan.machines if target else {}
    having = (name for name, stored in known.reports.items() if stored.report.entries)
    return sorted({*map(MachineName, (*said, *planned)), *having})


def rows(
    target: StoredPlan | None, documents: Documents, known: Known
) -> list[messages.MachineRow]:
    """A row for each machine, by name."""
    here = _by_machine(status.entries(target, known))
    return [
        messages.MachineRow(
            machine=name,
            status=status.machine_status(name, known),
            entries=len(here.get(name, [])),
            well=sum(map(status.is_well, here.get(name, []))),
            said=_said(_document(documents, name)),
        )
        for name in names(target, documents, known)
    ]


def view(
    name: MachineName,
    target: StoredPlan | None,
    documents: Documents,
    known: Known,
    explained: Mapping[str, list[Explained]],
) -> messages.MachineView:
    """`explained` has the values of each entry of the machine."""
    facts = known.facts.get(name)
    snapshot = documents.facts.get(name)
    said = dict[str, StoredFact]() if facts is None else facts.facts
    now = {fact: each.value for fact, each in said.items() if each.value is not None}
    files = {} if snapshot is None else {f: v for f, v in snapshot.facts.items() if f not in said}
    moved = () if facts is None else facts.moved
    plan = target.plan if target else None
    return messages.MachineView(
        machine=name,
        status=status.machine_status(name, known),
        said=_said(_document(documents, name)),
        entries=_by_machine(status.entries(target, known)).get(name, []),
        edges=[] if plan is None else list(_edges(plan, name)),
        takes=sorted(
            (
                taken
                for entry, found in explained.items()
                for row in found
                for taken in _taken(entry, name, row)
            ),
            key=lambda each: (each.entry, each.provider, each.export, each.unit or "", each.name),
        ),
        facts=dict(sorted({**files, **now}.items())),
        facts_at=_facts_at(snapshot, facts),
        facts_since={fact: status.time_of(said[fact].since_ms) for fact in sorted(now)},
        facts_planned={fact: said[fact].planned for fact in moved},
    )


def _facts_at(snapshot: FactSnapshot | None, facts: StoredFacts | None) -> str | None:
    if facts is not None:
        return status.time_of(facts.at_ms)
    return None if snapshot is None else snapshot.at


def _document(documents: Documents, name: str) -> Machine | None:
    return None if documents.fleet is None else documents.fleet.machines.get(name)


def _said(machine: Machine | None) -> messages.MachineSaid | None:
    if machine is None:
        return None
    return messages.MachineSaid(
        address=machine.address,
        tags=list(machine.tags),
        platform=machine.platform,
        local=machine.local,
        pins=dict(sorted(machine.pins.items())),
    )


def _by_machine(
    entries: Iterable[messages.EntryStatus],
) -> dict[str, list[messages.EntryStatus]]:
    found: dict[str, list[messages.EntryStatus]] = {}
    for entry in entries:
        found.setdefault(entry.machine, []).append(entry)
    return found


def _edges(plan: Plan, machine: str) -> Iterator[messages.MachineEdge]:
    """Those of its entries whose provider is elsewhere."""
    for edge in plan.edges:
        provider = _machine_of(edge.provider)
        if _machine_of(edge.consumer) == machine and provider != machine:
            yield _edge(edge, provider)


def _edge(edge: Edge, machine: str | None) -> messages.MachineEdge:
    return messages.MachineEdge(
        entry=edge.consumer,
        slot=edge.slot,
        provider=edge.provider,
        machine=machine,
        provide=edge.provide,
        chosen=edge.chosen,
    )


def _taken(entry: str, machine: str, row: Explained) -> Iterator[messages.Taken]:
    """The exports of other machines, and of externals, that a value is made of."""
    for source in [row.from_] if isinstance(row.from_, str) else row.from_:
        provider, provides, export = source.partition(_PROVIDES)
        place = _machine_of(provider)
        if provides and place != machine:
            yield messages.Taken(
                entry=entry,
                unit=row.unit,
                name=row.name,
                plane=row.plane.value,
                lifecycle=row.lifecycle,
                provider=provider,
                machine=place,
                export=export,
                value=row.value,
                cost=row.cost,
            )


def _machine_of(entry: str) -> str | None:
    """None for an external, which is on none."""
    return split_entry(entry)[2] if "@" in entry else None
