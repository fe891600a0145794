"""What people's commands and the controller say to each other of volumes."""

import msgspec


class BackupRow(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry's volumes held at one time."""

    backup: int
    """Its number, by which it is restored or forgotten."""
    entry: str
    at_ms: int
    who: str
    why: str
    """`backup`, or `handed over to ENTRY`."""
    volumes: dict[str, str]
    """By name: the digest under which the store has it."""
    size: int
    """Bytes, uncompressed."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that comes to a machine while its data is elsewhere."""

    entry: str
    source: str | None
    """Who has the data now, and goes."""
    volumes: dict[str, str]
    """Path by name."""
    choice: str | None = None
    """What was said of it; null: nothing yet, and nothing is applied before."""
    backup: BackupRow | None = None
    """What is restored: the one that was named, or the newest."""


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that comes to where another has its data, at the same paths, and goes."""

    entry: str
    of: str
    """Who leaves it there."""
    volumes: dict[str, str]
    """Path by name."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    backup: int
    entry: str


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The last that was asked of an entry, and came to nothing."""

    backup: int
    entry: str
    problem: str


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """Data on a machine that is not used any more."""

    machine: str
    path: str
    entry: str
    since_ms: int
    why: str


class Backups(msgspec.Struct, frozen=True, kw_only=True):
    backups: list[BackupRow]
    """The newest first."""
    pending: list[Pending] = []
    failed: list[Failed] = []
    copies: list[Copy] = []


class BackUp(msgspec.Struct, frozen=True, kw_only=True):
    """Stop the entry, save its volumes, start it again."""

    entry: str
    who: str = ""


class Forget(msgspec.Struct, frozen=True, kw_only=True):
    """Let go of a backup."""

    backup: int
    who: str = ""
