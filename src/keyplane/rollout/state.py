"""What a rollout knows, what can happen to it, and what it asks for.

A state holds all that a rollout needs, so that a controller that starts in its middle goes on
from the saved bytes. Nothing is kept here that the plans of both ends say already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec

from keyplane.model.declaration import EntryReport, OfferNumber, Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.plan import Edge
from keyplane.rollout.outcome import Outcome, Trouble
from keyplane.rollout.permits import Guard
from keyplane.rollout.policies import Pace
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.steps import Step
from keyplane.rollout.volumes import Give

VERSION = 2
"""Of the saved bytes. A release that changes the shape reads the last one too."""


class Phase(StrEnum):
    SENDING = "sending"
    """The machines of a step are being offered it."""
    WAITING = "waiting"
    """All were; their reports decide."""
    SETTLING = "settling"
    """All are well; they are to be so for a while, before others follow."""
    PAUSED = "paused"
    """The next step is not sent until a person says so."""
    RECALLING = "recalling"
    """Something failed: the machines of a step are being offered what they were before."""
    RETURNING = "returning"
    """All were; their reports decide."""
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    """A person ended it."""
    ROLLED_BACK = "rolled-back"
    """It failed, and all that it sent is as it was before."""
    ROLLBACK_FAILED = "rollback-failed"
    """It failed, and so did going back."""
    SUPERSEDED = "superseded"
    """A newer rollout took over."""

    @property
    def is_open(self) -> bool:
        return self in _OPEN


_OPEN = frozenset(
    (
        Phase.SENDING,
        Phase.WAITING,
        Phase.SETTLING,
        Phase.PAUSED,
        Phase.RECALLING,
        Phase.RETURNING,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The newest report of a machine."""

    report: Report
    heard_ms: int | None
    """None: it was there before the rollout."""
    lives: Mapping[str, int] = field(default_factory=dict[str, int])
    """The highest sequence of each life of its agent, the latest life last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One rollout. Maps by machine hold only machines of its steps."""

    phase: Phase
    step: int
    """Which one is sent, or waited for; how far it came, if it has ended."""
    steps: tuple[Step, ...]
    edges: tuple[Edge, ...]
    """Of the base, for consumers that switch or go: what the mixture's edges are made of."""
    keys: Mapping[EntryId, Digest]
    """In the target, of every entry of a step that is in it."""
    former: Mapping[EntryId, Digest] = field(default_factory=dict[EntryId, Digest])
    """The same in the base."""
    refuges: Mapping[EntryId, Refuge] = field(default_factory=dict[EntryId, Refuge])
    """What some of its base go back to instead: an earlier rollout sent what the base has of them,
    and nobody saw that well."""
    gives: Mapping[EntryId, Give] = field(default_factory=dict[EntryId, Give])
    """Who gives its data away, to whom and under which number."""
    takes: Mapping[EntryId, int] = field(default_factory=dict[EntryId, int])
    """Who starts once its volumes are what was ordered under that number."""
    returns: frozenset[str] = frozenset()
    """Instances that ask to go back where something fails."""
    patience_ms: tuple[int, ...]
    """Of each step: how long nothing new may be heard before it has failed."""
    before: Mapping[MachineName, Report]
    """As the machines were when it began, without logs."""
    unproven: tuple[EntryId, ...]
    """Of an earlier rollout, sent and not seen well when this one began."""
    elsewhere: int
    """Entries of machines of which nothing is asked."""
    back: bool = False
    """Its machines are asked for what was before, or were when it ended."""
    furthest: int = 0
    """How many steps had been sent when it turned back. It may go back from a later one: see
    `returning`."""
    named: frozenset[MachineName] = frozenset()
    """Machines that a person named: they are sent what is else only recorded."""
    unnamed: Mapping[MachineName, str] = field(default_factory=dict[MachineName, str])
    """Those that are sent nothing as he did not, and why."""
    absent: frozenset[MachineName] = frozenset()
    """Machines that are not heard at present."""
    skipped: frozenset[MachineName] = frozenset()
    """Those that were not heard when this step began, nor since: it does not wait for them."""
    lost: frozenset[MachineName] = frozenset()
    """Those that will not be back: once they fall silent nobody waits for them, or misses them."""
    left: frozenset[MachineName] = frozenset()
    """Those of any step that went on without them."""
    paused: str = ""
    """Why no further step is sent, as a person said it."""
    stopped: str = ""
    """Why it ended early, as a person said it."""
    closed: str = ""
    """Who put it away after its end: it is neither shown as a trouble nor tried again."""
    well_ms: int = 0
    """While it settles: since when all are well."""
    offers: Mapping[MachineName, OfferNumber] = field(
        default_factory=dict[MachineName, OfferNumber]
    )
    """The last number under which each was offered a step."""
    offered: frozenset[MachineName] = frozenset()
    """Those that were offered this step."""
    passing: frozenset[MachineName] = frozenset()
    """Those whose newest report is what this step waits for."""
    reached: Mapping[MachineName, int] = field(default_factory=dict[MachineName, int])
    """The furthest that each came in this step; see `gate.stage`."""
    seen: Mapping[MachineName, Seen] = field(default_factory=dict[MachineName, Seen])
    refused: Mapping[EntryId, str] = field(default_factory=dict[EntryId, str])
    """Of this step: entries whose stop waits for a permit, and why they are given none."""
    started_ms: int | None = None
    step_ms: int = 0
    """When this step began."""
    progressed_ms: int = 0
    failing_ms: int | None = None
    """When the first failure of this step was seen, while others of it are still undecided."""
    ended_ms: int = 0
    troubles: tuple[Trouble, ...] = ()
    """Why it failed."""
    guards: Mapping[str, Guard] = field(default_factory=dict[str, Guard])
    """Of the roles of both ends, what keeps some of their members up; see `permits`."""
    paces: Mapping[str, Pace] = field(default_factory=dict[str, Pace])
    """By instance: how what is not sent yet is parted anew, where other machines are heard."""

    @property
    def sent(self) -> int:
        """How many steps the mixture has: one that is being offered counts.

        One that nobody was offered before the rollout ended does not.
        """
        if self.started_ms is None or not self.steps:
            return 0
        if self.back:
            return min(self.step, self.furthest)
        if self.phase is Phase.PAUSED:
            return self.step
        return self.step + 1 if self.phase.is_open or self.offered else self.step

    @property
    def ever_sent(self) -> int:
        """How many steps were sent, though they may have been taken back since."""
        return self.furthest if self.back else self.sent

    @property
    def asked(self) -> int:
        """How many steps are to be sent: those that are only recorded come after all others."""
        return next((n for n, step in enumerate(self.steps) if step.held), len(self.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A controller takes it up: for the first time, or again after its own restart."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A machine's declaration for the step is stored under that number.

    Said for each machine of the step, also where its declaration was that already.
    """

    step: int
    machine: MachineName
    offer: OfferNumber
    now_ms: int
    back: bool = False
    """It is what the machine was before the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    report: Report
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    now_ms: int
    refused: Mapping[EntryId, str] = field(default_factory=dict[EntryId, str])
    """Entries that ask for a permit and have to wait, and why, of all machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """Another rollout was opened."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsendable:
    """What the step would declare is not to be sent, now or later: a fault, as the troubles say."""

    troubles: tuple[Trouble, ...]
    now_ms: int
    fled: bool = False
    """With refuges, without which it may be in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Who is not heard at present, of all machines."""

    absent: frozenset[MachineName]
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A person asks that no further step be sent for now; what was sent is still judged."""

    why: str
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A person ends it: what was sent stays, and nothing further is sent."""

    why: str
    now_ms: int


Event = (
    Started
    | Offered
    | Reported
    | Ticked
    | Superseded
    | Unsendable
    | Missed
    | Paused
    | Resumed
    | Stopped
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Make the declarations of these machines for so many steps sent, store them, and say so.

    Asked again after a restart: the same declaration has the same number.
    """

    step: int
    machines: tuple[MachineName, ...]
    back: bool = False
    """What they were before the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """It has ended. Asked again if an ended rollout is started."""

    outcome: Outcome


Effect = Offer | Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    version: int
    state: State


@dataclass(frozen=True, slots=True)
class _Version:
    version: int


def without_logs(report: Report) -> Report:
    def bare(entry: EntryReport) -> EntryReport:
        units = {name: replace(unit, log_tail=()) for name, unit in entry.units.items()}
        return replace(entry, units=units)

    return replace(report, entries={name: bare(entry) for name, entry in report.entries.items()})


def encode(state: State) -> bytes:
    return msgspec.json.encode(_Saved(version=VERSION, state=state), order="sorted")


def decode(saved: bytes) -> State | None:
    """The state; None if another release wrote it, whose rollout this one cannot go on with."""
    try:
        if msgspec.json.decode(saved, type=_Version).version not in (VERSION, VERSION - 1):
            return None
        return msgspec.json.decode(saved, type=_Saved).state
    except msgspec.DecodeError:
        return None
