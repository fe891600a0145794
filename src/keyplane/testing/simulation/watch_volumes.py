"""What must hold of the data in volumes: whoever starts on it has all that was ever written.

Of a role that is in one place, all that its services wrote is known here. Each start finds just
that, wherever it is, unless a person or a rollback chose another state of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keyplane.model.declaration import Declaration
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.ports.inventory import PlannedEntry, StoredPlan, StoredRollout
from keyplane.rollout import state as rollout_state
from keyplane.testing.host import MemoryHost

Role = tuple[str, str]


@dataclass(slots=True)
class VolumeWatch:
    fault: Callable[[str, str], None]
    declaration: Callable[[MachineName], Declaration | None]
    _data: dict[Role, bytes] = field(default_factory=dict[Role, bytes])
    """What is written by now; a role that is not here is taken as it is at its next start."""
    _loose: set[Role] = field(default_factory=set[Role])
    """Those in several places, or of which somebody chose another state."""
    _is_blind: bool = False
    """The inventory was restored: what moves then, nobody can know."""
    _written: int = 0
    held: int = 0
    """How many starts found the data that another machine had before."""
    _home: dict[Role, MachineName] = field(default_factory=dict[Role, MachineName])

    def committed(self, stored: StoredPlan, row: StoredRollout) -> None:
        before, after = _places(row.base), _places(stored.entries)
        for role in before.keys() | after.keys():
            if after.get(role, 0) != 1:
                self._loose.add(role)
                self._data.pop(role, None)
            elif role not in before:
                self._loose.discard(role)
                self._data.pop(role, None)

    def saved_rollout(self, saved: bytes) -> None:
        """What goes back is what it was: what was written elsewhere since stays there."""
        state = rollout_state.decode(saved)
        if state is not None and state.back:
            for step in state.steps:
                for entry in step.yielded:
                    self._data.pop(_role(entry), None)
            for entry in state.takes:  # an earlier rollout, which this one took over, had it given
                self._data.pop(_role(entry), None)

    def chosen_empty(self, entry: str) -> None:
        role = _role(EntryId(entry))
        self._loose.add(role)
        self._data.pop(role, None)

    def restored(self) -> None:
        self._is_blind = True

    def saving(self, machine: MachineName, entry: EntryId, memory: MemoryHost) -> None:
        for each, unit in memory.running():
            if each == entry:
                self.fault("nothing runs while its data is saved", f"{entry}/{unit} on {machine}")

    def writes(self, machine: MachineName, entry: EntryId, memory: MemoryHost) -> None:
        """A service of the entry starts or is about to end, and writes into its volume."""
        current = self.declaration(machine)
        declared = None if current is None else current.entries.get(entry)
        if declared is None or not any(each.keep for each in declared.directories.values()):
            return
        contents = memory.volumes.contents
        role, path = _role(entry), f"/var/lib/{split_entry(entry)[0]}"
        found = contents.get(path, b"")
        self._written += 1
        contents[path] = found + b"%d\n" % self._written
        if self._is_blind or role in self._loose:
            return
        expected = self._data.get(role)
        if expected is not None and found != expected:
            lost = set(expected.split()) - set(found.split())
            self.fault(
                "data is where its entry is",
                f"{entry} on {machine} finds {len(found.split())} of {len(expected.split())}, "
                f"without {b' '.join(sorted(lost)[:3]).decode()}",
            )
        self.held += expected is not None and self._home.get(role) != machine
        self._home[role] = machine
        self._data[role] = contents[path]


def _places(entries: Mapping[EntryId, PlannedEntry]) -> dict[Role, int]:
    """In how many places each role with volumes is."""
    found: dict[Role, int] = {}
    for entry, planned in entries.items():
        if planned.entry.volumes:
            found[_role(entry)] = found.get(_role(entry), 0) + 1
    return found


def _role(entry: EntryId) -> Role:
    instance, role, _ = split_entry(entry)
    return instance, role
