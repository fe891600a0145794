"""What a look at a reference gives, and from where it is looked at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from keyplane.documents.references import Reference
from keyplane.model.module import Lifecycle
from keyplane.planner.draft import Target
from keyplane.planner.rows import Fault
from keyplane.planner.terms import Lost, Own, Parts

_RANK = {Lifecycle.STATIC: 0, Lifecycle.PROBED: 1, Lifecycle.DYNAMIC: 2}


class FactState(Enum):
    """Why a fact has no value."""

    NONE = "no value"
    WRONG = "of another type"


class Term(NamedTuple):
    """What one reference stands for."""

    parts: Parts
    lifecycle: Lifecycle = Lifecycle.STATIC
    targets: tuple[Target, ...] = ()
    """The placements whose export it is."""


Judge = Callable[[Reference, Term], Parts]
"""What is written for a reference where it stands: its parts, or itself where it is refused."""

LOST = Term((Lost(""),))
Active = frozenset[tuple[str, str, str, str]]


def strongest(lifecycles: list[Lifecycle]) -> Lifecycle:
    return max(lifecycles, key=_RANK.__getitem__, default=Lifecycle.STATIC)


TEXT_MAX = 1 << 20
"""Characters of one text with its references filled in. The kernel takes an eighth of it for a
variable or a word."""
TEXTS_MAX = 16 << 20
"""Characters that the texts of one role come to with all references filled in: what is large is
shipped as a file."""

DEPTH_MAX = 32
"""Exports that are read through one another: real ones go through two or three."""
_CUT_MAX = 1_000
"""Looks that are cut off for one role, after which no further way round a circle is tried."""


@dataclass(slots=True, eq=False)
class Known:
    """What was found out while one role is looked at: each export of each placement once.

    Exports that read two others each would otherwise take the power of two of their number.
    """

    terms: dict[tuple[str, ...], Term] = field(default_factory=dict[tuple[str, ...], Term])
    """By export and place, and who reads it through which slot."""
    cut: int = 0
    """How often a look was cut off: what it gave hangs on the way by which it came."""
    room: int = TEXTS_MAX
    """Characters that are left for the role's texts."""

    def is_deep(self, active: Active) -> bool:
        """Whether a look at one more export goes too far, or ways round circles were enough."""
        return len(active) >= DEPTH_MAX or self.cut >= _CUT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """From where a role is looked at."""

    machine: str | None
    """None: the entry's own."""
    sample: str
    """A machine at which everything is bound as at the own machine."""
    states: Mapping[Own, FactState] = field(default_factory=dict[Own, FactState])
    """Of facts of the own machine that have no value."""
    faults: list[Fault] = field(default_factory=list[Fault])
    """Where faults of the placement are put."""
    active: Active = frozenset()
    """The exports that are being resolved."""
    known: Known = field(default_factory=Known)
