"""A guarded entry asks before anything of it is stopped, and waits for the answer."""

from dataclasses import replace
from typing import Any

import pytest

from keyplane.converge import effects, events, saved
from keyplane.model.declaration import DeclaredEntry, EntryState, Health, Member, UnitState, Word
from keyplane.model.module import OnMissing
from keyplane.model.names import EntryId
from tests.unit.converge.test_dynamic import contract, env, told
from tests.unit.converge.world import BY_ANA, SERVER, WEB, World, entry, unit

STOPPED = ("stop", f"{WEB}/server")
STARTED = ("start", f"{WEB}/server")
STOP = Word(number=1, stop=True, who="ana", at_ms=1)


def guarded(version: str = "1", *, word: Word | None = None, **fields: Any) -> DeclaredEntry:
    made = entry(key=f"k{version}", units={"server": unit(version, **fields)}, word=word)
    return replace(made, guarded=True)


def member(world: World, of: EntryId = WEB) -> Member:
    found = world.report(of).member
    assert found is not None
    return found


def grant(world: World, *, run_ms: int = 2_000) -> str:
    """What the last report asks for is granted."""
    name = member(world).permit
    assert name is not None
    world.tell(events.Permitted(at_ms=world.now, permits={WEB: name}), run_ms=run_ms)
    return name


def began(**fields: Any) -> World:
    world = World()
    world.offer({WEB: guarded(**fields)})
    assert world.acts == [STARTED]
    assert member(world) == Member(up=True)
    world.forget()
    return world


def test_a_new_version_waits_for_its_permit() -> None:
    """The old one runs on meanwhile, and counts as up; once it may be stopped, all is as usual."""
    world = began()
    world.offer({WEB: guarded("2")}, run_ms=60_000)
    assert world.acts == []
    assert world.report().state is EntryState.APPLYING
    assert "waits for a permit" in (world.report().cause or "")
    assert (member(world).up, member(world).held) == (True, False)
    grant(world)
    assert world.acts == [STOPPED, STARTED]
    assert world.report().state is EntryState.HEALTHY
    assert member(world) == Member(up=True)


def test_a_permit_is_held_until_the_entry_is_up_again() -> None:
    """Every stop until then is covered by it."""
    world = began()
    world.offer({WEB: guarded("2")})
    name = grant(world, run_ms=500)
    assert member(world) == Member(up=False, permit=name, held=True)
    world.offer({WEB: guarded("3")}, run_ms=5_000)
    assert world.acts == [STOPPED, STARTED, STOPPED, STARTED]
    assert member(world) == Member(up=True)


def test_another_stop_needs_another_permit() -> None:
    """An answer that comes once more grants nothing."""
    world = began()
    world.offer({WEB: guarded("2")})
    name = grant(world)
    world.offer({WEB: guarded("3")})
    assert member(world).permit not in (None, name)
    world.tell(events.Permitted(at_ms=world.now, permits={WEB: name}), run_ms=30_000)
    assert world.acts == [STOPPED, STARTED]


def test_what_is_not_to_be_stopped_any_more_asks_no_more() -> None:
    world = began()
    world.offer({WEB: guarded("2")})
    assert member(world).permit is not None
    world.offer({WEB: guarded("1")})
    assert member(world) == Member(up=True)
    assert world.acts == []


def test_an_entry_that_is_not_guarded_asks_for_nothing() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit("1")})})
    world.offer({WEB: entry(units={"server": unit("2")})})
    assert world.acts == [STARTED, STOPPED, STARTED]
    assert all(each.entries[WEB].member is None for each in world.reports)


def test_a_guard_that_is_lifted_lets_go() -> None:
    world = began()
    world.offer({WEB: guarded("2")})
    world.offer({WEB: replace(guarded("2"), guarded=False)})
    assert world.acts == [STOPPED, STARTED]
    assert world.report().member is None


def test_a_persons_stop_waits() -> None:
    """Said to the controller, and on the machine; until then it runs, and is told as running."""
    world = began()
    world.offer({WEB: guarded(word=STOP)}, run_ms=30_000)
    assert world.acts == []
    assert world.report().units[SERVER].state is UnitState.HEALTHY
    assert world.report().state is EntryState.APPLYING
    assert world.report().stopped is not None
    name = grant(world)
    assert world.acts == [STOPPED]
    assert world.report().state is EntryState.STOPPED
    assert member(world) == Member(up=False, permit=name, held=True)
    world.tell(events.PersonStarted(at_ms=world.now, entry=WEB, who="ana"), run_ms=3_000)
    assert member(world) == Member(up=True)


def test_a_stop_that_is_taken_back_before_its_permit_stops_nothing() -> None:
    world = began()
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA), run_ms=5_000)
    assert member(world).permit is not None
    world.tell(events.PersonStarted(at_ms=world.now, entry=WEB, who="ana"), run_ms=5_000)
    assert world.acts == []
    assert member(world) == Member(up=True)


def test_an_entry_that_is_to_go_waits() -> None:
    """Then it goes whole, and takes its permit with it."""
    world = began()
    world.offer({}, run_ms=30_000)
    assert world.acts == []
    assert member(world).up
    grant(world)
    assert world.acts == [STOPPED]
    assert WEB not in world.reports[-1].entries
    assert world.state.ledger.permits == {}


@pytest.mark.parametrize("lost", [saved.LEDGER, saved.DECLARATION])
def test_an_entry_that_is_to_go_waits_in_another_life(lost: str) -> None:
    """Also where one of what the agent saved is lost."""
    world = began()
    del world.host.files.state[lost]
    world.boot()
    world.offer({}, run_ms=30_000)
    assert world.acts == []
    grant(world)
    assert world.acts == [STOPPED]


def test_a_permit_outlives_the_agent() -> None:
    """One that is asked for is asked for still; one that is held needs no other."""
    world = began()
    world.offer({WEB: guarded("2")})
    asked = member(world).permit
    world.boot()
    world.run(2_000)
    assert member(world) == Member(up=True, permit=asked)
    name = member(world).permit
    assert name is not None
    event = events.Permitted(at_ms=world.now, permits={WEB: name})
    (stop,) = world.step(event)  # it is killed before it stops anything
    assert isinstance(stop, effects.StopProcess)
    world.boot()
    world.run(5_000)
    assert world.acts == [STOPPED, STARTED]
    assert member(world) == Member(up=True)


def test_health_is_looked_at_while_a_stop_waits() -> None:
    """One that is ill by then takes nothing away when it is stopped, and its controller hears so."""
    world = began(health=Health(http="http://127.0.0.1/", retries=1))
    world.offer({WEB: guarded("2", health=Health(http="http://127.0.0.1/", retries=1))})
    assert member(world).up
    world.host.processes.problems[WEB, SERVER] = "status 500"
    world.run(5_000)
    assert not member(world).up
    world.host.processes.problems.clear()
    world.run(5_000)
    assert member(world).up
    assert world.acts == []


def test_a_unit_of_another_name_serves_until_it_may_be_stopped() -> None:
    """Its entry is up meanwhile, though nothing runs yet of what is declared."""
    world = began()
    renamed = replace(entry(key="k2", units={"other": unit("2")}), guarded=True)
    world.offer({WEB: renamed}, run_ms=5_000)
    assert world.acts == []
    assert (member(world).up, member(world).held) == (True, False)
    grant(world)
    assert world.acts == [STOPPED, ("start", f"{WEB}/other")]
    assert member(world) == Member(up=True)


def test_one_that_ends_while_its_stop_waits_is_started_as_declared() -> None:
    """Nothing of it runs that could be stopped: no permit is needed any more."""
    world = began()
    world.offer({WEB: guarded("2")})
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(5_000)
    assert world.acts == [STARTED]
    assert member(world) == Member(up=True)


def reacting(**fields: Any) -> World:
    """A guarded unit that waits for a permit to be restarted with a second value."""
    world = World()
    made = unit(dynamic={"PEER": contract(**fields)})
    world.offer({WEB: replace(entry(units={"server": made}), guarded=True)})
    told(world, "10.0.0.1", run_ms=60_000)
    world.forget()
    told(world, "10.0.0.2", run_ms=60_000)
    assert world.acts == []
    return world


def test_a_reaction_waits_and_is_stale_meanwhile() -> None:
    world = reacting()
    assert world.report().state is EntryState.STALE
    assert world.report().units[SERVER].reaction == "running-stale"
    assert list(world.report().units[SERVER].stale_since_ms) == ["PEER"]
    assert member(world).up
    grant(world)
    assert world.acts == [STOPPED, STARTED]
    assert env(world)["PEER"] == "10.0.0.2"
    assert world.report().units[SERVER].reaction == "running"
    assert member(world) == Member(up=True)


def test_values_that_change_while_a_reaction_waits_are_one_restart() -> None:
    """With the last of them, and no budget is spent for those that nothing was started with."""
    world = reacting()
    for last in range(3, 12):
        told(world, f"10.0.0.{last}", run_ms=60_000)
    assert world.acts == []
    grant(world, run_ms=60_000)
    assert world.acts == [STOPPED, STARTED]
    assert env(world)["PEER"] == "10.0.0.11"
    assert world.report().units[SERVER].reaction == "running"


def test_a_value_that_is_back_before_the_permit_restarts_nothing() -> None:
    world = reacting()
    told(world, "10.0.0.1", run_ms=60_000)
    assert member(world) == Member(up=True)
    assert world.report().state is EntryState.HEALTHY
    assert world.acts == []
    told(world, "10.0.0.3", run_ms=60_000)
    grant(world)
    assert env(world)["PEER"] == "10.0.0.3"


def test_a_stop_for_want_of_a_value_waits_too() -> None:
    world = reacting(on_missing=OnMissing.STOP)
    grant(world, run_ms=60_000)
    world.forget()
    told(world, None, run_ms=60_000)
    assert world.acts == []
    assert world.report().state is EntryState.STALE
    grant(world)
    assert world.acts == [STOPPED]
    assert world.report().state is EntryState.STOPPED


@pytest.mark.parametrize("second", ["10.0.0.1", "10.0.0.2"])
def test_a_unit_that_is_declared_again_before_it_was_stopped_runs_with_what_is_known(
    second: str,
) -> None:
    """Its removal waited for a permit, and nobody followed its values meanwhile."""
    world = World()
    made = unit(dynamic={"PEER": contract()})
    other = {EntryId("api:main@alpha"): entry(key="a", units={"server": made})}
    web = {WEB: replace(entry(units={"server": made}), guarded=True)}
    world.offer({**web, **other})
    told(world, "10.0.0.1", run_ms=60_000)
    world.offer(other, run_ms=5_000)
    told(world, second, run_ms=60_000)
    world.forget()
    world.offer({**web, **other}, run_ms=60_000)
    if second == "10.0.0.1":
        assert member(world) == Member(up=True)
        assert world.acts == []
        return
    assert world.report().state is EntryState.STALE
    grant(world)
    assert world.acts == [STOPPED, STARTED]
    runs = [run for run in world.host.processes.runs.values() if run.seen.running]
    assert {run.spec.env["PEER"] for run in runs} == {second}
