"""Files, directories and archives: what is written, refused, put right and removed."""

import pytest

from keyplane.converge import effects, events
from keyplane.model.declaration import DeclaredDirectory, EntryReport, EntryState, Reload
from keyplane.model.host import PathKind
from keyplane.model.occurrence import Act
from keyplane.ports.host import HostBusyError, HostError
from tests.unit.converge.world import DB, SERVER, WEB, World, digest, entry, unit


def test_a_removed_entry_takes_with_it_what_it_put_there_and_nothing_else() -> None:
    world = World("a")
    files = world.host.files
    files.put("/srv/app/foreign", b"f")
    world.host.artifacts.stored.add(digest("tree"))
    world.offer(
        {
            WEB: entry(
                units={"server": unit()},
                files={"/etc/app/a": "a"},
                directories={
                    "/srv/app": DeclaredDirectory(),
                    "/srv/mine": DeclaredDirectory(),
                    "/srv/busy": DeclaredDirectory(),
                    "/var/lib/app": DeclaredDirectory(keep=True),
                },
                archives={"/opt/app": "tree"},
            )
        }
    )
    files.put("/srv/busy/others", b"o")
    files.put("/var/lib/app/data", b"d")
    world.forget()
    world.offer({})
    assert world.acts == [("stop", f"{WEB}/server")]
    assert sorted(files.removed) == ["/etc/app/a", "/opt/app", "/srv/mine"]
    for path in ("/srv/app/foreign", "/srv/busy/others", "/var/lib/app/data"):
        assert files.observe(path).kind is PathKind.FILE
    assert world.state.ledger.paths == {}
    assert world.reports[-1].entries == {}


def test_a_path_that_moves_to_another_entry_is_never_gone() -> None:
    world = World("a", "b")
    world.offer({WEB: entry(files={"/etc/x": "a"})})
    world.forget()
    world.offer({DB: entry(files={"/etc/x": "a"})})
    assert world.asked.count("WriteFile") == 0
    assert world.host.files.removed == []
    assert world.state.ledger.paths["/etc/x"].entry == DB
    world.offer({WEB: entry(files={"/etc/x": "b"})})
    assert world.host.files.removed == []
    assert world.host.files.nodes["/etc/x"].content == b"b"
    world.offer({})
    assert world.host.files.removed == ["/etc/x"]


def test_a_file_that_was_there_before_is_refused_by_name_and_holds_its_entry_alone() -> None:
    world = World("a")
    world.host.files.put("/etc/motd", b"theirs")
    world.offer(
        {
            WEB: entry(units={"server": unit()}, files={"/etc/motd": "a"}),
            DB: entry(units={"server": unit()}),
        }
    )
    assert world.host.files.nodes["/etc/motd"].content == b"theirs"
    report = world.report()
    assert report.state is EntryState.FAILED
    assert report.cause is not None
    assert "/etc/motd" in report.cause
    assert "adopt" in report.cause
    assert world.pid() is None
    assert world.report(DB).state is EntryState.HEALTHY
    del world.host.files.nodes["/etc/motd"]
    world.offer({WEB: entry(key="x", units={"server": unit()}, files={"/etc/motd": "a"})})
    assert world.report().state is EntryState.HEALTHY


def test_how_often_it_was_refused_is_told() -> None:
    """With each look at all that there is, and none of it while nothing is looked at."""
    world = World("a")
    world.host.files.put("/etc/motd", b"theirs")
    world.offer({WEB: entry(files={"/etc/motd": "a"}), DB: entry(files={"/etc/other": "a"})})
    assert (world.report().tries, world.report(DB).tries) == (1, 0)
    world.run(20_000)
    assert world.report().tries == 1
    world.run(20_000)
    assert world.report().tries == 2
    del world.host.files.nodes["/etc/motd"]
    world.run(40_000)
    assert (world.report().state, world.report().tries) == (EntryState.HEALTHY, 0)


@pytest.mark.parametrize("call", ["write", "fetch", "stop"])
def test_what_failed_is_told_as_failed_while_it_is_tried_again(call: str) -> None:
    """However long a try lasts; and each that failed too is told, which ends an apply of the same."""
    world = World("a")
    world.offer({WEB: entry(units={"server": unit()})})
    match call:
        case "write":
            subject, wanted = "/etc/x", entry(key="x", files={"/etc/x": "a"})
        case "fetch":
            subject, wanted = digest("a"), entry(key="x", archives={"/opt/x": "a"})
            world.host.artifacts.stored.add(digest("a"))
        case _:
            subject, wanted = f"{WEB}/server", entry(key="x")
    world.host.faults.plan(call, subject, *[HostBusyError("not now")] * 8)
    world.offer({WEB: wanted}, run_ms=0)
    told: list[EntryReport] = []
    step = world.step

    def looked_at(event: events.Event) -> tuple[effects.Effect, ...]:
        issued = step(event)
        told.append(world.state.entries[WEB].report or told[-1])
        return issued

    world.step = looked_at
    world.run(20_000)
    states = [each.state for each in told]
    failed = told[states.index(EntryState.FAILED) :]
    assert {each.state for each in failed} == {EntryState.FAILED}
    assert all(str(each.cause).endswith("not now") for each in failed)
    tries = [each.tries for each in failed]
    assert tries == sorted(tries)
    assert call == "stop" or tries[-1] > 3
    world.host.faults.heal()
    world.run(60_000)
    assert world.report().state is not EntryState.FAILED


def test_what_was_refused_is_not_removed_with_the_entry() -> None:
    world = World("a")
    world.host.files.put("/etc/motd", b"theirs")
    world.offer({WEB: entry(files={"/etc/motd": "a"})})
    world.offer({})
    assert world.host.files.nodes["/etc/motd"].content == b"theirs"


def test_a_write_that_failed_makes_nothing_ours() -> None:
    """Somebody puts a file there in the meantime: it is refused, not overwritten."""
    world = World("a")
    world.host.faults.plan("write", "/etc/x", HostBusyError("no space"))
    world.offer({WEB: entry(files={"/etc/x": "a"})}, run_ms=0)
    world.host.files.put("/etc/x", b"theirs")
    world.offer({WEB: entry(key="x", files={"/etc/x": "a"})})
    assert world.host.files.nodes["/etc/x"].content == b"theirs"
    assert world.report().state is EntryState.FAILED


def test_adopt_replaces_a_file_and_the_same_content_is_taken_over() -> None:
    world = World("a")
    world.host.files.put("/etc/x", b"theirs")
    world.host.files.put("/etc/y", b"a")
    world.offer({WEB: entry(files={"/etc/x": "a", "/etc/y": "a"}, adopt=True)})
    assert world.host.files.nodes["/etc/x"].content == b"a"
    assert world.asked.count("WriteFile") == 1
    world.offer({})
    assert sorted(world.host.files.removed) == ["/etc/x", "/etc/y"]


def test_what_was_changed_under_it_is_told_and_put_right() -> None:
    world = World("a", "c")
    config = {"/etc/conf": "c"}
    world.offer({WEB: entry(units={"server": unit(config=config)}, files={"/etc/x": "a"})})
    world.forget()
    world.host.files.put("/etc/x", b"meddled")
    del world.host.files.nodes["/etc/conf"]
    world.run(30_000)
    assert world.host.files.nodes["/etc/x"].content == b"a"
    assert world.host.files.nodes["/etc/conf"].content == b"c"
    found = {each.path: each for each in world.report().drift}
    assert (found["/etc/x"].what, found["/etc/x"].repaired) == ("had other content", True)
    assert (found["/etc/conf"].what, found["/etc/conf"].repaired) == ("was gone", True)
    noted = [each.detail for each in world.state.history.kept if each.act is Act.REPAIR]
    assert noted == ["/etc/conf was gone", "/etc/x had other content"]
    world.run(900_000)
    assert world.report().drift == ()
    assert world.acts == []
    world.run(31_000)
    assert world.report().notes == ()
    assert world.report().state is EntryState.HEALTHY


def test_a_second_pass_does_nothing() -> None:
    world = World("a")
    world.host.artifacts.stored.add(digest("tree"))
    world.offer(
        {
            WEB: entry(
                units={"server": unit(config={"/etc/conf": "a"})},
                files={"/etc/x": "a"},
                directories={"/srv": DeclaredDirectory(owner="web")},
                archives={"/opt/app": "tree"},
            )
        }
    )
    world.forget()
    world.run(300_000)
    assert world.asked == []


def test_a_volume_keeps_the_mode_that_its_service_gave_it() -> None:
    world = World()
    declared = {WEB: entry(directories={"/var/lib/db": DeclaredDirectory(keep=True)})}
    world.offer(declared)
    world.host.files.make_directory("/var/lib/db", mode="0700", owner="db", group=None)
    world.forget()
    world.run(60_000)
    assert world.asked == []


def test_one_kind_gives_way_to_another() -> None:
    world = World("a")
    world.offer({WEB: entry(directories={"/x": DeclaredDirectory()})})
    world.offer({WEB: entry(files={"/x": "a"})})
    assert world.host.files.observe("/x").kind is PathKind.FILE
    assert world.report().state is EntryState.HEALTHY


def test_a_path_that_cannot_be_looked_at_holds_its_entry_alone() -> None:
    world = World("a")
    error = HostError("/etc/x: a link leads out of the root")
    world.host.faults.plan("observe", "/etc/x", error)
    world.offer(
        {
            WEB: entry(units={"server": unit()}, files={"/etc/x": "a"}),
            DB: entry(units={"server": unit()}),
        }
    )
    assert world.report().state is EntryState.FAILED
    assert world.report().cause == "/etc/x: a link leads out of the root"
    assert world.report(DB).state is EntryState.HEALTHY
    assert world.reports[-1].settled == world.reports[-1].offer
    world.run(31_000)
    assert world.report().state is EntryState.HEALTHY


def test_parents_come_before_children() -> None:
    world = World("a")
    world.host.artifacts.stored.add(digest("tree"))
    world.offer({WEB: entry(files={"/opt/app/etc/x": "a"}, archives={"/opt/app": "tree"})})
    assert world.host.files.nodes["/opt/app/etc/x"].content == b"a"
    world.host.artifacts.stored.add(digest("tree 2"))
    world.offer({WEB: entry(files={"/opt/app/etc/x": "a"}, archives={"/opt/app": "tree 2"})})
    assert world.host.files.nodes["/opt/app/etc/x"].content == b"a"
    assert world.report().state is EntryState.HEALTHY


def test_config_that_is_no_longer_declared_goes_before_the_reload() -> None:
    world = World("a", "b")
    reload = Reload(signal="HUP")
    both = unit(config={"/etc/d/a": "a", "/etc/d/b": "b"}, reload=reload)
    world.offer({WEB: entry(units={"server": both})})
    world.forget()
    world.offer({WEB: entry(units={"server": unit(config={"/etc/d/a": "a"}, reload=reload)})})
    assert world.asked.index("RemovePath") < world.asked.index("ReloadProcess")
    assert world.report().units[SERVER].reloads == 1
