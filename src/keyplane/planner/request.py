"""What the planner is asked, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from keyplane.documents.evaluation import Evaluate
from keyplane.model.documents import Documents
from keyplane.model.plan import Plan

Digests = Mapping[str, Mapping[str, str]]
"""By `INSTANCE:ROLE`, then entry: the hash of its canonical JSON. Plans share what is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """All that a plan is a function of."""

    documents: Documents
    evaluate: Evaluate
    """Called for roles with `impl` only."""
    previous: Plan | None = None
    """Placements and ports are kept from it."""
    cordoned: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Machines on which nothing new is placed by count; True: and nothing stays that is."""
    all_met: bool = False
    """Take every requirement as met: what is wrong then is wrong with the documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """A plan, and what it names by digest only."""

    plan: Plan
    contents: Mapping[str, bytes]
    """The bytes behind each digest of configData, resource files and shipped unit files."""
    grants: Mapping[str, Mapping[str, bytes]]
    """By entry, then path: what the consumers of a provide with `grants` ask, as canonical JSON."""
    machines: Mapping[str, str] = field(default_factory=dict[str, str])
    """By machine: the hash of all that the plan says of it."""
    facts: frozenset[tuple[str, str]] = frozenset()
    """Machine and fact, of each on which the plan hangs; at least those. Of a plan that is made as
    a whole only."""
    digests: Digests = field(default_factory=dict[str, Mapping[str, str]])
    """What the plan says of each entry, hashed. `compare.diff` takes it to save time."""
