"""What a plan that is made by facts alone would stop, move, or leave without a place."""

from dataclasses import dataclass

from keyplane.model.diagnostic import Severity
from keyplane.model.documents import Documents
from keyplane.model.names import EntryId, split_entry
from keyplane.parts.planning import Base, Planned
from keyplane.ports.inventory import StoredPlan
from keyplane.rollout import withheld


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    how: str
    """A clause for people."""
    loses: bool
    """It would stop here, if somebody let it; else it goes on as it runs whatever anybody says."""


def victims(target: StoredPlan, base: Base, trial: Planned) -> dict[EntryId, Victim]:
    """Each entry with how it is one.

    Without what the target has no place for already: that is held whatever happens. What has no
    place on the machine that the text names for it is one whatever its instance says.
    """
    before = set(target.plan.diagnostics)
    errors = [
        row
        for row in trial.plan.diagnostics
        if row.severity is Severity.ERROR and row not in before
    ]
    moves = {f"{each.entry}@{each.from_}": each.to for each in trial.diff.moves}
    found: dict[EntryId, Victim] = {}
    for entry in sorted(base.entries.keys() & target.entries.keys()):
        is_there = entry in trial.entries
        rows = [
            row
            for row in errors
            if withheld.is_of(row, entry) and not (is_there and row.code == withheld.TOO_FEW)
        ]
        if rows:
            found[entry] = Victim(how=rows[0].message, loses=False)
        elif not is_there and not _is_free(trial.documents, entry):
            how = f"it would move to {moves[entry]}" if entry in moves else "it would stop"
            found[entry] = Victim(how=how, loses=True)
    return found


def _is_free(documents: Documents, entry: EntryId) -> bool:
    """Whether its instance says that facts may stop or move it."""
    if documents.fleet is None:
        return False
    instance = documents.fleet.instances.get(split_entry(entry)[0])
    return instance is not None and instance.on_fact == "apply"
