"""What one machine is offered: whole, never a delta; and what it says back.

A declaration is complete: the agent chooses nothing. Everything is resolved: no reference, no
artifact name, only digests, numbers and paths. It is encoded by `wire`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.occurrence import Occurrence
from keyplane.model.reaction import Contract, DeclaredRates, Publication
from keyplane.model.volumes import OldCopy, SaveOrder, TakeOrder, VolumesReport

Json = Any


@dataclass(frozen=True, slots=True, order=True)
class OfferNumber:
    """Which offer a declaration is. The epoch rises only after the inventory was lost or restored."""

    epoch: int
    counter: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.counter}"


NO_OFFER = OfferNumber(0, 0)
"""The number of a machine that was never offered anything."""


class Restart(StrEnum):
    """When a process that ended is started again."""

    ALWAYS = "always"
    ON_FAILURE = "on-failure"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a unit is found healthy. Exactly one of the first three is given."""

    http: str | None = None
    tcp: str | None = None
    """`HOST:PORT`."""
    command: tuple[str, ...] | None = None
    interval_ms: int = 1_000
    timeout_ms: int = 5_000
    retries: int = 3
    """So many failures in a row make a healthy unit unhealthy."""
    start_period_ms: int = 30_000
    """Failures within it count for nothing while the unit was never healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """How a unit takes up new configData. Exactly one is given."""

    signal: str | None = None
    """Without `SIG`, as in `HUP`."""
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    digest: Digest
    mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredUnit:
    """A process or a job that is to run. Kinds that an agent cannot run are refused at the plan."""

    digest: Digest
    """The unit is restarted when this moves, and for no other edit."""
    kind: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    config: Mapping[str, ConfigFile] = field(default_factory=dict[str, ConfigFile])
    """By absolute path; contents stand in the declaration's `contents`."""
    archive: Digest | None = None
    """Unpacked, and the working directory."""
    user: str | None = None
    working_directory: str | None = None
    limits: Mapping[str, Json] = field(default_factory=dict[str, Json])
    run_once: bool = False
    health: Health | None = None
    reload: Reload | None = None
    restart: Restart = Restart.ALWAYS
    stop_timeout_ms: int = 10_000
    dynamic: Mapping[str, Contract] = field(default_factory=dict[str, Contract])
    """What comes by the bus while it runs: by variable, or by path for configData."""
    start_first: bool = False
    """Its former version is stopped once this one is healthy, and not before it starts."""
    replaces: UnitName | None = None
    """A unit of the entry that is declared no more, and is removed once this one is healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredFile:
    digest: Digest
    mode: str = "0644"
    owner: str | None = None
    group: str | None = None
    adopt: bool = False
    """A file that was there before and is not ours is replaced, where it is else refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredDirectory:
    mode: str = "0755"
    owner: str | None = None
    group: str | None = None
    keep: bool = False
    """A volume: its content is never removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredArchive:
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a person said last to the controller of an entry: that it stops, or starts again."""

    number: int
    """Rises with each word; an agent heeds each once, so what is said on the machine later holds."""
    stop: bool
    who: str
    at_ms: int
    """By the controller's clock. For people to read: nothing is decided by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """An entry that a person stopped."""

    who: str
    since_ms: int
    """By the clock where it was said. For people to read: nothing is decided by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredEntry:
    """One entry of a machine. Paths are absolute, and owned by one entry of the machine alone."""

    key: Digest
    module: str
    version: str
    units: Mapping[UnitName, DeclaredUnit] = field(default_factory=dict[UnitName, DeclaredUnit])
    files: Mapping[str, DeclaredFile] = field(default_factory=dict[str, DeclaredFile])
    """Resources of type file, and the contributions files of provides (`grants`)."""
    directories: Mapping[str, DeclaredDirectory] = field(
        default_factory=dict[str, DeclaredDirectory]
    )
    """Resources of type directory, and volumes."""
    archives: Mapping[str, DeclaredArchive] = field(default_factory=dict[str, DeclaredArchive])
    """Resources of type archive, by the path at which they are unpacked."""
    listens: Mapping[str, int] = field(default_factory=dict[str, int])
    udp: tuple[str, ...] = ()
    """Those of its listens that are of UDP; all others are of TCP."""
    word: Word | None = None
    """None where nobody said anything to the controller."""
    publishes: Mapping[str, Publication] = field(default_factory=dict[str, Publication])
    """Its dynamic exports, by `PROVIDE/EXPORT`."""
    guarded: bool = False
    """It is of a set of which some have to stay up: nothing of it is stopped without a permit."""
    save: SaveOrder | None = None
    take: TakeOrder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """All that a machine should be, under one offer number."""

    machine: MachineName
    offer: OfferNumber
    generation: Digest
    entries: Mapping[EntryId, DeclaredEntry] = field(default_factory=dict[EntryId, DeclaredEntry])
    contents: Mapping[Digest, bytes] = field(default_factory=dict[Digest, bytes])
    """The bytes behind each digest of `config` and `files`."""
    rates: DeclaredRates = field(default_factory=DeclaredRates)
    address: str | None = None
    """Of the machine, as its units are told to listen there."""
    frozen: bool = False
    """The fleet is: dynamic values are heard, and nothing is done for them."""


class UnitState(StrEnum):
    """What a unit is, as its agent sees it."""

    STARTING = "starting"
    """Runs, and was not yet found healthy."""
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    BACKING_OFF = "backing-off"
    """Ended, and waits to be started again."""
    FAILED = "failed"
    """Ended or could not be started, and will not be tried again by itself."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    """By a person."""
    DONE = "done"
    """A job that ran to its end."""
    PENDING = "pending"
    """Not started yet: something before it is not done."""


class EntryState(StrEnum):
    """What an entry is, as a whole."""

    APPLYING = "applying"
    APPLIED = "applied"
    """Everything is as declared, and health is not known yet."""
    HEALTHY = "healthy"
    STALE = "running-stale"
    """Healthy, and it runs on values that may be wrong."""
    WAITING = "waiting"
    """A unit of it never had a first value that comes by the bus."""
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReport:
    state: UnitState
    digest: Digest
    """Of what runs, or of what should run if nothing does."""
    pid: int | None = None
    start_ticks: int | None = None
    """Start time of the process in clock ticks since boot; with `pid` it is the start-id."""
    restarts: int = 0
    """Starts beyond the first since the digest was declared."""
    reloads: int = 0
    last_exit: str | None = None
    """Such as `exit 1` or `signal KILL`."""
    cause: str | None = None
    """Why it is not as declared, in words."""
    log_tail: tuple[str, ...] = ()
    """The last lines of its log, where it failed."""
    reaction: str | None = None
    """How it stands with its dynamic values; None if it has none."""
    overdue: bool = False
    """One of them is older than it can bear, and nothing more may be done for now."""
    stale_since_ms: Mapping[str, int] = field(default_factory=dict[str, int])
    """Since when each value that may be wrong may be so, by its variable or path; wall clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A path that somebody changed under the agent."""

    path: str
    what: str
    """Such as `had other content`."""
    since_ms: int
    """When it was found, by the machine's clock."""
    repaired: bool = False
    problem: str | None = None
    """Why it is not put right, where that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """How a guarded entry stands in its set."""

    up: bool
    """Each of its units runs, and was healthy when it was last looked at."""
    permit: str | None = None
    """Which permit it asks for, or has; it is over with the first report that does not name it."""
    held: bool = False
    """It has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReport:
    state: EntryState
    key: Digest
    """Of what is applied; while applying, of what is being applied."""
    units: Mapping[UnitName, UnitReport] = field(default_factory=dict[UnitName, UnitReport])
    cause: str | None = None
    notes: tuple[str, ...] = ()
    """What could not be had in full on this machine, such as an account without root."""
    stopped: Stop | None = None
    """By a person: nothing of it is started until one says so."""
    drift: tuple[Drift, ...] = ()
    """What was found changed lately, put right or not."""
    member: Member | None = None
    """None if it is not guarded."""
    volumes: VolumesReport | None = None
    """None where nobody ever gave an order on its volumes."""
    tries: int = 0
    """How often what it failed by was tried or looked at, where that is a path or an archive; by
    this life of its agent. 0 if it is none, or nobody tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a machine is. Whole: a later report replaces an earlier one."""

    machine: MachineName
    offer: OfferNumber
    """The highest offer that was accepted."""
    settled: OfferNumber
    """The highest offer whose effects were all tried."""
    sequence: int
    """Rises with each report of one agent's life; orders reports that overtake each other."""
    boot: str
    """Names the agent's life."""
    entries: Mapping[EntryId, EntryReport] = field(default_factory=dict[EntryId, EntryReport])
    refused: str | None = None
    """Why the last declaration was not accepted."""
    refused_offer: OfferNumber | None = None
    """Which one that was; None if none was, or if it could not even be told."""
    history: str = ""
    """Names the history that these are of: numbers of another one say nothing of this."""
    occurrences: tuple[Occurrence, ...] = ()
    """What was not told yet, by number. Not a part of what the machine is: told once."""
    copies: Mapping[str, OldCopy] = field(default_factory=dict[str, OldCopy])
    """Data of volumes that is not used any more, by where it stands."""
