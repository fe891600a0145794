"""What the watch knows of a machine."""

from dataclasses import dataclass, field

from keyplane.converge.state import Ledger
from keyplane.model.declaration import NO_OFFER, Declaration, OfferNumber
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.testing.host import MemoryHost
from keyplane.testing.simulation.host import ProcessKey
from keyplane.testing.simulation.watch_words import WordWatch


@dataclass(slots=True)
class KnownMachine:
    """What is known of a machine, by what was written on it."""

    memory: MemoryHost
    current: Declaration | None = None
    former: list[tuple[float, Declaration | None]] = field(
        default_factory=list[tuple[float, Declaration | None]]
    )
    """Declarations, and until when each was the accepted one."""
    ledger: Ledger | None = None
    accepted: OfferNumber = NO_OFFER
    foreign: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Files of somebody else."""
    ends: dict[tuple[int, Digest], tuple[float, bool]] = field(
        default_factory=dict[tuple[int, Digest], tuple[float, bool]]
    )
    """When a process ended, and whether nobody was told."""
    stopped: dict[EntryId, None] = field(default_factory=dict[EntryId, None])
    """By a person, since that was saved first."""
    noted: tuple[str, int] = ("", 0)
    """The history, and the number of the last occurrence in it."""
    words: WordWatch = field(default_factory=WordWatch)
    tries: dict[tuple[EntryId, UnitName], list[float]] = field(
        default_factory=dict[tuple[EntryId, UnitName], list[float]]
    )
    """Lately, starts on a port that somebody else has."""
    refused: dict[tuple[EntryId, UnitName], tuple[Digest, str]] = field(
        default_factory=dict[tuple[EntryId, UnitName], tuple[Digest, str]]
    )
    """Units whose last start found a port taken, and by whom."""
    held_until: float = 0.0
    """Effects may have waited so long for a disk that was full."""
    forgot: bool = False
    """Its agent lost its ledger once, and does not know which of two versions was there first."""
    began: dict[ProcessKey, float] = field(default_factory=dict[ProcessKey, float])
    """When each process that runs was first seen to."""
