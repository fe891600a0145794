"""Volumes that are saved, given away and taken, with the agent killed anywhere in between."""

from dataclasses import replace

import pytest

from keyplane.converge import effects, events, saved
from keyplane.model.declaration import DeclaredDirectory, DeclaredEntry, EntryState
from keyplane.model.names import EntryId
from keyplane.model.occurrence import Act, Cause
from keyplane.model.volumes import OldCopy, SaveOrder, TakeOrder
from keyplane.ports.host import HostBusyError
from keyplane.testing.host import digest_of
from tests.unit.converge.world import BY_ANA, WEB, World, entry, unit

PATH = "/var/lib/web"
OLD, NEW = b"old data", b"new data"


def declared(
    *, save: SaveOrder | None = None, take: TakeOrder | None = None, key: str = "k"
) -> dict[EntryId, DeclaredEntry]:
    made = entry(
        key=key,
        units={"server": unit()},
        directories={PATH: DeclaredDirectory(mode="0700", keep=True)},
    )
    return {WEB: replace(made, save=save, take=take)}


def saving(number: int, *, gives: bool = False) -> SaveOrder:
    return SaveOrder(number=number, paths=(PATH,), gives=gives, to="web:main@beta")


def taking(number: int, content: bytes | None = NEW) -> TakeOrder:
    digest = None if content is None else digest_of(content)
    return TakeOrder(number=number, contents={PATH: digest}, source="web:main@beta")


def running_world() -> World:
    world = World()
    world.host.volumes.stored[digest_of(NEW)] = NEW
    world.offer(declared())
    world.host.volumes.contents[PATH] = OLD
    assert world.pid() is not None
    return world


def test_a_backup_stops_the_entry_saves_and_starts_it_again() -> None:
    """Once for each order; the start after it says why it was."""
    world = running_world()
    world.forget()
    world.offer(declared(save=saving(7)))
    assert [act for act, _ in world.acts] == ["stop", "start"]
    told = world.report().volumes
    assert told is not None
    assert (told.saved, told.given, told.problem) == (7, 0, "")
    assert told.volumes[PATH].digest == digest_of(OLD)
    assert world.report().state is EntryState.HEALTHY
    last = world.state.history.kept[-1]
    assert (last.act, last.cause) == (Act.RESTART, Cause.BACKUP)
    assert {unit.restarts for unit in world.report().units.values()} == {0}  # somebody asked for it
    world.forget()
    world.offer(declared(save=saving(7), key="another"))
    world.boot()
    world.run(2_000)
    assert "SaveVolume" not in world.asked
    world.offer(declared(save=saving(8)))
    assert "SaveVolume" in world.asked


def test_a_backup_that_fails_does_not_keep_its_entry_down() -> None:
    world = running_world()
    world.host.faults.plan("save", PATH, HostBusyError("the store is full"))
    world.offer(declared(save=saving(7)))
    told = world.report().volumes
    assert told is not None
    assert (told.saved, dict(told.volumes), told.problem) == (7, {}, "the store is full")
    assert world.report().state is EntryState.HEALTHY


def test_a_backup_leaves_an_entry_stopped_that_a_person_stopped() -> None:
    world = running_world()
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    world.offer(declared(save=saving(7)))
    told = world.report().volumes
    assert told is not None
    assert told.saved == 7
    assert world.pid() is None


def test_what_was_given_away_is_an_old_copy_and_never_started_on_again() -> None:
    """Through lives, and after the entry was away, until an order says what it is to hold."""
    world = running_world()
    world.offer(declared(save=saving(7, gives=True)))
    assert world.pid() is None
    assert world.report().state is EntryState.STOPPED
    assert world.report().cause == "its data was handed over to web:main@beta"
    told = world.report().volumes
    assert told is not None
    assert told.given == 7
    world.boot()
    world.run(2_000)
    assert world.pid() is None
    world.offer({})
    assert world.host.volumes.contents[PATH] == OLD
    copy = world.reports[-1].copies[PATH]
    assert (copy.entry, copy.number) == (WEB, 7)
    assert world.reports[-1].entries == {}

    world.offer(declared())  # by a controller that knows nothing of it
    assert world.pid() is None
    assert world.report().state is EntryState.FAILED
    assert "old copy" in (world.report().cause or "")

    world.offer(declared(take=taking(9)))
    assert world.pid() is not None
    assert world.host.volumes.contents == {PATH: NEW, f"{PATH}.kept-9": OLD}
    assert world.report().state is EntryState.HEALTHY
    (kept,) = world.reports[-1].copies.values()
    assert kept == OldCopy(entry=WEB, volume=PATH, since_ms=kept.since_ms, number=9, why=copy.why)


def test_an_older_order_does_not_bring_an_old_copy_back() -> None:
    world = running_world()
    world.offer(declared(save=saving(7, gives=True)))
    world.offer(declared(take=TakeOrder(number=5, keeps=True)))
    assert world.pid() is None
    world.offer(declared(take=TakeOrder(number=8, keeps=True)))
    assert world.pid() is not None
    assert world.reports[-1].copies == {}
    assert world.host.volumes.contents[PATH] == OLD


def test_an_entry_waits_for_data_that_is_on_its_way() -> None:
    """Nothing of it starts, and it is not taken for failed."""
    world = World()
    world.host.volumes.stored[digest_of(NEW)] = NEW
    world.offer(declared(take=TakeOrder(number=3, source="web:main@beta")))
    assert world.pid() is None
    assert world.report().state is EntryState.APPLYING
    assert world.report().cause == "waits for its data from web:main@beta"
    world.offer(declared(take=taking(3)))
    assert world.pid() is not None
    assert world.host.volumes.contents[PATH] == NEW


def test_a_volume_that_starts_empty_puts_what_was_there_aside() -> None:
    world = running_world()
    world.offer(declared(take=taking(3, None)))
    assert world.host.volumes.contents == {f"{PATH}.kept-3": OLD}
    assert world.pid() is not None


def test_what_was_written_since_a_take_is_not_put_aside_by_an_agent_that_lost_its_memory() -> None:
    world = running_world()
    world.offer(declared(take=taking(3)))
    world.host.volumes.contents[PATH] = b"newer still"
    del world.host.files.state[saved.LEDGER]
    world.boot()
    world.run(2_000)
    assert world.host.volumes.contents[PATH] == b"newer still"
    assert world.pid() is not None


@pytest.mark.parametrize("cut", range(14))
def test_a_hand_over_goes_on_wherever_the_agent_was_killed(cut: int) -> None:
    """After so many effects; each time before, and each time after it was carried out."""
    for done in (False, True):
        world = running_world()
        world.forget()
        world.counter += 1
        offered = world.declaration(declared(save=saving(7, gives=True)), world.counter)
        world.inbox.append(events.Offered(at_ms=world.now, declaration=offered))
        _run_until(world, cut, done=done)
        world.boot()
        world.run(5_000)
        told = world.report().volumes
        assert told is not None
        assert told.given == 7
        assert told.volumes[PATH].digest == digest_of(OLD)

        world.counter += 1
        offered = world.declaration(declared(take=taking(9)), world.counter)
        world.inbox.append(events.Offered(at_ms=world.now, declaration=offered))
        _run_until(world, cut, done=done)
        world.boot()
        world.run(5_000)
        assert world.host.volumes.contents == {PATH: NEW, f"{PATH}.kept-9": OLD}
        assert world.report().state is EntryState.HEALTHY
        assert set(world.reports[-1].copies) == {f"{PATH}.kept-9"}


def _run_until(world: World, count: int, *, done: bool) -> None:
    """Carry out so many effects, and of the next one only what it does."""
    for _ in range(1_000):
        world.hear()
        if not world.inbox:
            return
        for effect in world.step(world.inbox.popleft()):
            count -= 1
            if count < 0:
                if done and not isinstance(effect, effects.SendReport):
                    world.perform(effect)
                return
            world.perform(effect)
