"""What a rollout does at present, as a sentence for people."""

from collections.abc import Sequence

from keyplane.model.duration import print_ms
from keyplane.rollout.state import Phase, State

NAMED_MAX = 4
"""Machines that a line names; of more it says how many."""


def sentence(state: State) -> str:
    """Where it stands; how it ended is told by its outcome."""
    if not state.phase.is_open or not state.asked:
        return ""
    present = state.steps[state.step]
    machines = [each for each in present.machines if each not in state.skipped]
    where = f"step {state.step + 1} of {state.asked}"
    named = _names(machines)
    settle = print_ms(present.settle_ms) if present.settle_ms else ""
    match state.phase:
        case Phase.PAUSED:
            return f"paused before {where}: {state.paused}"
        case Phase.RECALLING | Phase.RETURNING:
            return f"{where} goes back: {named or 'nobody is heard'}"
        case Phase.SETTLING:
            are = "are" if len(machines) > 1 else "is"
            return f"{where}: {named} {are} well; watched for {settle} before others follow"
        case _ if not machines:
            return f"{where}: {_names(present.machines)} not heard, and not waited for"
        case _ if present.yielded:
            return f"{where}: {_names(present.yielded)} stops, and its data is saved"
        case _ if settle:
            return f"{where}: {named} first; others follow once it was well for {settle}"
        case _:
            last = "done" if state.step + 1 == state.asked else "goes on"
            away = f"; {_names(sorted(state.skipped))} not heard" if state.skipped else ""
            return f"{where}: {named}; {last} once healthy{away}"


def _names(machines: Sequence[str]) -> str:
    shown = ", ".join(machines[:NAMED_MAX])
    more = len(machines) - NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
