"""How many entries and edges a plan may hold. A short document can ask for any number of them.

What does not fit is refused as a whole, with a row, before anything is made of it: a role is not
placed, or binds nothing. The rest of the plan is as it would be without.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from keyplane.model.module import Role
from keyplane.planner.rows import Rows

ENTRIES_MAX = 1_000_000
"""Entries and the listens of each: five times a fleet of 4,000 machines with 25 services each. At
some 3 KiB an entry that is as much memory as a machine that plans can be asked for."""
EDGES_MAX = 1_000_000
"""A set of a thousand members that a thousand entries read: 140 MB of the printed plan, and half a
gigabyte of memory."""


@dataclass(slots=True, kw_only=True)
class Room:
    """What of a plan is taken."""

    entries: int = 0
    edges: int = 0

    def take_entries(self, role: Role, count: int) -> bool:
        """Whether so many entries of a role fit in; if so they are counted."""
        wanted = self.entries + count * (1 + len(role.listens))
        if wanted > ENTRIES_MAX:
            return False
        self.entries = wanted
        return True

    def take_edges(self, count: int) -> bool:
        if self.edges + count > EDGES_MAX:
            return False
        self.edges += count
        return True


def refuse_placement(rows: Rows, name: str, path: str, role: Role, count: int) -> None:
    listens = f" and {count * len(role.listens)} listens" if role.listens else ""
    rows.add(
        "placement-short",
        name,
        path,
        f"{name} would be {count} {'entry' if count == 1 else 'entries'}{listens}, and is not "
        f"placed: a plan holds no more than {ENTRIES_MAX} entries and listens",
        f"place {name} on fewer machines",
        "or part the fleet in several",
    )


def refuse_edges(rows: Rows, name: str, slots: Mapping[str, int], entries: int) -> None:
    """`slots` says how many edges each would have, as far as they were counted."""
    widest = max(slots, key=lambda slot: (slots[slot], slot))
    rows.add(
        "count-out-of-bounds",
        name,
        f"uses.{widest}",
        f"the {entries} {'entry' if entries == 1 else 'entries'} of {name} would have "
        f"{sum(slots.values())} edges or more, most of them for slot {widest}, and are bound to "
        f"nothing: a plan holds no more than {EDGES_MAX} edges",
        f"let fewer entries read slot {widest}, or fewer answer it",
        "or let one provider gather what all of them say",
    )
