"""A machine's cache keeps what its declarations, its ledger and its processes need."""

from keyplane.converge import effects
from keyplane.model.declaration import EntryState
from keyplane.model.names import Digest
from keyplane.ports.host import HostBusyError
from tests.unit.converge.test_races import offered, until_asked
from tests.unit.converge.world import WEB, World, digest, entry, unit

FIRST = 101
"""The pid of the first process in memory."""


def machine() -> World:
    world = World()
    world.host.artifacts.stored |= {digest(name) for name in "abcde"}
    return world


def runs(archive: str, version: str = "") -> dict:
    return {
        WEB: entry(key=archive, units={"server": unit(version or archive, archive=digest(archive))})
    }


def cached(world: World) -> set[Digest]:
    return set(world.host.artifacts.present())


def test_what_the_last_two_declarations_named_is_kept() -> None:
    """So that a rollback fetches nothing; what only an older one named goes when all is settled."""
    world = machine()
    world.offer(runs("a"))
    world.offer(runs("b"))
    assert cached(world) == {digest("a"), digest("b")}
    world.offer(runs("c"))
    assert cached(world) == {digest("b"), digest("c")}
    world.forget()
    world.offer(runs("b", "back"))
    assert "Fetch" not in world.asked
    assert cached(world) == {digest("b"), digest("c")}


def test_an_offer_that_names_the_same_archives_makes_nothing_former() -> None:
    world = machine()
    world.offer(runs("a"))
    world.offer(runs("b"))
    world.offer(runs("b", "2"))
    assert cached(world) == {digest("a"), digest("b")}


def test_nothing_goes_while_an_older_process_runs() -> None:
    """It runs from an archive that no declaration may name any more."""
    world = machine()
    world.offer(runs("a"))
    world.host.faults.plan("stop", f"{WEB}/server", *[HostBusyError("hangs")] * 50)
    for each in "bcd":
        world.offer(runs(each), run_ms=30_000)
    assert world.pid() == FIRST
    assert cached(world) >= {digest("a"), digest("d")}
    world.host.faults.heal()
    world.run(120_000)
    assert world.pid() != FIRST
    assert cached(world) == {digest("a"), digest("d")}  # what stood last before it


def test_one_that_stood_while_another_went_is_kept_as_the_one_before() -> None:
    """However soon the next offer comes."""
    world = machine()
    world.offer(runs("a"))
    world.offer(runs("b"))
    offered(world, runs("c"))
    going = until_asked(world, effects.LetGo)
    offered(world, runs("d"))
    world.run(5_000)
    assert world.report().state is EntryState.HEALTHY
    world.perform(going)
    world.offer(runs("e"), run_ms=5_000)
    assert cached(world) == {digest("d"), digest("e")}


def test_what_the_ledger_has_put_at_a_path_is_kept() -> None:
    """Even where it cannot be taken away."""
    world = machine()
    world.offer({WEB: entry(key="a", archives={"/opt/web": "a"})})
    for each in "bcd":
        world.offer({WEB: entry(key=each, archives={"/opt/web": each})})
    assert cached(world) == {digest("c"), digest("d")}


def test_one_that_is_wanted_again_while_it_goes_is_fetched_again() -> None:
    world = machine()
    world.offer(runs("a"))
    world.offer(runs("b"))
    offered(world, runs("c"))
    going = until_asked(world, effects.LetGo)
    offered(world, runs("a", "again"))
    world.run(100)
    assert "StartProcess" not in world.asked[-3:]
    world.perform(going)
    world.run(5_000)
    assert cached(world) == {digest("a"), digest("c")}
    assert world.report().state is EntryState.HEALTHY


def test_one_that_could_not_go_is_still_there() -> None:
    world = machine()
    world.offer(runs("a"))
    world.offer(runs("b"))
    world.host.faults.plan("let go", digest("a"), HostBusyError("read-only"))
    world.offer(runs("c"), run_ms=1_000)
    assert digest("a") in cached(world)
    world.run(60_000)
    assert cached(world) == {digest("b"), digest("c")}
    assert world.report().state is EntryState.HEALTHY


def test_a_lost_ledger_keeps_what_is_declared() -> None:
    world = machine()
    world.offer(runs("a"))
    world.offer(runs("b"))
    world.host.files.state.pop("ledger")
    world.boot()
    world.run(60_000)
    assert cached(world) == {digest("b")}
