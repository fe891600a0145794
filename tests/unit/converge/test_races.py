"""What comes at the wrong time: during an effect, before its answer, after a crash."""

from collections.abc import Mapping
from dataclasses import replace

from keyplane.converge import effects, events
from keyplane.model.declaration import (
    DeclaredDirectory,
    DeclaredEntry,
    EntryState,
    Reload,
    UnitState,
)
from keyplane.model.host import PathKind
from keyplane.model.names import EntryId
from tests.unit.converge.world import BY_ANA, SERVER, WEB, World, digest, entry, unit


def until_asked(world: World, kind: type[effects.Effect]) -> effects.Effect:
    """Go on until such an effect is asked for, and leave it undone."""
    for _ in range(200):
        world.hear()
        assert world.inbox, f"no {kind.__name__} is asked for"
        for effect in world.step(world.inbox.popleft()):
            if isinstance(effect, kind):
                return effect
            world.perform(effect)
    raise AssertionError(f"no {kind.__name__} is asked for")


def offered(world: World, entries: Mapping[EntryId, DeclaredEntry]) -> None:
    world.counter += 1
    declaration = world.declaration(entries, world.counter)
    world.inbox.append(events.Offered(at_ms=world.now, declaration=declaration))


def look(world: World) -> None:
    """A full pass, now."""
    world.perform(effects.Observe(paths=tuple(world.state.declared_at)))


def test_a_look_during_a_start_or_a_stop_counts_no_end_and_starts_nothing_twice() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit("1")})})
    offered(world, {WEB: entry(units={"server": unit("2")})})
    stop = until_asked(world, effects.StopProcess)
    look(world)
    world.run()
    world.perform(stop)
    start = until_asked(world, effects.StartProcess)
    look(world)
    world.run()
    world.perform(start)
    look(world)
    world.run(2_000)
    assert world.acts[-2:] == [("stop", f"{WEB}/server"), ("start", f"{WEB}/server")]
    report = world.report().units[SERVER]
    assert (report.state, report.restarts, report.last_exit) == (UnitState.HEALTHY, 0, None)


def test_an_end_that_comes_during_a_stop_is_the_stops() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.inbox.append(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    stop = until_asked(world, effects.StopProcess)
    world.host.processes.end(WEB, SERVER, code=1)
    world.run()
    world.perform(stop)
    world.run(1_000)
    report = world.report().units[SERVER]
    assert (report.state, report.last_exit) == (UnitState.STOPPED, None)
    offered(world, {WEB: entry(units={"server": unit("2")})})
    world.tell(events.PersonStarted(at_ms=world.now, entry=WEB, who="ana"), run_ms=2_000)
    assert world.report().state is EntryState.HEALTHY


def test_an_end_that_is_told_before_its_start_is_counted_once() -> None:
    world = World()
    world.run()
    offered(world, {WEB: entry(units={"server": unit()})})
    start = until_asked(world, effects.StartProcess)
    world.perform(start)
    answer = world.inbox.pop()
    world.host.processes.end(WEB, SERVER, code=7)
    world.run()
    assert world.pid() is None
    world.tell(answer, run_ms=100)
    assert world.report().units[SERVER].state is UnitState.BACKING_OFF
    assert world.report().units[SERVER].last_exit == "exit 7"
    world.run(2_000)
    assert world.report().units[SERVER].restarts == 1
    assert world.report().state is EntryState.HEALTHY


def test_a_file_that_others_put_where_a_crash_prevented_ours_is_refused() -> None:
    world = World("a")
    world.run()
    offered(world, {WEB: entry(files={"/etc/x": "a"})})
    until_asked(world, effects.WriteFile)
    world.host.files.put("/etc/x", b"theirs")
    world.boot()
    world.run(1_000)
    assert world.host.files.nodes["/etc/x"].content == b"theirs"
    assert world.report().state is EntryState.FAILED
    world.offer({})
    assert world.host.files.nodes["/etc/x"].content == b"theirs"


def test_a_file_whose_write_a_crash_left_untold_is_ours() -> None:
    """Whatever is declared by the next life."""
    world = World("a", "b")
    world.run()
    offered(world, {WEB: entry(files={"/etc/x": "a"})})
    world.perform(until_asked(world, effects.WriteFile))
    world.boot()
    offered(world, {WEB: entry(files={"/etc/x": "b"})})
    world.run(1_000)
    assert world.host.files.nodes["/etc/x"].content == b"b"
    world.offer({})
    assert world.host.files.removed == ["/etc/x"]


def test_what_a_crash_left_started_takes_up_what_changed_since() -> None:
    world = World("one", "two")

    def declared(text: str):
        reload = Reload(signal="HUP")
        return {WEB: entry(units={"server": unit(config={"/c": text}, reload=reload)})}

    world.run()
    offered(world, declared("one"))
    world.perform(until_asked(world, effects.StartProcess))
    world.boot()
    offered(world, declared("two"))
    world.run(2_000)
    assert world.acts == [("start", f"{WEB}/server"), ("reload", f"{WEB}/server")]


def test_empty_volumes_and_directories_that_were_there_stay() -> None:
    world = World()
    world.host.files.make_directory("/srv/theirs", mode="0755", owner=None, group=None)
    directories = {
        "/srv/theirs": DeclaredDirectory(mode="0700"),
        "/var/lib/app": DeclaredDirectory(keep=True),
    }
    world.offer({WEB: entry(directories=directories)})
    world.offer({})
    assert world.host.files.removed == []
    for path in directories:
        assert world.host.files.observe(path).kind is PathKind.DIRECTORY


def test_what_the_old_one_may_need_stays_until_it_is_gone() -> None:
    world = World("a")
    world.offer({WEB: entry(units={"server": unit("1")}, files={"/etc/x": "a"})})
    after = replace(unit("2"), archive=digest("code"))
    world.offer({WEB: entry(units={"server": after})})
    assert world.host.files.observe("/etc/x").kind is PathKind.FILE
    world.host.artifacts.stored.add(digest("code"))
    world.run(31_000)
    assert world.host.files.removed == ["/etc/x"]
    assert world.report().state is EntryState.HEALTHY
