"""When a rollout stops waiting for what it waits for."""

from keyplane.rollout import data
from keyplane.rollout.state import Phase, State

DATA_MS = 2 * 3600 * 1000
"""Longer than a step otherwise takes, while a machine that is heard saves or takes data: half a
terabyte, at the rate at which one core compresses."""


PAUSE_MS = 24 * 3600 * 1000
"""A pause that nobody ended within a day is forgotten, and so is its rollout."""


def due_ms(state: State) -> int | None:
    """When a tick is the end of what it waits for, if nothing new is heard.

    None if it has ended or not begun.
    """
    if not state.phase.is_open or state.started_ms is None or not state.asked:
        return None
    if state.phase is Phase.PAUSED:
        return state.progressed_ms + PAUSE_MS
    if state.phase is Phase.SETTLING:
        return state.well_ms + state.steps[state.step].settle_ms
    return patient_ms(state)


def patient_ms(state: State) -> int:
    """Until when the step is waited for, if nothing new is heard."""
    carried_ms = DATA_MS if data.is_carried(state) else 0
    return state.progressed_ms + state.patience_ms[state.step] + carried_ms
