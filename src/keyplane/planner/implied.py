"""Roles that are evaluated before it is known whether anything implies them.

Whether a machine fits a role by `count` hangs on what its provider would require there.
"""

from keyplane.model.module import Module
from keyplane.planner import notes, read
from keyplane.planner.draft import Assignment, Draft


def would_be(draft: Draft, module: Module, role_name: str) -> Assignment:
    """The assignment that an implied entry would be one of; it joins the others by being implied."""
    name = f"{module.name}:{role_name}"
    found = draft.assignments.get(name) or draft.would_be.get(name)
    if found is None:
        found = read.assign(draft, module.name, module, role_name, placed=False)
        draft.would_be[name] = found
        read.evaluate_role(draft, found)
    return found


def forget(draft: Draft) -> None:
    """Of those that came to nothing, no row is left."""
    for name in draft.would_be.keys() - draft.assignments.keys():
        del draft.noted[notes.of_role(name)]
    draft.would_be.clear()
