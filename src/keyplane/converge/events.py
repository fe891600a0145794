"""What the shell tells the brain. Each carries the time at which it was so, monotonic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from keyplane.converge.reaction_state import News
from keyplane.model.declaration import Declaration, OfferNumber, Stop
from keyplane.model.host import ObservedPath, ObservedProcess
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.volumes import Saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    at_ms: int
    declaration: Declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRefused:
    """A declaration that could not even be read: not signed, of another machine, unknown fields."""

    at_ms: int
    cause: str
    offer: OfferNumber | None = None
    """Its number, where the answer that it came with says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """The line to the controller is back: it may not have what was reported."""

    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The answer to `effects.Observe`."""

    at_ms: int
    paths: Mapping[str, ObservedPath]
    processes: tuple[ObservedProcess, ...]
    artifacts: frozenset[Digest]
    tails: Mapping[tuple[EntryId, UnitName], tuple[str, ...]] = field(
        default_factory=dict[tuple[EntryId, UnitName], tuple[str, ...]]
    )
    """The last log lines of units that ended."""
    unseen: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a path could not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectDone:
    at_ms: int
    resource: str
    process: ObservedProcess | None = None
    """Of StartProcess."""
    path: ObservedPath | None = None
    """Of an effect on a path: what stands there now."""
    tail: tuple[str, ...] = ()
    """Of a StartProcess whose process did not come up."""
    killed: bool = False
    """Of a StopProcess: it did not end in its time."""
    saved: Saved | None = None
    """Of a SaveVolume."""
    kept: str | None = None
    """Of a TakeVolume: where what was there before stands now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFailed:
    at_ms: int
    resource: str
    cause: str
    permanent: bool
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    at_ms: int
    process: ObservedProcess
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesTold:
    """What was heard of dynamic values at one instant, in order."""

    at_ms: int
    news: tuple[News, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Nothing is heard any more of the providers of these exports, or something is again."""

    at_ms: int
    exports: tuple[str, ...]
    is_silent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The answer to `effects.Probe`."""

    at_ms: int
    entry: EntryId
    unit: UnitName
    problem: str | None
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonStopped:
    """Somebody on the machine says so."""

    at_ms: int
    entry: EntryId
    stop: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonStarted:
    at_ms: int
    entry: EntryId
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """The controller has granted these permits; one that is not asked for any more is none."""

    at_ms: int
    permits: Mapping[EntryId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveTried:
    """What outlives the agent could not be saved, so nothing is done meanwhile; or it can again."""

    at_ms: int
    cause: str | None
    """None once it could be saved."""
    offer: OfferNumber
    """The highest that was saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSet:
    """Somebody set the machine's wall clock."""

    at_ms: int
    wall_ms: int
    """What it would have shown at monotonic zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    at_ms: int


Event: TypeAlias = (
    Offered
    | OfferRefused
    | Connected
    | Observed
    | EffectDone
    | EffectFailed
    | Exited
    | ValuesTold
    | Silence
    | Probed
    | PersonStopped
    | PersonStarted
    | Permitted
    | ClockSet
    | SaveTried
    | Ticked
)
