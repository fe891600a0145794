"""The table of a rollout: from which phase it comes to which, and by what."""

from collections.abc import Mapping
from enum import StrEnum

from keyplane.rollout.state import Phase


class Turn(StrEnum):
    """What makes a rollout go from one phase to the next."""

    EMPTY = "there is no step"
    OFFERED = "all machines of the step were offered it"
    PASSED = "the step passed, another follows"
    LAST_PASSED = "the last step passed"
    WELL = "all are well, and others are to follow them"
    UNWELL = "one is not well any more"
    HELD_UP = "a person asked for a pause"
    GOES_ON = "a person lets it go on"
    FORGOTTEN = "nobody ended the pause"
    ENTRY_FAILED = "an entry that was switched failed, or a machine refused it"
    UNSENDABLE = "what it declares is not to be sent"
    OVERDUE = "nothing new was heard for too long"
    RECALLED = "it failed, and what failed is to go back"
    RETURNED = "the step is as it was before, one before it is left"
    ALL_RETURNED = "all is as it was before"
    ENDED = "a person ended it"
    REPLACED = "another rollout was opened"


TRANSITIONS: Mapping[tuple[Phase, Turn], Phase] = {
    (Phase.SENDING, Turn.EMPTY): Phase.DONE,
    (Phase.SENDING, Turn.OFFERED): Phase.WAITING,
    (Phase.SENDING, Turn.HELD_UP): Phase.PAUSED,
    (Phase.SENDING, Turn.ENTRY_FAILED): Phase.FAILED,
    (Phase.SENDING, Turn.UNSENDABLE): Phase.FAILED,
    (Phase.SENDING, Turn.OVERDUE): Phase.FAILED,
    (Phase.SENDING, Turn.RECALLED): Phase.RECALLING,
    (Phase.WAITING, Turn.PASSED): Phase.SENDING,
    (Phase.WAITING, Turn.LAST_PASSED): Phase.DONE,
    (Phase.WAITING, Turn.WELL): Phase.SETTLING,
    (Phase.WAITING, Turn.ENTRY_FAILED): Phase.FAILED,
    (Phase.WAITING, Turn.UNSENDABLE): Phase.FAILED,
    (Phase.WAITING, Turn.OVERDUE): Phase.FAILED,
    (Phase.WAITING, Turn.RECALLED): Phase.RECALLING,
    (Phase.SETTLING, Turn.PASSED): Phase.SENDING,
    (Phase.SETTLING, Turn.UNWELL): Phase.WAITING,
    (Phase.SETTLING, Turn.ENTRY_FAILED): Phase.FAILED,
    (Phase.SETTLING, Turn.UNSENDABLE): Phase.FAILED,
    (Phase.SETTLING, Turn.OVERDUE): Phase.FAILED,
    (Phase.SETTLING, Turn.RECALLED): Phase.RECALLING,
    (Phase.PAUSED, Turn.GOES_ON): Phase.SENDING,
    (Phase.PAUSED, Turn.FORGOTTEN): Phase.STOPPED,
    (Phase.PAUSED, Turn.ENTRY_FAILED): Phase.FAILED,
    (Phase.PAUSED, Turn.RECALLED): Phase.RECALLING,
    (Phase.RECALLING, Turn.OFFERED): Phase.RETURNING,
    (Phase.RECALLING, Turn.ENTRY_FAILED): Phase.ROLLBACK_FAILED,
    (Phase.RECALLING, Turn.UNSENDABLE): Phase.ROLLBACK_FAILED,
    (Phase.RECALLING, Turn.OVERDUE): Phase.ROLLBACK_FAILED,
    (Phase.RETURNING, Turn.RETURNED): Phase.RECALLING,
    (Phase.RETURNING, Turn.ALL_RETURNED): Phase.ROLLED_BACK,
    (Phase.RETURNING, Turn.ENTRY_FAILED): Phase.ROLLBACK_FAILED,
    (Phase.RETURNING, Turn.UNSENDABLE): Phase.ROLLBACK_FAILED,
    (Phase.RETURNING, Turn.OVERDUE): Phase.ROLLBACK_FAILED,
    **{(phase, Turn.ENDED): Phase.STOPPED for phase in Phase if phase.is_open},
    **{(phase, Turn.REPLACED): Phase.SUPERSEDED for phase in Phase if phase.is_open},
}
