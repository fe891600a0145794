"""What the state of a rollout is made of, and what it says of what was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from keyplane.model.declaration import Report
from keyplane.model.names import EntryId, MachineName
from keyplane.parts import control_messages as messages
from keyplane.parts import freezing, held, telling
from keyplane.parts.planning import Base, Sent
from keyplane.ports.errors import TransientError
from keyplane.ports.inventory import Inventory, PlannedEntry, StoredPlan, StoredRollout
from keyplane.rollout import (
    machine,
    mixture,
    progress,
    reckoning,
    refuges,
    returning,
    withheld,
)
from keyplane.rollout import state as rollout_state
from keyplane.rollout.mixture import Mixture
from keyplane.rollout.policies import TOGETHER, Rule, Terms
from keyplane.rollout.state import Event, Phase, Reported, State, Superseded
from keyplane.rollout.steps import Step

REPEATED_MAX = 16
"""A request is repeated within moments: it began one of the last so many rollouts, or none."""


def first_state(
    stored: StoredPlan,
    base: Base,
    before: StoredPlan | None,
    reports: Mapping[MachineName, Report],
    terms: Terms,
) -> State:
    # With no target before, machines that run something tell of a lost inventory. In steps,
    # the first would take away what the later ones have: they are offered everything at once.
    # Nor can anything that runs be held, or taken back: what was before is not known.
    is_lost = before is None and any(report.entries for report in reports.values())
    if is_lost:
        at_once = Rule(upgrade=TOGETHER, max_unavailable=None)
        terms = replace(terms, rules=dict.fromkeys(terms.rules, at_once))
    held = withheld.withheld(stored.plan, base.entries)
    if is_lost:
        held = withheld.with_consumers(held, stored.plan.edges)
    terms = replace(terms, withheld=held)
    return machine.begin(
        base=base.entries,
        base_edges=base.edges,
        target=stored.entries,
        target_edges=() if is_lost else stored.plan.edges,
        reports=reports,
        unproven=base.unproven,
        fled=base.refuges,
        terms=terms,
    )


def base(target: StoredPlan | None, latest: StoredRollout | None) -> Base:
    """What is declared now: the target, or, where the latest did not get so far, the mixture."""
    if target is None:
        return Base(entries={}, edges=(), plan=None)
    if not is_of(latest, target):
        raise changed_meanwhile()
    state = None if latest is None else rollout_state.decode(latest.state)
    if latest is None or state is None:
        return Base(
            entries=target.entries,
            edges=target.plan.edges,
            plan=target.plan,
            seen=seen(latest, state),
        )
    unproven = machine.unproven(state)
    fled = refuges.left(state, latest.base, unproven)
    if state.sent == len(state.steps):
        return Base(
            entries=target.entries,
            edges=target.plan.edges,
            plan=target.plan,
            unproven=unproven,
            refuges=fled,
            guards=state.guards,
            seen=seen(latest, state),
        )
    declared = mixed(state, latest.base, target)
    return Base(
        entries={
            entry: PlannedEntry(entry=planned.entry, grants=planned.grants, udp=planned.udp)
            for entry, planned in declared.entries.items()
        },
        edges=machine.edges(state, target.plan.edges),
        plan=target.plan,
        contents=declared.contents,
        guards=state.guards,
        unproven=unproven,
        refuges=fled,
        seen=seen(latest, state),
    )


def is_of(latest: StoredRollout | None, target: StoredPlan | None) -> bool:
    """Not where they were read one after the other, and somebody committed between."""
    return latest is None or target is None or latest.generation == target.plan.generation


def changed_meanwhile() -> TransientError:
    return TransientError("the target was changed just now: look again")


def status(
    latest: StoredRollout | None, problem: str, target: StoredPlan | None
) -> messages.RolloutStatus | None:
    """How the latest stands; `problem` is what is in its way at the moment."""
    if latest is None:
        return None
    state = rollout_state.decode(latest.state)
    if state is None:
        return messages.RolloutStatus(number=latest.number, state="unreadable")
    if state.phase.is_open:
        why = problem or progress.sentence(state)
    else:
        why = telling.ended(reckoning.outcome(state)).why
    return messages.RolloutStatus(
        number=latest.number,
        state=state.phase.value,
        why=why,
        paused=state.paused if state.phase.is_open else "",
        held=held.rows(state, latest.base, target),
        closed=bool(state.closed),
    )


def is_recorded(before: State, after: State, events: Sequence[Event]) -> bool:
    """Whether only reports moved it, and no further: the next life hears of them once more.

    To write all of it for each report would cost the square of the machines.
    """
    if after is before or not all(isinstance(event, Reported) for event in events):
        return False
    return (before.phase, before.step, before.troubles) == (
        after.phase,
        after.step,
        after.troubles,
    )


async def end_overtaken(inventory: Inventory, number: int, now_ms: int) -> None:
    """Write down how the rollout before that one ended, where whoever began that one could not."""
    before = await inventory.rollout(number - 1)
    state = None if before is None else rollout_state.decode(before.state)
    if before is not None and state is not None and state.phase.is_open:
        ended, _ = machine.step(state, Superseded(now_ms=now_ms))
        await inventory.save_rollout(
            before.number, state=rollout_state.encode(ended), is_open=False
        )


def seen(latest: StoredRollout | None, state: State | None) -> Sent | None:
    if latest is None:
        return None
    if state is None:
        return Sent(rollout=latest.number, steps=0)
    back = (state.step, len(state.refuges)) if state.back else None
    return Sent(rollout=latest.number, steps=state.sent, back=back)


async def terms(inventory: Inventory, given: Terms, target: StoredPlan) -> Terms:
    """With what the fleet's state adds: a freeze, and machines that are lost since an earlier one."""
    latest = await inventory.rollout()
    state = None if latest is None else rollout_state.decode(latest.state)
    lost = given.lost if state is None else given.lost | state.lost
    return replace(
        given,
        paused=freezing.pause(await inventory.frozen()),
        lost=lost - target.plan.machines.keys(),
    )


async def now_sent(inventory: Inventory) -> Sent | None:
    latest = await inventory.rollout()
    return seen(latest, None if latest is None else rollout_state.decode(latest.state))


def mixed(state: State, base: Mapping[EntryId, PlannedEntry], target: StoredPlan) -> Mixture:
    back = returning.reached(state)
    made = mixture.mix(base, target.entries, state.steps, state.sent, target.contents, back)
    return replace(made, guards=state.guards)


def size(step: Step) -> int:
    return len(step.switched) + len(step.removed)


def last_end(latest: StoredRollout | None, target: StoredPlan | None) -> tuple[messages.Event, ...]:
    """How the latest ended, and first which that is; nothing where there was none."""
    state = None if latest is None else rollout_state.decode(latest.state)
    return (
        () if latest is None or state is None else _whole(latest, state, end(latest, state, target))
    )


def overtaken(row: StoredRollout, after: StoredRollout) -> tuple[messages.Event, ...]:
    """How one ended that is not the latest, and first which that is."""
    state = rollout_state.decode(row.state)
    if state is None:
        return ()
    is_so = state.phase is Phase.SUPERSEDED
    successor = telling.taken_over(after.number, after.who, "") if is_so else ""
    return _whole(row, state, telling.ended(reckoning.outcome(state), successor=successor))


def _whole(row: StoredRollout, state: State, ended: messages.Ended) -> tuple[messages.Event, ...]:
    return messages.Begun(rollout=row.number, entries=sum(map(size, state.steps))), ended


def end(latest: StoredRollout, state: State, target: StoredPlan | None) -> messages.Ended:
    """Of one that has ended."""
    rows = held.rows(state, latest.base, target)
    return telling.ended(reckoning.outcome(state), held=rows)


async def requested(inventory: Inventory, request: str) -> list[StoredRollout]:
    """The rollout that a request of that name began, and the one after it; it is one of the last."""
    row, after = await inventory.rollout(), list[StoredRollout]()
    for _ in range(REPEATED_MAX if request else 0):
        if row is None:
            break
        if row.request == request:
            return [row, *after]
        row, after = await inventory.rollout(row.number - 1), [row]
    return []
