"""What happened to units and paths of a machine, each with its cause. For people to look back on.

An agent notes them as they come, numbered, and tells its controller; `wire` carries them.
"""

from dataclasses import dataclass
from enum import StrEnum

from keyplane.model.names import EntryId, UnitName


class Act(StrEnum):
    """What happened."""

    START = "start"
    RESTART = "restart"
    """A start that took over from another run of the same unit."""
    STOP = "stop"
    RELOAD = "reload"
    END = "end"
    """It ended by itself, or somebody else's hand."""
    FAIL = "fail"
    """It could not be started."""
    ADOPT = "adopt"
    """It was found running, and nothing here said that it does."""
    REPAIR = "repair"
    """A path was put right."""
    GAP = "gap"
    """What happened here is not known: it was never told."""


class Cause(StrEnum):
    """Why it happened."""

    ROLLOUT = "rollout"
    """What is declared has changed."""
    REACTION = "reaction"
    """A dynamic value has changed."""
    CRASH = "crash"
    PERSON = "person"
    BACKUP = "backup"
    """It stood still while its volumes were saved."""
    DRIFT = "drift"
    """Something was changed under the agent."""
    ADOPTION = "adoption"
    """The agent found it, as it does without its ledger."""
    REBOOT = "reboot"
    """The machine went down, and what ran on it."""
    DONE = "done"
    """It came to its own end."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One thing that happened."""

    number: int
    """Rises by one from each to the next of a machine's history."""
    at_ms: int
    """By the machine's clock; nothing is decided by it."""
    entry: EntryId
    unit: UnitName
    """Empty where it is of the entry as a whole, such as a path."""
    act: Act
    cause: Cause
    detail: str = ""
    who: str = ""
    """The person, of what was said on the machine itself: it goes into the audit log."""
