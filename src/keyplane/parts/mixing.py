"""Why a mixture may not be declared, and what is said of that."""

from collections.abc import Mapping, Sequence

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.plan import Edge, Entry
from keyplane.parts.offering import UnofferableError
from keyplane.plancheck import mixture as plancheck
from keyplane.ports.errors import PermanentError, TransientError
from keyplane.rollout.mixture import Mixture
from keyplane.rollout.outcome import Lack, Trouble
from keyplane.rollout.state import Unsendable


class BaseMovedError(PermanentError):
    """What is declared is no longer what a new target was planned against."""


class OvertakenError(TransientError):
    """A report came after one of another life of its agent, and may be the older one."""


class UnsoundError(PermanentError):
    """A mixture that must not be declared: a fault of the planner or of the order of steps."""

    def __init__(self, rows: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(row.message for row in rows))
        self.rows = rows


class Checked:
    """The mixtures of one step after another. None leaves unchecked, whoever made it."""

    def __init__(self) -> None:
        self._sound: Mapping[EntryId, Entry] | None = None
        """The last one that was found to be in order."""

    def check(self, made: Mixture, edges: Sequence[Edge]) -> None:
        entries = {entry: planned.entry for entry, planned in made.entries.items()}
        rows = plancheck.check_mixture(entries, edges, sound=self._sound)
        if rows:
            raise UnsoundError(rows)
        self._sound = entries


def unsendable(
    error: UnsoundError | UnofferableError,
    machines: Sequence[MachineName],
    now_ms: int,
    *,
    fled: bool,
) -> Unsendable:
    """No time mends it: the rollout ends here, or goes on without its refuges."""
    if isinstance(error, UnofferableError):
        troubles = [Trouble(machine=error.machine, lack=Lack.OFFER, said=str(error))]
    else:
        troubles = [
            Trouble(
                machine=split_entry(EntryId(row.subject))[2] if "@" in row.subject else machines[0],
                lack=Lack.OFFER,
                said=f"{row.subject} cannot be declared so: {row.message}",
                entry=EntryId(row.subject) if "@" in row.subject else None,
            )
            for row in error.rows
        ]
    return Unsendable(troubles=tuple(troubles), now_ms=now_ms, fled=fled)
