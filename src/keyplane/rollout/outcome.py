"""How a rollout ended, in words and numbers for people: what was sent, what was not, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from keyplane.model.names import EntryId, MachineName, UnitName
from keyplane.rollout.steps import Hold


class Result(StrEnum):
    DONE = "done"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    STOPPED = "stopped"
    ROLLED_BACK = "rolled-back"
    """It failed, and what it had sent is as it was before."""
    ROLLBACK_FAILED = "rollback-failed"


class Lack(StrEnum):
    """What a machine or an entry did not do for its step."""

    OFFER = "never-offered"
    VOICE = "silent"
    """Nothing was heard from the machine since the step began."""
    ACCEPTANCE = "not-accepted"
    SETTLING = "not-settled"
    REMOVAL = "not-removed"
    HEALTH = "not-healthy"
    SUCCESS = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that a step waits for, or failed by."""

    machine: MachineName
    lack: Lack
    said: str
    """A sentence for people, without the log."""
    entry: EntryId | None = None
    unit: UnitName | None = None
    cause: str | None = None
    log_tail: tuple[str, ...] = ()


class Fate(StrEnum):
    """What became of an entry's processes, by the reports before and after."""

    STARTED = "started"
    RESTARTED = "restarted"
    """A process was replaced."""
    RELOADED = "reloaded"
    STOPPED = "stopped"
    APPLIED = "applied"
    """It is another, and each of its processes is the same."""
    UNTOUCHED = "untouched"
    UNKNOWN = "unknown"
    """Sent, and no report tells of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFate:
    fate: Fate
    started: tuple[UnitName, ...] = ()
    restarted: tuple[UnitName, ...] = ()
    reloaded: tuple[UnitName, ...] = ()
    stopped: tuple[UnitName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    result: Result
    steps: int
    steps_passed: int
    sent: tuple[EntryId, ...] = ()
    """Entries that were switched or removed by a step that was sent, be it taken back since."""
    unsent: tuple[EntryId, ...] = ()
    why_unsent: str = ""
    held: tuple[Hold, ...] = ()
    """Recorded in the target, and sent to nobody."""
    skipped: tuple[MachineName, ...] = ()
    """Machines that were not heard: what they are to be waits for them."""
    troubles: tuple[Trouble, ...] = ()
    silent: tuple[MachineName, ...] = ()
    """Machines that were not heard since the last step began."""
    remarks: tuple[str, ...] = ()
    fates: Mapping[EntryId, EntryFate] = field(default_factory=dict[EntryId, EntryFate])
    """Without the untouched."""
    counts: Mapping[Fate, int] = field(default_factory=dict[Fate, int])
    """Of entries, every fate with its number."""
    units: Mapping[Fate, int] = field(default_factory=dict[Fate, int])
    """Of units: started, restarted, reloaded, stopped."""
    started_ms: int = 0
    ended_ms: int = 0
