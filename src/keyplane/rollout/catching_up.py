"""Which of the machines that a rollout went on without may come to what they missed.

They are offered it, and ask for it once they are back. Many that were off together are back
together: what a rollout would have sent them one after the other they take one after the other.
Where members have to stay up by what is stated, permits see to it, and nothing is asked here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from keyplane.model.declaration import Report
from keyplane.model.names import EntryId
from keyplane.rollout import gate
from keyplane.rollout.permits import RoleId, role_of
from keyplane.rollout.state import State


def has_to_wait(state: State, report: Report, busy: Iterable[EntryId]) -> bool:
    """Whether a machine would restart more of a role than may be away, with who is `busy`."""
    away = Counter(role_of(entry) for entry in busy)
    limits = {role_of(entry): _limit(state, role_of(entry)) for entry in outdated(state, report)}
    return any(limit is not None and away[role] >= limit for role, limit in limits.items())


def outdated(state: State, report: Report) -> tuple[EntryId, ...]:
    """Entries that run there as something else than was sent, and are to be restarted."""
    return tuple(
        entry
        for entry in _restarted(state, report)
        if entry in report.entries and report.entries[entry].key != state.keys[entry]
    )


def unwell(state: State, report: Report) -> tuple[EntryId, ...]:
    """Entries that the machine is at, or that did not come up as they were sent."""
    return tuple(
        entry
        for entry in _restarted(state, report)
        if (said := report.entries.get(entry)) is not None
        and (said.key == state.keys[entry] or report.settled < report.offer)
        and not (gate.is_sound(said) and report.settled == report.offer)
    )


def _restarted(state: State, report: Report) -> Iterator[EntryId]:
    if report.machine not in state.left:
        return
    for step in state.steps[: state.sent]:
        work = step.work(report.machine)
        changed = frozenset(step.changed)
        yield from (entry for entry in work.rekeyed if entry in changed)
        yield from work.awaited


def _limit(state: State, role: RoleId) -> int | None:
    pace = state.paces.get(role.partition(":")[0])
    return None if pace is None or role in state.guards else pace.max_unavailable
