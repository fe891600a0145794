"""What an event tells a rollout, before it is asked what follows from it."""

from dataclasses import replace
from typing import assert_never

from keyplane.model.names import MachineName
from keyplane.rollout import beginning, gate
from keyplane.rollout.state import (
    Event,
    Missed,
    Offered,
    Paused,
    Reported,
    Resumed,
    Seen,
    Started,
    State,
    Stopped,
    Superseded,
    Ticked,
    Unsendable,
)
from keyplane.rollout.steps import Step

LIVES_MAX = 16
"""Lives of one agent that are told apart: more restarts within one rollout are no rollout."""


def take_in(state: State, event: Event) -> State:
    match event:
        case Started(now_ms=now_ms) if state.started_ms is None:
            state = replace(state, started_ms=now_ms)
            return beginning.at(state, 0, now_ms) if state.steps else state
        case Started(now_ms=now_ms):
            # Time that passed without a controller is no machine's fault, and no proof of health;
            # a clock that was set back meanwhile makes nobody silent.
            return replace(
                state,
                started_ms=min(state.started_ms or 0, now_ms),
                step_ms=min(state.step_ms, now_ms),
                progressed_ms=now_ms,
                well_ms=now_ms,
            )
        case Offered():
            return _offered(state, event)
        case Reported():
            return _reported(state, event)
        case Missed(absent=absent):
            asked = state.steps[state.step].machines if state.steps else ()
            lost = absent & state.lost & frozenset(asked)
            return replace(state, absent=absent, skipped=state.skipped | lost)
        case Paused(why=why):
            return replace(state, paused=why)
        case Resumed():
            return replace(state, paused="")
        case Stopped(why=why):
            return replace(state, stopped=why)
        case Ticked(refused=refused):
            step = state.steps[state.step] if state.steps else Step()
            asked = (*step.changed, *step.live, *step.removed, *step.yielded)
            here = {entry: refused[entry] for entry in asked if entry in refused}
            return state if here == state.refused else replace(state, refused=here)
        case Superseded() | Unsendable():
            return state
        case _:
            assert_never(event)


def _offered(state: State, event: Offered) -> State:
    if event.step != state.step or not state.steps or event.back != state.back:
        return state
    if not any(state.steps[state.step].work(event.machine)):
        return state
    known = state.offers.get(event.machine)
    number = event.offer if known is None else max(known, event.offer)
    state = replace(state, offers={**state.offers, event.machine: number})
    again = event.machine in state.offered
    state = replace(state, offered=state.offered | {event.machine})
    return _progressed(state, event.machine, event.now_ms, always=not again)


def _reported(state: State, event: Reported) -> State:
    report = event.report
    if not any(any(step.work(report.machine)) for step in state.steps):
        return state
    known = state.seen.get(report.machine)
    lives = {} if known is None else dict(known.lives)
    if lives.get(report.boot, -1) >= report.sequence:
        return state
    lives.pop(report.boot, None)
    lives[report.boot] = report.sequence
    while len(lives) > LIVES_MAX:
        del lives[next(iter(lives))]
    seen = Seen(report=report, heard_ms=event.now_ms, lives=lives)
    state = replace(
        state,
        seen={**state.seen, report.machine: seen},
        absent=state.absent - {report.machine},
        skipped=state.skipped - {report.machine},
    )
    return _progressed(state, report.machine, event.now_ms, always=False)


def _progressed(state: State, machine: MachineName, now_ms: int, *, always: bool) -> State:
    """Where the machine stands now; one that came further than ever pushes the deadline out."""
    stage = gate.stage(state, machine)
    passes = machine in state.offered and not gate.machine_lacks(state, machine)
    if passes != (machine in state.passing):
        state = replace(state, passing=state.passing ^ {machine})
    if stage > state.reached.get(machine, 0):
        state = replace(state, reached={**state.reached, machine: stage})
        always = True
    return replace(state, progressed_ms=max(state.progressed_ms, now_ms)) if always else state
