"""Where each machine of a rollout stands, step by step."""

from typing import NamedTuple

from keyplane.model.names import EntryId, MachineName
from keyplane.rollout import gate, returning
from keyplane.rollout.state import Phase, State


class Turn(NamedTuple):
    """What a rollout does on a machine in one of its steps."""

    machine: MachineName
    step: int
    state: str
    entries: tuple[EntryId, ...]
    said: str


def turns(state: State) -> tuple[Turn, ...]:
    """By step, then machine."""
    missed = frozenset(gate.missed(state))
    return tuple(
        Turn(machine, index, *_standing(state, index, machine, machine in missed))
        for index, step in enumerate(state.steps)
        for machine in step.machines
    )


def _standing(
    state: State,
    index: int,
    machine: MachineName,
    missed: bool,  # noqa: FBT001
) -> tuple[str, tuple[EntryId, ...], str]:
    step = state.steps[index]
    work = step.work(machine)
    entries = (*work.yielded, *work.rekeyed, *work.live, *work.removed)
    if step.held:
        return "held", entries, ""
    present = index == state.step and state.phase.is_open and state.phase is not Phase.PAUSED
    if present and machine not in state.skipped:
        lacks = gate.machine_lacks(state, machine)
        return ("waits" if lacks else "done"), entries, "; ".join(row.said for row in lacks)
    failed = [row.said for row in state.troubles if row.machine == machine]
    is_left = state.back and (index > state.step or state.phase is Phase.ROLLED_BACK)
    if index >= state.ever_sent and not (is_left and returning.is_fled(state, index)):
        return ("next" if state.phase.is_open and not state.back else "unsent"), entries, ""
    if is_left:
        return "returned", entries, "; ".join(failed)
    if machine in state.lost & state.absent:
        return "skipped", entries, f"{machine} will not be back"
    if missed:
        return "skipped", entries, f"{machine} was not heard"
    if index == state.step and failed:
        return "failed", entries, "; ".join(failed)
    return "done", entries, ""
