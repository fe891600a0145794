"""What happens to the data of an entry: it is saved, given away, or taken from elsewhere.

Volumes are known by their paths here: an entry's declaration has nothing else of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from keyplane.model.names import Digest, EntryId


class Choice(StrEnum):
    """What a person wants to become of the data of an entry that goes to another machine."""

    HAND_OVER = "hand-over"
    """It is stopped where it is, and starts at the new place with all that it has."""
    RESTORE = "restore"
    """It starts with what a backup holds."""
    EMPTY = "start-empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveOrder:
    """Stop the entry, put its volumes into the store, and start it again."""

    number: int
    """Rises with each order; an agent carries each out once."""
    paths: tuple[str, ...]
    gives: bool = False
    """It stays stopped: its data goes on elsewhere."""
    to: str = ""
    """Where; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOrder:
    """Before anything of the entry starts, its volumes become this."""

    number: int
    contents: Mapping[str, Digest | None] | None = None
    """By path: an archive of the store, or None for an empty volume. None as a whole: what it is
    to be is not known yet, and the entry waits."""
    keeps: bool = False
    """What stands there is used again, also where it was given away."""
    source: str = ""
    """Whence; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A volume's content in the store."""

    digest: Digest
    size: int
    """Bytes of the uncompressed tar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumesReport:
    """How an entry stands with the orders on its volumes."""

    saved: int = 0
    """The number of the last save that came to its end, well or not."""
    volumes: Mapping[str, Saved] = field(default_factory=dict[str, Saved])
    """What that one saved, by path; empty if it came to nothing."""
    problem: str = ""
    """Why it did."""
    given: int = 0
    """The number of the order by which its data was given away, as long as it is."""
    taken: int = 0
    """The number of the last take that was carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldCopy:
    """A volume's data on a machine that is not used any more, and never by mistake."""

    entry: EntryId
    volume: str
    """The path of the volume that it was."""
    since_ms: int
    """By the machine's clock."""
    number: int
    """Of the order that made it one."""
    why: str


def given_away(copies: Mapping[str, OldCopy]) -> frozenset[EntryId]:
    """Entries of which an old copy stands where their volume was, by where it stands."""
    return frozenset(each.entry for path, each in copies.items() if path == each.volume)


class OrderKind(StrEnum):
    SAVE = "save"
    GIVE = "give"
    TAKE = "take"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeOrder:
    """An order on an entry's volumes, as it stands in the inventory until it is carried out."""

    entry: EntryId
    kind: OrderKind
    number: int
    who: str
    at_ms: int
    volumes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path by name."""
    other: EntryId | None = None
    """To whom it is given, or from whom it is taken."""
    contents: Mapping[str, Digest | None] | None = None
    keeps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedVolume:
    name: str
    path: str
    digest: Digest
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What an entry's volumes held at one time, all of them together."""

    number: int
    """Of the order that it was made for; what it is called by."""
    entry: EntryId
    at_ms: int
    who: str
    why: str
    """`backup`, or `handed over to ENTRY`."""
    volumes: tuple[SavedVolume, ...]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.volumes)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderChange:
    """Orders that are written and dropped at once."""

    put: tuple[VolumeOrder, ...] = ()
    """Each in place of one of that kind on that entry."""
    drop: tuple[VolumeOrder, ...] = ()
    """Each if it still is that one, by its number."""
    fill: tuple[VolumeOrder, ...] = ()
    """Each in place of the one of that number, if that still stands."""
