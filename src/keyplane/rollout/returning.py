"""How a rollout that failed goes back: which steps it leaves, and what their entries are then.

Each entry is what it was in the base, or what its refuge says. One that an earlier rollout sent
goes back to its refuge also where this one had not come to it yet.
"""

from collections.abc import Mapping, Sequence

from keyplane.model.names import Digest, EntryId
from keyplane.model.plan import Edge
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.state import State
from keyplane.rollout.steps import Step


def first_step(state: State) -> int:
    """From which step on a rollout that is in that state leaves them, backwards."""
    late = (n for n in range(state.asked - 1, state.step, -1) if is_fled(state, n))
    return next(late, state.step)


def next_step(state: State) -> int | None:
    """Which one it leaves after this; None if that was the last."""
    before = range(state.step - 1, -1, -1)
    return next((n for n in before if n < state.furthest or is_fled(state, n)), None)


def is_fled(state: State, index: int) -> bool:
    """Whether an entry of that step has a refuge."""
    return any(entry in state.refuges for entry in _entries(state.steps[index]))


def entries(state: State) -> tuple[EntryId, ...]:
    """Those that are on their way back in the present step."""
    present = state.steps[state.step]
    if state.step < state.furthest:
        return (*present.switched, *present.removed)
    return tuple(entry for entry in _entries(present) if entry in state.refuges)


def unpassed(state: State) -> tuple[EntryId, ...]:
    """Those of the step that failed, while it goes back from one that it had not come to yet."""
    is_before = 0 < state.furthest <= state.step
    return state.steps[state.furthest - 1].switched if is_before else ()


def reached(state: State) -> dict[EntryId, Refuge]:
    """The refuges that are declared now."""
    if not state.back or not state.refuges:
        return {}
    return {
        entry: state.refuges[entry]
        for step in state.steps[state.step : state.asked]
        for entry in _entries(step)
        if entry in state.refuges
    }


def without(state: State) -> dict[EntryId, Refuge] | None:
    """The refuges but for what was not left before this step; None if there is none to let go."""
    if not state.back:
        return None
    here = {
        entry
        for step in state.steps[: state.step + 1]
        for entry in _entries(step)
        if entry in state.refuges
    }
    return {e: each for e, each in state.refuges.items() if e not in here} if here else None


def key(state: State, entry: EntryId) -> Digest | None:
    """What an entry of the step goes back to; None if it is to be gone."""
    if entry not in state.refuges:
        return state.former.get(entry)
    planned = state.refuges[entry].planned
    return None if planned is None else Digest(planned.entry.key)


def edges(state: State, made: Sequence[Edge], back: Mapping[EntryId, Refuge]) -> tuple[Edge, ...]:
    """Of the mixture, where some of its entries are what their refuges say."""
    gaps = {gap for step in state.steps[: state.sent] for gap in step.gaps}
    return (
        *(edge for edge in made if edge.consumer not in back),
        *(
            edge
            for refuge in back.values()
            for edge in refuge.edges
            if (edge.consumer, edge.provider) not in gaps
        ),
    )


def _entries(step: Step) -> tuple[EntryId, ...]:
    return (*step.switched, *step.removed, *step.awaited)
