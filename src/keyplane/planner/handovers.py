"""Whether a unit may run twice for a while, as it is handed over to its next version or successor.

Two runs of one unit have the same data and the same ports. Where that cannot be, the old one is
stopped first, whatever the unit asks for; the plan says so.
"""

from collections.abc import Collection, Mapping

from keyplane.model.diagnostic import Severity
from keyplane.model.module import Role
from keyplane.planner.rows import ENTRY, Fault
from keyplane.planner.terms import Tree

START_FIRST = "start-first"


def stops_first(role: Role) -> str:
    """What of the role allows no second run; empty if nothing does.

    A port that is assigned may be shared by a program that asks its kernel for that. One that its
    protocol fixes is a claim of one holder.
    """
    found = [f"volume {name}" for name in sorted(role.volumes)]
    fixed = {one.port for one in role.listens.values() if one.port is not None}
    found += [f"port {port}" for port in sorted(fixed)]
    return ", ".join(found)


def overruled(role: Role, unit: str, live: Mapping[str, Tree]) -> tuple[str, list[Fault]]:
    """Why a unit that asks to be started first is not, and a row for each field that asks."""
    why = stops_first(role)
    asked = {"handover": "its former version"} if live.get("handover") == START_FIRST else {}
    if isinstance(live.get("replaces"), str):
        asked["replaces"] = live["replaces"]
    if not why or not asked:
        return "", []
    return why, [
        Fault(
            code="stop-first",
            path=f"units.{unit}.{field}",
            message=f"{unit} of {ENTRY} is started once {old} has stopped, not before: only one of "
            f"them can have {why}",
            resolution=(f"go on, or leave {field} out: it comes to the same",),
            severity=Severity.INFO,
        )
        for field, old in asked.items()
    ]


def in_vain(unit: str, live: Mapping[str, Tree], declared: Collection[str]) -> list[Fault]:
    """A row where a unit is to take over from one that is declared beside it."""
    former = live.get("replaces")
    if former not in declared:
        return []
    return [
        Fault(
            code="replaces-declared",
            path=f"units.{unit}.replaces",
            message=f"{unit} of {ENTRY} replaces {former}, which is declared too: both run",
            resolution=(
                f"leave units.{former} out: it is removed once {unit} is healthy",
                f"or leave units.{unit}.replaces out",
            ),
            severity=Severity.WARNING,
        )
    ]
