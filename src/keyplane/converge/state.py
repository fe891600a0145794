"""What the brain knows: the ledger, which outlives the agent, and what it sees in this life.

Nothing here decides. The ledger is written down before an effect runs that it speaks of, so it
tells what may be on the machine; what is there in truth is observed, never remembered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from keyplane.converge import reaction_state
from keyplane.converge.effects import Effect, Probe
from keyplane.converge.history import History
from keyplane.model.declaration import (
    NO_OFFER,
    Declaration,
    DeclaredEntry,
    DeclaredUnit,
    EntryReport,
    Health,
    OfferNumber,
    Report,
    Stop,
)
from keyplane.model.fleet import Rates
from keyplane.model.host import ObservedPath, ObservedProcess
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.occurrence import Cause
from keyplane.model.volumes import OldCopy, Saved


class Kind(StrEnum):
    """What can be put at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSpec:
    """What an entry wants at a path."""

    kind: Kind
    digest: Digest | None = None
    mode: str | None = None
    owner: str | None = None
    group: str | None = None
    adopt: bool = False
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A path that we put there, or are about to."""

    entry: EntryId
    spec: PathSpec
    applied: bool = False
    """False from before the effect until it was done: what stands there may be half of it."""
    fresh: bool = False
    """It was never applied yet. A file is written whole or not at all, so what is found at a
    fresh path after a crash is ours only if it is just what was to be written."""
    found: bool = False
    """A directory that was there before us: it is not removed."""
    after: ObservedPath | None = None
    """How it looked once applied. Drift is a difference from this: where an owner cannot be had
    without root, its absence is not found anew in every pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStart:
    """With what a unit is started next, noted before what runs of it is stopped for that.

    A process of it that is not the one that ran then was started with it.
    """

    turn: int
    values: Mapping[str, str]
    loaded: Mapping[str, Digest]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitMemory:
    """What was last run of a unit."""

    digest: Digest
    up: bool = False
    """It was seen to run, and no end of it was counted yet."""
    pid: int | None = None
    """Of the process that was last seen to run."""
    start_ticks: int | None = None
    starts: int = 0
    reloads: int = 0
    deaths: int = 0
    """Ends in a row with no long run between them."""
    down: bool = False
    """It ended by itself, and `restart` says whether it is started again."""
    succeeded: bool = False
    unstartable: bool = False
    """It could not even be executed."""
    last_exit: str | None = None
    cause: str | None = None
    loaded: Mapping[str, Digest] | None = None
    """The configData that it has taken up; None if another life of the agent started it."""
    ports: tuple[int, ...] = ()
    stop_timeout_ms: int = 10_000
    why: Cause | None = None
    """Of its next start, where that is no new declaration."""
    follows: bool = False
    """Its first start takes over from a run of the same unit under another digest."""
    restarts: int = 0
    """Starts of this digest after it had ended without being told to, or for a new value."""
    turn: int | None = None
    """Of the reaction engine, when it was started; None if another life of the agent started it,
    or it has no dynamic value."""
    values: Mapping[str, str] | None = None
    """What it was started with of these."""
    former: "UnitMemory | None" = None
    """Of the version that it takes over from, for as long as that runs beside it."""
    next: NextStart | None = None
    health: Health | None = None
    """How what runs is found healthy; None if it has no check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """The leave to stop an entry that is of a guarded set."""

    name: str
    """Of this one alone: the life of the agent in which it was asked, and a number."""
    up: bool
    """Whether the entry was up when it was asked: what is down is let go at once, and must not be
    stopped by that once it is up."""
    since_ms: int
    """When it was asked, by the machine's clock. For people to read."""
    held: bool = False
    """It was granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryMemory:
    key: Digest
    guarded: bool = False
    """It was of a guarded set when it was declared last."""
    units: Mapping[UnitName, UnitMemory] = field(default_factory=dict[UnitName, UnitMemory])
    done: Mapping[UnitName, tuple[Digest, ...]] = field(
        default_factory=dict[UnitName, tuple[Digest, ...]]
    )
    """The digests under which each run-once job was done, the newest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumesMemory:
    """How far the orders on an entry's volumes were carried out, each by its number."""

    saved: int = 0
    """The last save that came to its end."""
    volumes: Mapping[str, Saved] = field(default_factory=dict[str, Saved])
    problem: str = ""
    """Why that one came to nothing."""
    saving: int = 0
    parts: Mapping[str, Saved] = field(default_factory=dict[str, Saved])
    """What the one under way has saved by now, by path."""
    taken: int = 0
    taking: int = 0
    took: tuple[str, ...] = ()
    """The paths that are what the one under way asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What the agent has put on its machine, and what it must not forget."""

    offer: OfferNumber = NO_OFFER
    """The highest offer that was accepted."""
    paths: Mapping[str, Owned] = field(default_factory=dict[str, Owned])
    entries: Mapping[EntryId, EntryMemory] = field(default_factory=dict[EntryId, EntryMemory])
    stops: Mapping[EntryId, Stop] = field(default_factory=dict[EntryId, Stop])
    """The entries that a person stopped, here or by the controller."""
    words: Mapping[EntryId, int] = field(default_factory=dict[EntryId, int])
    """The number of the controller's last word that was heeded."""
    archives: tuple[Digest, ...] = ()
    """What the last declaration named that settled."""
    former_archives: tuple[Digest, ...] = ()
    """What the one before it named."""
    permits: Mapping[EntryId, Permit] = field(default_factory=dict[EntryId, Permit])
    """Those that are asked for, and those that are held until their entry is up again."""
    volumes: Mapping[EntryId, VolumesMemory] = field(default_factory=dict[EntryId, VolumesMemory])
    copies: Mapping[str, OldCopy] = field(default_factory=dict[str, OldCopy])
    """Data that is not used any more, by where it stands; it outlives its entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLive:
    """What is seen of a unit in this life of the agent."""

    processes: Mapping[Digest, ObservedProcess] = field(
        default_factory=dict[Digest, ObservedProcess]
    )
    of: Digest | None = None
    """The digest of the running process that the fields below speak of."""
    since_ms: int = 0
    probe_ms: int = 0
    """When it is probed next."""
    failures: int = 0
    was_healthy: bool = False
    unhealthy: bool = False
    problem: str | None = None
    retry_ms: int | None = None
    """Not started before."""
    early: ObservedProcess | None = None
    """An end that was told before its start was."""
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """What was found at a path of ours."""

    what: str
    since_ms: int
    repaired_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLive:
    units: Mapping[UnitName, UnitLive] = field(default_factory=dict[UnitName, UnitLive])
    report: EntryReport | None = None
    in_place: bool = False
    """Every path was as declared when last compared, nothing was left over or to be fetched."""
    drift: Mapping[str, Drifted] = field(default_factory=dict[str, "Drifted"])
    """By path, what was found changed under us."""
    wake_ms: int | None = None
    """When it must be looked at again though nothing happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Of an entry of which all is well: it is decided on anew when something happens."""

    until_ms: int | None
    """When something of it is due though nothing happens; None if never."""
    checks: Mapping[str, Probe]
    """Its health checks, by resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """An effect that failed, and when it is tried again."""

    attempts: int
    at_ms: int
    cause: str
    permanent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A declared entry, as it is compared."""

    declared: DeclaredEntry
    paths: Mapping[str, PathSpec]
    """Sorted, so that parents come first."""
    units: tuple[tuple[UnitName, DeclaredUnit], ...]
    """Run-once jobs first, then the others, each by name."""
    tcp_ports: frozenset[int] = frozenset()
    udp_ports: frozenset[int] = frozenset()
    dynamic_paths: tuple[str, ...] = ()
    """Files that are made of dynamic values, once there are any."""

    @property
    def ports(self) -> frozenset[int]:
        return self.tcp_ports | self.udp_ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaved:
    """What was taken in cannot be saved."""

    cause: str
    offer: OfferNumber
    """The highest that was saved: what came since is lost if the agent ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """What the controller was told, and what it is still to be told."""

    sequence: int = 0
    sent: Report | None = None
    """What it has; None if it may have nothing."""
    due_ms: int | None = None
    refused: str | None = None
    unsaved: Unsaved | None = None
    refused_offer: OfferNumber | None = None
    settled: OfferNumber = NO_OFFER
    untried: frozenset[EntryId] = frozenset()
    """Entries of which some effect of the accepted offer was not tried yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All of it. `ledger`, `declaration`, `history` and `reactions` outlive the agent."""

    machine: MachineName
    boot: str
    now_ms: int
    ledger: Ledger
    declaration: Declaration | None
    wanted: Mapping[EntryId, Wanted]
    declared_at: Mapping[str, EntryId]
    """Which entry declares each path."""
    looked: bool = False
    """Whether the machine was observed in this life. Before, nothing is done."""
    seen: Mapping[str, ObservedPath] = field(default_factory=dict[str, ObservedPath])
    unseen: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a path could not be looked at, in the last look."""
    artifacts: frozenset[Digest] = frozenset()
    entries: Mapping[EntryId, EntryLive] = field(default_factory=dict[EntryId, EntryLive])
    in_flight: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    retries: Mapping[str, Retry] = field(default_factory=dict[str, Retry])
    reporting: Reporting = field(default_factory=Reporting)
    history: History = field(default_factory=lambda: History(name=""))
    wall_ms: int = 0
    """What the wall clock shows at monotonic zero. For people to read: nothing is decided by it."""
    next_pass_ms: int = 0
    wake_ms: int | None = None
    reactions: reaction_state.State = field(
        default_factory=lambda: reaction_state.State(rates=Rates())
    )
    """What is known of dynamic values, and what is made of it."""
    intents: int = 0
    """Rises with each step that changes the ledger by more than that something was done."""
    asked: int = 0
    """How many permits were asked for in this life."""
    rests: Mapping[EntryId, Rest] = field(default_factory=dict[EntryId, Rest])
