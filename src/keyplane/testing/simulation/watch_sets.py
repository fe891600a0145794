"""What must hold of sets of which some members have to stay up.

Counts what agents stopped of a set and have not started since: never more than may be away. Who
ended by himself, or is off, is nobody's doing. Knows nothing of permits.
"""

from collections.abc import Callable, Iterable, Mapping

from keyplane.model.names import EntryId, UnitName, split_entry
from keyplane.ports.inventory import PlannedEntry, StoredPlan, StoredRollout
from keyplane.rollout import state as rollout_state

LATELY_S = 180.0
"""For so long what a former target allowed may still be done: a step that waits to its deadline."""
SETTLED_S = 5.0
"""What ran for so long is up, where nothing ails it."""


JOB = "migrate"
"""The unit of an entry that serves nobody."""


class SetWatch:
    def __init__(self, fault: Callable[[str, str], None], now: Callable[[], float]) -> None:
        self.fault = fault
        self._now = now
        self._allowed: dict[str, list[tuple[float, int]]] = {}
        """By role: how many members may be away, and until when that was so."""
        self._standing: dict[str, int] = {}
        self._known: set[str] = set()
        """Roles that were ever in a target."""
        self._members: frozenset[EntryId] = frozenset()
        self._began: dict[EntryId, float] = {}
        self._away: set[EntryId] = set()
        """One that is to go is not missed: a later target may have it anew."""

    def committed(self, stored: StoredPlan, row: StoredRollout) -> None:
        """From now on both ends of a rollout are declared, in some mixture."""
        state = rollout_state.decode(row.state)
        now = self._now()
        for role, allowed in self._standing.items():
            self._allowed.setdefault(role, []).append((now, allowed))
        former, self._standing = self._standing.keys(), {}
        for role, guard in () if state is None else state.guards.items():
            for entries in (stored.entries, row.base):
                members = _members(entries, role)
                allowed = members - guard.keeps(members)
                self._standing[role] = max(allowed, self._standing.get(role, 0))
        # What was granted while nothing was kept of it may still be done; at first nothing was.
        for role in (self._standing.keys() - former) & self._known:
            self._allowed.setdefault(role, []).append((now, len(stored.entries)))
        self._known |= {":".join(split_entry(entry)[:2]) for entry in stored.entries}
        self._members = frozenset(stored.entries)

    def restored(self) -> None:
        """Which sets there are is not known before the next target."""
        self._allowed, self._standing, self._members = {}, {}, frozenset()

    def started(self, entry: EntryId, unit: UnitName) -> None:
        if unit != JOB:
            self._away.discard(entry)
            self._began[entry] = self._now()

    def ended(self, entry: EntryId, unit: UnitName) -> None:
        """By itself."""
        if unit != JOB:
            self._began.pop(entry, None)

    def stopping(self, entry: EntryId, unit: UnitName) -> None:
        """An agent stops what runs of it."""
        if unit == JOB:
            return
        role = ":".join(split_entry(entry)[:2])
        began = self._began.pop(entry, None)
        if began is None or self._now() - began < SETTLED_S or role not in self._standing:
            return
        self._away.add(entry)
        away = self._of(role, self._away)
        lately = self._now() - LATELY_S
        former = [allowed for until, allowed in self._allowed.get(role, []) if until > lately]
        allowed = max(self._standing[role], *former, 1)
        # One that is to go serves until it does, in the place of one that is stopped.
        serving = sum(1 for each in self._began if each.startswith(f"{role}@"))
        missing = len(self._of(role, self._members)) - serving
        if min(len(away), missing) > allowed:
            self.fault(
                "no more of a set are stopped than may be",
                f"{', '.join(sorted(away))} are, and {allowed} may be",
            )

    def _of(self, role: str, entries: Iterable[EntryId]) -> set[EntryId]:
        return {each for each in entries if each in self._members and each.startswith(f"{role}@")}


def _members(entries: Mapping[EntryId, PlannedEntry], role: str) -> int:
    return sum(1 for entry in entries if entry.startswith(f"{role}@"))
