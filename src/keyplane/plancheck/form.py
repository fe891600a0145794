"""Whether a plan has the form of CONTRACT §4: ids, order of lists, holes, versions."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UnsetType

from keyplane.model import names
from keyplane.model.diagnostic import Diagnostic, in_order
from keyplane.model.plan import FORMAT, Entry, HoleValue, Plan
from keyplane.plancheck.canonical import canonical
from keyplane.plancheck.rows import wrong

Json = Any

CODE = "plan-form"


def check(plan: Plan) -> Iterable[Diagnostic]:
    if plan.format != FORMAT:
        yield wrong(CODE, "plan", "format", f"The format is {plan.format}, not {FORMAT}.")
    if plan.fleet is None and plan.entries:
        yield wrong(CODE, "plan", "fleet", "There are entries, and no fleet that they are of.")
    for entry_id, entry in sorted(plan.entries.items()):
        yield from _check_id(plan, entry_id)
        yield from _check_entry(entry_id, entry)
    for export_id, export in sorted(plan.exports.items()):
        yield from _in_order(export_id, "readers", export.readers)
    edges = [canonical(edge) for edge in plan.edges]
    if edges != sorted(set(edges)):
        yield wrong(CODE, "plan", "edges", "Edges are not in order, or one is there twice.")
    if plan.diagnostics != in_order(plan.diagnostics):
        yield wrong(CODE, "plan", "diagnostics", "Rows are not in order, or one is there twice.")


def _check_id(plan: Plan, entry_id: str) -> Iterable[Diagnostic]:
    instance, role, machine = names.split_entry(entry_id)
    if not all(names.is_name(part) for part in (instance, role, machine)):
        yield wrong(CODE, entry_id, "", f"{entry_id} is not INSTANCE:ROLE@MACHINE.")
    elif machine not in plan.machines:
        yield wrong(CODE, entry_id, "", f"{machine} of {entry_id} is no machine of the plan.")


def _check_entry(entry_id: str, entry: Entry) -> Iterable[Diagnostic]:
    lists: dict[str, Sequence[str] | UnsetType] = {
        "dependencies": entry.dependencies,
        "secrets": entry.secrets,
        "holes": entry.holes,
        "reads": entry.reads,
    }
    for name, items in lists.items():
        if not isinstance(items, UnsetType):
            yield from _in_order(entry_id, name, items)
    requirements = [canonical(one) for one in entry.requirements]
    if requirements != sorted(requirements):
        yield wrong(CODE, entry_id, "requirements", "Requirements are not in order.")
    if entry_id in entry.dependencies:
        yield wrong(CODE, entry_id, "dependencies", f"{entry_id} depends on itself.")
    found = sorted(
        f"{unit_name}.{name}"
        for unit_name, unit in entry.units.items()
        for values in (unit.env, unit.config_data)
        for name, value in values.items()
        if isinstance(value, HoleValue)
    )
    if found != sorted(entry.holes):
        said = f"Holes are listed as {entry.holes}; the units have {found}."
        yield wrong(CODE, entry_id, "holes", said)


def _in_order(subject: str, path: str, items: Sequence[str]) -> Iterable[Diagnostic]:
    if list(items) != sorted(set(items)):
        yield wrong(CODE, subject, path, f"{path} is not in order, or names one twice.")
