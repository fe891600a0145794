"""What people ask of what happened to entries, and what they are told."""

from typing import Annotated

import msgspec

OCCURRENCES_MAX = 10_000
"""In one answer: some two megabytes."""


class OccurrencesAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to an entry, or on a machine; one of both is given."""

    entry: str | None = None
    machine: str | None = None
    after: int = 0
    """The id of one that is known already."""
    since_ms: int = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=OCCURRENCES_MAX)] = 100
    """The newest so many."""


class OccurrenceRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    number: int
    at_ms: int
    machine: str
    entry: str
    """Empty where it is of the machine as a whole, as a gap is."""
    unit: str
    act: str
    cause: str
    detail: str


class Occurrences(msgspec.Struct, frozen=True, kw_only=True):
    occurrences: list[OccurrenceRow]
