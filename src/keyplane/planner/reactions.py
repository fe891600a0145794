"""Reactions that are declared for values which only ever change by generation."""

from collections.abc import Sequence

from keyplane.model.diagnostic import Severity
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.program import Family


def check(draft: Draft, assignment: Assignment, families: Sequence[Family]) -> None:
    """A row for each reaction whose value is on the dynamic plane in no entry of the role.

    A warning where a unit reads the value: one module may serve static and dynamic providers.
    """
    if not families:
        return
    programs = [family.program for family in families]
    dynamic = frozenset[str]().union(*(program.dynamic_paths for program in programs))
    by_units = frozenset[str]().union(*(program.unit_paths for program in programs))
    for path in sorted(assignment.role.reactions):
        slot_name = path.partition(".")[0]
        secret = slot_name == "secrets" and slot_name not in assignment.role.uses
        if path in dynamic or not _names_something(draft, assignment, path):
            continue
        if secret:
            if path in by_units:
                continue
            plane = "no unit reads the secret"
        else:
            slot = assignment.slot(slot_name)
            if slot is None or any(family.bindings[slot.index] is None for family in families):
                continue
            plane = (
                "the value changes by generation, and the diff already restarts what it has to"
                if path in by_units
                else "no unit reads the value"
            )
        draft.rows.add(
            "reaction-unused",
            assignment.id,
            f"reactions.{path}",
            f"reactions.{path} of {assignment.id} is declared, and {path} is on the dynamic plane "
            f"nowhere: {plane}",
            f'take reactions."{path}" out',
            severity=Severity.WARNING if path in by_units else Severity.ERROR,
        )


def _names_something(draft: Draft, assignment: Assignment, path: str) -> bool:
    """What names nothing has a row of its own."""
    slot, _, name = path.partition(".")
    uses = assignment.role.uses.get(slot)
    if uses is None:
        return slot == "secrets" and name in assignment.role.secrets
    interface = draft.interfaces.get(uses.interface)
    return interface is not None and name in interface.exports
