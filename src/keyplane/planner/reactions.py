"""Reactions that are declared for values which only ever change by generation."""

import json
import re
from collections.abc import Mapping, Sequence

from keyplane.model.diagnostic import Severity
from keyplane.model.module import Json
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.program import Family

_REFERENCE = re.compile(r"\$\{((?:results|secrets)\.[^}]*)\}")


def check(draft: Draft, assignment: Assignment, families: Sequence[Family]) -> None:
    """A row for each reaction whose value is on the dynamic plane in no entry of the role.

    A warning where a unit reads the value: one module may serve static and dynamic providers.
    """
    if not families:
        return
    programs = [family.program for family in families]
    dynamic = frozenset[str]().union(*(program.dynamic_paths for program in programs))
    by_units = frozenset[str]().union(*(program.unit_paths for program in programs))
    unread = _unread(draft, assignment)
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
        if path not in by_units and path in unread:
            continue
        draft.rows.add(
            "reaction-unused",
            assignment.id,
            f"reactions.{path}",
            f"reactions.{path} of {assignment.id} is declared, and {path} is on the dynamic plane "
            f"nowhere: {plane}",
            f'take reactions."{path}" out',
            severity=Severity.WARNING if path in by_units else Severity.ERROR,
        )


def _unread(draft: Draft, assignment: Assignment) -> frozenset[str]:
    """The paths of the values that stand in units, or parts of them, that could not be read."""
    role = assignment.module.file, assignment.role_name
    found = draft.unread.get(role)
    if found is None:
        dropped = draft.request.documents.dropped.get(assignment.module.file, {})
        found = draft.unread[role] = _paths_in(dropped, assignment.role_name)
    return found | _paths_in(assignment.dropped, assignment.role_name)


def _paths_in(dropped: Mapping[tuple[str, ...], Json], role: str) -> frozenset[str]:
    units = ("roles", role, "units")
    found: set[str] = set()
    for place, written in dropped.items():
        if place[:3] == units[: len(place)]:
            for inner in _REFERENCE.findall(json.dumps(written, ensure_ascii=False)):
                root, *path = inner.split(".")
                found.add(f"{path[0]}.{path[-1]}" if root == "results" else inner)
    return frozenset(found)


def _names_something(draft: Draft, assignment: Assignment, path: str) -> bool:
    """What names nothing has a row of its own."""
    slot, _, name = path.partition(".")
    uses = assignment.role.uses.get(slot)
    if uses is None:
        return slot == "secrets" and name in assignment.role.secrets
    interface = draft.interfaces.get(uses.interface)
    return interface is not None and name in interface.exports
