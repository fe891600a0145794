"""What a life that ends at any instant leaves on the disk, and how often that is written."""

import pytest

from keyplane.converge import effects, events, saved
from tests.unit.converge.test_dynamic import began, contract, env, told
from tests.unit.converge.world import WEB, World

QUIET = (effects.Observe, effects.Probe, effects.SendReport)


def test_a_restart_for_a_value_is_written_once_before_it_and_once_after() -> None:
    """Its file, its stop and its start rest on the first; the second tells which process runs."""
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", run_ms=29_000)
    world.forget()
    world.run(1_500)
    assert world.asked[:3] == ["WriteFile", "StopProcess", "StartProcess"]
    assert world.writes[0] == (saved.REACTIONS, saved.LEDGER)
    assert world.writes[1] == (saved.HISTORY, saved.LEDGER)
    assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{WEB}/server")]


def until_crash(world: World, at: int, *, is_done: bool) -> bool:
    """Go on until the effect of that number, which is done or not; False if there is none."""
    count = 0
    until = world.now + 40_000
    while True:
        if world.inbox:
            for effect in world.step(world.inbox.popleft()):
                if not isinstance(effect, QUIET):
                    count += 1
                    if count > at:
                        if is_done:
                            world.perform(effect)
                        return True
                world.perform(effect)
        elif world.wake_ms is not None and world.wake_ms <= until:
            world.clock.advance(max(0, world.wake_ms - world.now))
            world.wake_ms = None
            world.inbox.append(events.Ticked(at_ms=world.now))
        else:
            return False


@pytest.mark.parametrize("is_done", [False, True])
def test_an_agent_that_ends_at_any_effect_restarts_a_unit_once_for_its_value(
    is_done: bool,
) -> None:
    """And what runs then has the value, and is known to."""
    ends = 0
    while True:
        world = began({"PEER": contract()})
        told(world, "10.0.0.2")
        if not until_crash(world, ends, is_done=is_done):
            break
        ends += 1
        world.boot()
        world.run(1_000)
        told(world, "10.0.0.2", run_ms=120_000)
        assert env(world)["PEER"] == "10.0.0.2"
        assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{WEB}/server")]
        told(world, "10.0.0.3", run_ms=120_000)
        assert env(world)["PEER"] == "10.0.0.3"
        assert len(world.acts) == 4
    assert ends >= 3


@pytest.mark.parametrize("is_done", [False, True])
def test_another_value_amid_a_restart_is_not_lost_with_the_agent(is_done: bool) -> None:
    """The engine's second turn is not taken for the first."""
    for at in range(3):
        world = began({"PEER": contract()})
        told(world, "10.0.0.2")
        assert until_crash(world, at, is_done=is_done)
        told(world, "10.0.0.3")
        world.boot()
        told(world, "10.0.0.3", run_ms=120_000)
        assert env(world)["PEER"] == "10.0.0.3"
        (memory,) = world.state.ledger.entries[WEB].units.values()
        assert memory.values == {"PEER": "10.0.0.3"}
        assert len(world.acts) in (2, 4)


def test_what_closed_while_no_agent_ran_is_written_before_it_is_acted_on() -> None:
    """The window of the last life is over when the next begins: its first state has decided."""
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", run_ms=1_000)
    world.clock.advance(60_000)
    world.boot()
    world.forget()
    world.run(1_000)
    assert world.asked[0] == "WriteFile"
    assert saved.REACTIONS in world.writes[0]
    kept = saved.decode_reactions(world.host.files.read_state(saved.REACTIONS))
    assert kept is not None
    assert [unit.turn for unit in kept.units] == [2]
    assert env(world)["PEER"] == "10.0.0.2"


def test_a_values_file_of_a_ledger_that_was_lost_is_written_over() -> None:
    """Nobody else has files there; what stands in it may be an older value."""
    world = began({"PEER": contract()})
    del world.host.files.state[saved.LEDGER]
    world.host.processes.lose()
    world.boot()
    told(world, "10.0.0.2", run_ms=120_000)
    assert env(world)["PEER"] == "10.0.0.2"
    assert world.report().cause is None
