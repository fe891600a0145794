"""What is well and stays so is asked for its health, and not decided on anew."""

from collections.abc import Callable

import pytest

from keyplane.converge import effects, events, resting
from keyplane.model.declaration import EntryState, Health
from tests.unit.converge.world import BY_ANA, DB, SERVER, WEB, World, entry, unit

HEALTH = Health(tcp="127.0.0.1:1", interval_ms=1_000)
CHECKED = {"server": unit(health=HEALTH)}


def at_rest() -> World:
    world = World()
    web = entry(units=CHECKED | {"other": unit("o", health=HEALTH)}, listens={"http": 80})
    world.offer({WEB: web, DB: entry(units=CHECKED)})
    assert world.state.rests.keys() == {WEB, DB}
    return world


def test_it_is_probed_as_often_as_ever() -> None:
    """Each second, of each unit; `World.step` holds each answer against one that is decided on."""
    world = at_rest()
    world.forget()
    world.run(60_000)
    assert sum(isinstance(each, effects.Probe) for each in world.effects) == 3 * 60
    assert world.state.rests.keys() == {WEB, DB}
    assert world.asked == []


def test_just_what_says_that_all_is_well_is_not_decided_on() -> None:
    world = at_rest()
    now = world.now + 1
    for effect in world.step(events.Ticked(at_ms=now + 1_000)):
        assert isinstance(effect, effects.Probe)
        of = {"entry": effect.spec.entry, "unit": effect.spec.unit}
        well = events.Probed(at_ms=now, problem=None, **of)
        ill = events.Probed(at_ms=now, problem="no answer", **of)
        assert resting.step(world.state, well) is not None
        assert resting.step(world.state, ill) is None
        world.step(well)
        assert resting.step(world.state, well) is None  # nobody asked


def test_what_does_not_answer_rests_no_more_until_it_does() -> None:
    world = at_rest()
    world.host.processes.problems[WEB, SERVER] = "no answer"
    world.run(5_000)
    assert world.report().state is EntryState.FAILED
    assert world.state.rests.keys() == {DB}
    del world.host.processes.problems[WEB, SERVER]
    world.run(2_000)
    assert world.report().state is EntryState.HEALTHY
    assert world.state.rests.keys() == {WEB, DB}


@pytest.mark.parametrize(
    "happens",
    [
        lambda now: events.PersonStopped(at_ms=now, entry=DB, stop=BY_ANA),
        lambda now: events.Permitted(at_ms=now, permits={WEB: "p"}),
        lambda now: events.ClockSet(at_ms=now, wall_ms=5),
        lambda now: events.Connected(at_ms=now),
    ],
)
def test_whatever_else_happens_ends_the_rest_of_all(
    happens: Callable[[int], events.Event],
) -> None:
    """What it concerns is not known beforehand; all rest again once they were decided on."""
    world = at_rest()
    world.step(happens(world.now))
    assert world.state.rests == {}
    world.run(40_000)
    assert WEB in world.state.rests


def test_one_that_ended_is_started_and_rests_again_when_its_ends_are_forgiven() -> None:
    """At the time at which they are, though all is well before: something is due."""
    world = at_rest()
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(3_000)
    assert world.report().state is EntryState.HEALTHY
    rest = world.state.rests[WEB]
    assert rest.until_ms is not None
    world.run(rest.until_ms + 1_000 - world.now)
    assert world.state.ledger.entries[WEB].units[SERVER].deaths == 0
    assert world.state.rests[WEB].until_ms is None
