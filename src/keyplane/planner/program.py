"""What was derived for entries that are bound alike: where each value goes, on which plane.

Trees are filled but for the values of the entry's own machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from keyplane.model.module import Json
from keyplane.planner.compiled import CompiledBody
from keyplane.planner.draft import Assignment, Bindings, Offer, Target
from keyplane.planner.looks import FactState
from keyplane.planner.terms import Hole, Live, Own, Parts, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A dynamic value: what no plan can hold."""

    lives: tuple[Live, ...]
    template: Parts | None
    reaction: str | None
    on_missing: Json
    max_staleness: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A value that waits for a fact."""

    hole: Hole
    template: Parts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitProgram:
    """One unit. A value stands in exactly one of the maps of its plane."""

    name: str
    kind: str
    fields: Mapping[str, Tree]
    """Of the closure, by their names on the wire."""
    env: Mapping[str, Tree | Gap]
    configs: Mapping[str, Parts | str | Gap]
    """A text that is not whole yet, the digest of one that is, or a gap."""
    dynamic: Mapping[str, Contract]
    live: Mapping[str, Tree]
    artifacts: tuple[str, ...]
    targets: tuple[Target, ...]
    """Providers whose values travel on its closure or env plane, and whose keys count."""
    holes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Everything of an entry but what its machine gives."""

    units: tuple[UnitProgram, ...]
    resources: Mapping[str, Tree]
    volumes: Mapping[str, Tree]
    listens: Mapping[str, Tree]
    requirements: tuple[Mapping[str, Tree], ...]
    artifacts: Mapping[str, str]
    targets: tuple[Target, ...]
    requests: Mapping[str, Mapping[str, Tree]]
    """By slot."""
    extras: Mapping[str, Tree]
    """What the agent needs beside the units, by field of the plan's entry."""
    dynamic_paths: frozenset[str]
    """`SLOT.EXPORT` of each value that came out dynamic, refused or not."""
    unit_paths: frozenset[str]
    """`SLOT.EXPORT` and `secrets.NAME` of each value that a unit reads."""
    reads: tuple[tuple[Offer, str], ...]
    """The exports that the entry reads."""


@dataclass(slots=True, kw_only=True, eq=False)
class Family:
    """Entries of one assignment that are bound alike."""

    assignment: Assignment
    bindings: Bindings
    machines: list[str]
    """By name."""
    states: Mapping[Own, FactState] = field(default_factory=dict[Own, FactState])
    body: CompiledBody = field(init=False)
    program: Program = field(init=False)
    owns: tuple[Own, ...] = ()
    """The values of the own machine that the program waits for."""


Families = Mapping[str, list[Family]]
"""By `INSTANCE:ROLE`, in order."""
