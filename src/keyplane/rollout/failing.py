"""Whether something that was sent failed, and whether it is to go back for that."""

from collections.abc import Collection

from keyplane.model.names import split_entry
from keyplane.rollout import gate
from keyplane.rollout.outcome import Trouble
from keyplane.rollout.state import Event, State, Unsendable


def failures(state: State) -> tuple[Trouble, ...]:
    """Of all machines that were sent anything."""
    machines = {m for step in state.steps[: state.step + 1] for m in step.machines}
    return tuple(row for machine in sorted(machines) for row in gate.failures(state, machine))


def is_to_return(state: State, troubles: Collection[Trouble]) -> bool:
    """Whether one of what failed says that it is to go back."""
    if state.back:
        return False
    present = state.steps[state.step]
    for trouble in troubles:
        work = present.work(trouble.machine)
        named = [trouble.entry] if trouble.entry is not None else [*work.rekeyed, *work.live]
        if any(split_entry(entry)[0] in state.returns for entry in named):
            return True
    return False


def why(state: State, event: Event) -> tuple[Trouble, ...]:
    """What it goes back for."""
    if isinstance(event, Unsendable):
        return event.troubles
    return failures(state) or gate.lacks(state)
