"""What an entry was before a rollout that nobody saw well."""

from dataclasses import dataclass

from keyplane.model.plan import Edge
from keyplane.rollout.planned import MixedEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuge:
    planned: MixedEntry | None
    """None: it was not there."""
    edges: tuple[Edge, ...] = ()
    """Of it as a consumer, as it was then."""
    was_ill: bool = False
    """It was not well then either, and need not be so to be as it was."""
