"""What machines say of themselves, where it meets a fleet's text: as facts, and as rows.

A file of facts in the directory stands where its machine said nothing: fact by fact, what its agent
said counts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from keyplane import planner
from keyplane.model import facts
from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.documents import Documents
from keyplane.model.facts import Facts
from keyplane.model.fleet import FactSnapshot
from keyplane.model.names import MachineName
from keyplane.planner.request import PlanRequest
from keyplane.ports import fact_order
from keyplane.ports.fact_order import StoredFacts

Json = Any
Known = Mapping[MachineName, StoredFacts]
Values = Mapping[str, Json]
"""By name; None for a fact that is gone."""

TOLD_MAX = 4
"""Facts that a line names."""

_OF_REQUIREMENTS = frozenset({"requirement-unmet", "placement-short", "wrong-type"})
"""With none of these no error row stems from a fact; the rest follows from them."""


def known(facts: Mapping[str, Values]) -> Known:
    """What machines are known by, of values that plans are to go by."""
    return {
        MachineName(name): fact_order.taken(
            fact_order.after(None, MachineName(name), said, 0), said
        )
        for name, said in facts.items()
    }


def merged(documents: Documents, machines: Known) -> Documents:
    """The documents with what plans go by of what their machines said."""
    if documents.fleet is None:
        return documents
    snapshots = dict(documents.facts)
    for name in documents.fleet.machines.keys() & machines.keys():
        said = machines[MachineName(name)].planned
        if not said:
            continue
        file = snapshots.get(name)
        snapshots[name] = FactSnapshot(
            machine=name,
            facts=said if file is None else Facts({**file.facts, **said}),
            at="" if file is None else file.at,
        )
    return replace(documents, facts=dict(sorted(snapshots.items())))


def rows(request: PlanRequest, found: list[Diagnostic]) -> frozenset[Diagnostic]:
    """The error rows that are none of the documents: with other facts they would not be there.

    Found by planning once more, as if nothing were known and every requirement met.
    """
    errors = [row for row in found if row.severity is Severity.ERROR]
    if not any(row.code in _OF_REQUIREMENTS for row in errors):
        return frozenset()
    documents = replace(request.documents, facts={})
    ideal = planner.plan(replace(request, documents=documents, all_met=True)).plan
    standing = {_place(row) for row in ideal.diagnostics if row.severity is Severity.ERROR}
    return frozenset(row for row in errors if _place(row) not in standing)


def taken(machines: Known, values: Mapping[MachineName, Values]) -> dict[MachineName, StoredFacts]:
    """What is known once plans go by these values."""
    return {
        machine: fact_order.taken(stored, values[machine]) if machine in values else stored
        for machine, stored in machines.items()
    }


def are_said(machines: Known, machine: MachineName, values: Values) -> bool:
    """Whether a machine still says all of these, and plans do not go by them."""
    stored = machines.get(machine)
    return stored is not None and all(
        name in stored.moved and fact_order.same(stored.facts[name].value, value)
        for name, value in values.items()
    )


def without(
    values: Mapping[MachineName, Values], others: Mapping[MachineName, Values]
) -> dict[MachineName, Values]:
    """Those of the first that are not among the second."""
    left = {
        machine: {name: v for name, v in said.items() if name not in others.get(machine, {})}
        for machine, said in values.items()
    }
    return {machine: said for machine, said in left.items() if said}


def one_by_one(values: Mapping[MachineName, Values]) -> Iterator[dict[MachineName, Values]]:
    for machine, said in sorted(values.items()):
        for name in sorted(said):
            yield {machine: {name: said[name]}}


def together(
    one: Mapping[MachineName, Values], other: Mapping[MachineName, Values]
) -> dict[MachineName, Values]:
    return {
        machine: {**one.get(machine, {}), **other.get(machine, {})}
        for machine in sorted(one.keys() | other.keys())
    }


def of_others(
    values: Mapping[MachineName, Values], machines: Collection[MachineName]
) -> dict[MachineName, Values]:
    return {machine: said for machine, said in values.items() if machine not in machines}


def said_in(read: Iterable[tuple[str, str]]) -> Callable[[str], frozenset[str]]:
    """By machine: the facts in which it says those on which a plan hangs."""
    found: dict[str, set[str]] = {}
    for machine, fact in read:
        found.setdefault(machine, set()).update((fact, facts.said_in(fact)))
    return lambda machine: frozenset(found.get(machine, ()))


def told(values: Mapping[MachineName, Values]) -> str:
    """For people: `os.version of alpha`; of many how many."""
    said = [
        f"{name} of {machine}" for machine, each in sorted(values.items()) for name in sorted(each)
    ]
    more = len(said) - TOLD_MAX
    return ", ".join(said[:TOLD_MAX]) + (f" and {more} more" if more > 0 else "")


def softened(row: Diagnostic) -> Diagnostic:
    """As it is shown to whoever applies: it holds what it is about, and nothing else."""
    return msgspec.structs.replace(row, severity=Severity.WARNING)


def _place(row: Diagnostic) -> tuple[str, str, str]:
    return row.code, row.subject, row.path
