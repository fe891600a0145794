"""A unit that is started before the one from which it takes over is stopped."""

from dataclasses import replace

import pytest

from keyplane.converge import effects, events
from keyplane.model.declaration import EntryState, Health, UnitState
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.occurrence import Act
from tests.unit.converge.world import BY_ANA, SERVER, WEB, World, digest, entry, unit

CHECKED = Health(tcp="127.0.0.1:80", interval_ms=1_000, start_period_ms=5_000, retries=1)


def version(number: str, *command: str, **fields):
    return unit(number, *command, health=CHECKED, start_first=True, **fields)


def one(declared, key: str = "k"):
    return {WEB: entry(key=key, units={"server": declared})}


def running(world: World, name: str = "server") -> list[Digest]:
    return sorted(each.digest for each in world.host.running().get((WEB, UnitName(name)), []))


def both(*versions: str) -> list[Digest]:
    return sorted(digest(f"unit {each}") for each in versions)


@pytest.fixture
def world() -> World:
    made = World()
    made.offer(one(version("1")))
    assert made.report().state is EntryState.HEALTHY
    made.forget()
    return made


def ill(world: World) -> None:
    world.host.processes.problems[WEB, SERVER] = "connection refused"


def well(world: World) -> None:
    world.host.processes.problems.clear()


def test_the_old_one_is_stopped_once_the_new_one_is_healthy(world: World) -> None:
    ill(world)
    world.offer(one(version("2"), "other"))
    assert world.acts == [("start", f"{WEB}/server")]
    assert running(world) == both("1", "2")
    report = world.report()
    assert report.state is EntryState.APPLIED
    assert report.units[SERVER].digest == digest("unit 1")
    assert report.units[SERVER].state is UnitState.STARTING
    assert any("former version runs on" in note for note in report.notes)
    well(world)
    world.run(2_000)
    assert world.acts == [("start", f"{WEB}/server"), ("stop", f"{WEB}/server")]
    assert running(world) == both("2")
    assert world.report().state is EntryState.HEALTHY
    assert world.report().units[SERVER].digest == digest("unit 2")
    assert not world.report().notes
    assert [each.act for each in world.state.history.kept[-1:]] == [Act.RESTART]


def test_without_a_health_check_it_is_well_once_it_has_run_a_second() -> None:
    world = World()
    world.offer(one(unit("1", start_first=True)))
    world.offer(one(unit("2", start_first=True)), run_ms=900)
    assert running(world) == both("1", "2")
    world.run(200)
    assert running(world) == both("2")


def test_a_new_one_that_fails_takes_nothing_away(world: World) -> None:
    """It is told as failed, and tried on; the old one has kept its process."""
    pid = world.pid()
    world.offer(one(version("2", "exit", "1"), "other"), run_ms=20_000)
    assert [act for act, _ in world.acts if act == "stop"] == []
    report = world.report()
    assert report.state is EntryState.FAILED
    assert report.key == digest("other")
    assert report.units[SERVER].pid == pid == world.pid()
    assert report.units[SERVER].state is UnitState.BACKING_OFF
    assert report.units[SERVER].restarts > 3
    assert report.cause is not None
    assert "exit 1" in report.cause
    assert all(each.entries[WEB].units[SERVER].pid == pid for each in world.reports)


def test_what_it_was_is_declared_again_and_was_never_away(world: World) -> None:
    pid = world.pid()
    ill(world)
    world.offer(one(version("2"), "other"))
    well(world)
    world.offer(one(version("1")))
    assert world.acts == [("start", f"{WEB}/server"), ("stop", f"{WEB}/server")]
    assert world.pid() == pid
    report = world.report()
    assert report.state is EntryState.HEALTHY
    assert report.units[SERVER].restarts == 0
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(5_000)
    assert world.report().units[SERVER].restarts == 1  # its own end counts as before


@pytest.mark.parametrize("ended", ["with the agent", "by itself", "long ago"])
def test_what_it_was_and_runs_no_more_is_declared_again(world: World, ended: str) -> None:
    """What was to take over serves until that is well once more."""
    ill(world)
    world.offer(one(version("2"), "other"))
    first = next(key for key in world.host.processes.runs if key[2] == digest("unit 1"))
    if ended != "by itself":
        well(world)
        while not any(isinstance(each, effects.StopProcess) for each in world.effects):
            world.clock.advance(100)
            world.inbox.append(events.Ticked(at_ms=world.now))
            while world.inbox:
                for effect in world.step(world.inbox.popleft()):
                    if not isinstance(effect, effects.StopProcess):
                        world.perform(effect)
    world.host.processes.end(*first[:2], digest=first[2], code=0)
    if ended != "by itself":
        world.boot()
    world.run(60_000 if ended == "long ago" else 0)
    assert running(world) == both("2")
    well(world)
    world.forget()
    world.offer(one(version("1")))
    assert world.acts == [("start", f"{WEB}/server"), ("stop", f"{WEB}/server")]
    assert running(world) == both("1")
    assert world.report().state is EntryState.HEALTHY


def test_of_three_versions_the_one_that_was_well_stays_until_the_last_is(world: World) -> None:
    ill(world)
    world.offer(one(version("2"), "2"))
    assert running(world) == both("1", "2")
    world.offer(one(version("3"), "3"))
    assert running(world) == both("1", "3")
    well(world)
    world.run(2_000)
    assert running(world) == both("3")


def test_a_person_stops_both(world: World) -> None:
    ill(world)
    world.offer(one(version("2"), "2"))
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    world.run(1_000)
    assert running(world) == []
    assert world.report().state is EntryState.STOPPED


def test_an_entry_that_goes_takes_both(world: World) -> None:
    ill(world)
    world.offer(one(version("2"), "2"))
    world.offer({})
    assert running(world) == []


def test_another_life_of_the_agent_goes_on_with_it(world: World) -> None:
    ill(world)
    world.offer(one(version("2"), "2"))
    world.boot()
    world.run(2_000)
    assert running(world) == both("1", "2")
    well(world)
    world.run(2_000)
    assert running(world) == both("2")
    assert [act for act, _ in world.acts] == ["start", "stop"]


def test_an_end_of_the_new_one_counts_though_the_old_one_is_being_stopped(world: World) -> None:
    world.inbox.append(
        events.Offered(at_ms=world.now, declaration=world.declaration(one(version("2"), "2"), 7))
    )
    stop = None
    while stop is None:
        world.hear()
        if not world.inbox:
            world.clock.advance(10)
            world.inbox.append(events.Ticked(at_ms=world.now))
        for effect in world.step(world.inbox.popleft()):
            if isinstance(effect, effects.StopProcess):
                stop = effect
            else:
                world.perform(effect)
    assert stop.digest == digest("unit 1")
    new = next(r for r in world.host.processes.runs.values() if r.seen.digest == digest("unit 2"))
    new.seen = replace(new.seen, running=False, exit_code=3)
    world.inbox.append(events.Exited(at_ms=world.now, process=new.seen))
    while world.inbox:
        for effect in world.step(world.inbox.popleft()):
            world.perform(effect)
    world.perform(stop)
    world.run(3_000)
    assert running(world) == both("2")
    assert world.report().units[SERVER].restarts == 1
    assert world.report().units[SERVER].last_exit == "exit 3"


def test_an_entry_that_says_nothing_of_it_is_stopped_first(world: World) -> None:
    world.offer(one(replace(version("2"), start_first=False), "2"))
    assert [act for act, _ in world.acts] == ["stop", "start"]


# A unit of another name.


def renamed(*, of: str = "server", **fields):
    new = unit("2", health=CHECKED, replaces=UnitName(of), **fields)
    return {WEB: entry(key="2", units={"process": new})}


def test_a_replaced_unit_is_removed_once_its_successor_is_healthy(world: World) -> None:
    world.host.processes.problems[WEB, UnitName("process")] = "connection refused"
    world.offer(renamed())
    assert world.acts == [("start", f"{WEB}/process")]
    assert running(world) == both("1")
    assert world.report().notes == (
        f"server: runs on as pid {world.pid()} until process is healthy",
    )
    well(world)
    world.run(2_000)
    assert world.acts == [("start", f"{WEB}/process"), ("stop", f"{WEB}/server")]
    assert running(world) == []
    assert world.report().state is EntryState.HEALTHY
    assert not world.report().notes


def test_a_successor_of_nobody_starts_as_any_other(world: World) -> None:
    """It names what the module no longer has, and what runs nowhere."""
    world.offer(renamed(of="elsewhere"))
    assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{WEB}/process")]
    assert world.report().state is EntryState.HEALTHY


def test_one_that_is_declared_beside_its_successor_stays(world: World) -> None:
    new = unit("2", health=CHECKED, replaces=SERVER)
    world.offer({WEB: entry(key="2", units={"process": new, "server": version("1")})})
    assert world.acts == [("start", f"{WEB}/process")]
    assert running(world) == both("1")


def test_what_it_was_is_declared_again_before_the_successor_was_well(world: World) -> None:
    pid = world.pid()
    world.host.processes.problems[WEB, UnitName("process")] = "connection refused"
    world.offer(renamed())
    world.offer(one(version("1")))
    assert world.acts == [("start", f"{WEB}/process"), ("stop", f"{WEB}/process")]
    assert world.pid() == pid
    assert world.report().state is EntryState.HEALTHY


def test_a_person_stops_the_replaced_one_too(world: World) -> None:
    world.host.processes.problems[WEB, UnitName("process")] = "connection refused"
    world.offer(renamed())
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    world.run(1_000)
    assert running(world) == running(world, "process") == []


def test_a_successor_that_is_done_is_well(world: World) -> None:
    """One that is not started again after it ended well has done what it is for."""
    new = unit("2", "exit", "0", replaces=SERVER, run_once=True)
    world.offer({WEB: entry(key="2", units={"process": new})})
    assert world.acts == [("start", f"{WEB}/process"), ("stop", f"{WEB}/server")]


@pytest.mark.parametrize("number", [2, 3])
def test_entries_that_took_each_others_ports_do_not_wait_for_ever(number: int) -> None:
    """One of them stops first, the first by name; of the others, the old goes when the new is well."""
    names = [EntryId(f"e{each}:main@m1") for each in range(number)]

    def declared(turn: int):
        units = {"server": version(str(turn))}
        return {
            name: entry(
                key=str(turn), units=units, listens={"web": 20_000 + (place + turn) % number}
            )
            for place, name in enumerate(names)
        }

    world = World()
    world.offer(declared(0))
    world.forget()
    world.offer(declared(1), run_ms=10_000)
    assert {world.report(name).state for name in names} == {EntryState.HEALTHY}
    assert {world.report(name).key for name in names} == {digest("1")}
    first = [act for act, of in world.acts if of == f"{names[0]}/server"]
    assert first == ["stop", "start"]
    for name in names[1:]:
        assert [act for act, of in world.acts if of == f"{name}/server"] == ["start", "stop"]


def test_who_waits_for_a_port_that_is_given_up_in_time_stops_nothing_first() -> None:
    """A chain is no circle: its end starts, and so all of it does."""
    names = [EntryId(f"e{each}:main@m1") for each in range(3)]

    def declared(turn: int):
        units = {"server": version(str(turn))}
        return {
            name: entry(key=str(turn), units=units, listens={"web": 20_000 + place + turn})
            for place, name in enumerate(names)
        }

    world = World()
    world.offer(declared(0))
    world.forget()
    world.offer(declared(1), run_ms=10_000)
    for name in names:
        assert world.report(name).state is EntryState.HEALTHY
        assert [act for act, of in world.acts if of == f"{name}/server"] == ["start", "stop"]
