"""What people are told of the artifact store."""

import msgspec


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One archive of the store."""

    digest: str
    size: int
    made_ms: int | None
    """When Keyplane packed it; None: that is not recorded, so it is never let go."""
    held_by: list[str]
    """Generations and machines that name it."""
    goes: bool
    """The next sweep lets go of it."""


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    archives: list[Held]
    removed: list[str]
    """What this sweep let go."""
    automatic: bool
    """Whether a sweep follows each apply."""
