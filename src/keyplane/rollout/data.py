"""How far the data of a step has come, by the reports."""

from keyplane.model.declaration import EntryReport
from keyplane.model.names import EntryId, MachineName
from keyplane.model.volumes import VolumesReport
from keyplane.rollout.state import State


def not_given(state: State, entry: EntryId, said: EntryReport | None) -> str | None:
    """Why an entry that gives its data away has not done so yet; None if it has."""
    if said is None:
        return f"{entry} is not there any more."
    volumes = said.volumes or VolumesReport()
    if volumes.given == state.gives[entry].number:
        return None
    return f"{entry} has not given its data yet" + (f": {said.cause}" if said.cause else ".")


def is_still_given(state: State, entry: EntryId, said: EntryReport | None) -> bool:
    """Whether one that is to go on with its data still holds it for another."""
    give = state.gives.get(entry)
    given = 0 if said is None else (said.volumes or VolumesReport()).given
    return give is not None and given == give.number


def arrived(state: State, machine: MachineName) -> int:
    """How many entries of the step there have the data that they are to start with."""
    work = state.steps[state.step].work(machine)
    mine = [entry for entry in (*work.rekeyed, *work.awaited) if entry in state.takes]
    return sum(1 for entry in mine if _taken(state, machine, entry))


def is_carried(state: State) -> bool:
    """Whether a machine of the step that is heard still saves or takes data."""
    if not state.steps or state.back:
        return False
    step = state.steps[state.step]
    if not state.takes and not step.yielded:
        return False
    for machine in step.machines:
        if machine in state.absent or machine in state.skipped:
            continue
        work = step.work(machine)
        takes = [entry for entry in (*work.rekeyed, *work.awaited) if entry in state.takes]
        if any(not _taken(state, machine, entry) for entry in takes):
            return True
        if any(not_given(state, entry, _said(state, machine, entry)) for entry in work.yielded):
            return True
    return False


def _taken(state: State, machine: MachineName, entry: EntryId) -> bool:
    said = _said(state, machine, entry)
    return said is not None and (said.volumes or VolumesReport()).taken >= state.takes[entry]


def _said(state: State, machine: MachineName, entry: EntryId) -> EntryReport | None:
    return state.seen[machine].report.entries.get(entry) if machine in state.seen else None
