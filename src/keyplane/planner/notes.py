"""What one step of planning leaves beside the draft: rows, contents, and the facts it looked at.

Steps are kept apart, so that one of them can be done again and its notes replaced.
"""

from dataclasses import dataclass, field

from keyplane.planner.rows import Rows


@dataclass(slots=True, kw_only=True, eq=False)
class Notes:
    rows: Rows = field(default_factory=Rows)
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By digest."""
    probed: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    """Static exports that turned out to read a probed value: role, provide, export."""
    facts: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Machine and fact, of each value that went into the answer as it is."""


STRUCTURE = ("structure", "")
"""The step that reads, places, binds and allocates."""


CONFLICTS = ("conflicts", "")


def of_role(role: str) -> tuple[str, str]:
    """Settings and evaluation of a role."""
    return "role", role


def of_external(name: str) -> tuple[str, str]:
    return "external", name


def of_members(role: str, members: object) -> tuple[str, str]:
    """What the function of a role made of one set of members."""
    return "members", f"{role} {members}"


def of_deriving(role: str) -> tuple[str, str]:
    return "deriving", role
