"""How a step begins: who is waited for, and whether its tier is to be parted anew.

A tier was parted by who was heard when the rollout began. Where the machine that is to be first is
not heard any more, another one is the first, and watched as such; machines that are heard again go
by the pace of their policies.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from keyplane.model.names import MachineName
from keyplane.rollout import waves
from keyplane.rollout.state import State
from keyplane.rollout.steps import Step
from keyplane.rollout.waves import Group


def at(state: State, index: int, now_ms: int) -> State:
    """At the beginning of a step. Who is not heard now is not waited for, but for its data."""
    if not state.back and _is_outdated(state, state.steps[index]):
        state = _parted_anew(state, index)
    step = state.steps[index]
    return replace(
        state,
        step=index,
        offered=frozenset(),
        passing=frozenset(),
        skipped=(skipped := _skipped(state, step)),
        left=state.left | skipped,
        reached={},
        refused={},
        failing_ms=None,
        step_ms=now_ms,
        progressed_ms=now_ms,
    )


def _skipped(state: State, step: Step) -> frozenset[MachineName]:
    return frozenset(m for m in step.machines if m in state.absent and not step.work(m).yielded)


def _is_outdated(state: State, step: Step) -> bool:
    """Whether who is to be watched is not there, or who was away is."""
    if step.held:
        return False
    skipped = _skipped(state, step)
    return bool(skipped) if step.settle_ms else step.away and len(skipped) < len(step.machines)


def _parted_anew(state: State, index: int) -> State:
    """Part what is left of the tier by who is heard now; its steps are as patient as they were."""
    tier = state.steps[index].tier
    count = sum(1 for step in state.steps[index:] if step.tier == tier and not step.held)
    left, before = state.steps[index : index + count], state.steps[:index]
    rounds = _rounds(state, [step for step in before if step.tier == tier])
    turn = {machine: at for at, step in enumerate(left) for machine in step.machines}

    def late(group: Group) -> tuple[object, ...]:
        return min(turn[machine] for machine in group), group

    whole = _joined(left)
    parts = tuple(waves.part(whole, _groups(whole), state.paces, state.absent, late, rounds))
    patience_ms = max(state.patience_ms[index : index + count])
    return replace(
        state,
        steps=(*before, *parts, *state.steps[index + count :]),
        patience_ms=(
            *state.patience_ms[:index],
            *(patience_ms for _ in parts),
            *state.patience_ms[index + count :],
        ),
    )


def _rounds(state: State, sent: Sequence[Step]) -> Counter[str]:
    """In how many steps of a tier each module went, from the one that was watched on."""
    rounds: Counter[str] = Counter()
    for step in sent:
        there = (machine for machine in step.machines if machine not in state.left)
        for module in {m for each in there for m in waves.modules(step, each, state.paces)}:
            rounds[module] += 1 if step.settle_ms or rounds[module] else 0
    return rounds


def _groups(step: Step) -> list[Group]:
    joined = [tuple(m for m in group if any(step.work(m))) for group in step.together]
    parted = frozenset(step.machines) - {machine for group in joined for machine in group}
    return sorted([*(group for group in joined if group), *((machine,) for machine in parted)])


def _joined(steps: Sequence[Step]) -> Step:
    def all_of(kind: str) -> tuple[object, ...]:
        return tuple(sorted(each for step in steps for each in getattr(step, kind)))

    kinds = (
        *("activated", "changed", "live", "removed", "tightened", "awaited", "yielded"),
        *("rewired", "gaps", "remarks"),
    )
    return replace(
        Step(tier=steps[0].tier, together=steps[0].together),
        **{kind: all_of(kind) for kind in kinds},
    )
