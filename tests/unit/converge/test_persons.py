"""What people say of entries, on the machine and to the controller."""

import pytest

from keyplane.converge import effects, events, saved
from keyplane.model.declaration import DeclaredEntry, EntryState, Restart, Stop, Word
from keyplane.model.names import EntryId
from tests.unit.converge.world import BY_ANA, SERVER, WEB, World, entry, unit


def said(number: int, *, stop: bool, key: str = "k") -> dict[EntryId, DeclaredEntry]:
    word = Word(number=number, stop=stop, who="bob", at_ms=number)
    return {WEB: entry(key=key, units={"server": unit()}, word=word)}


def test_a_stop_said_to_the_controller_comes_with_the_declaration_and_holds() -> None:
    """Nothing is started until a start comes; who stopped it, and when, is told."""
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    assert world.pid() is not None
    world.offer(said(7, stop=True))
    assert world.pid() is None
    assert world.report().state is EntryState.STOPPED
    assert world.report().stopped == Stop(who="bob", since_ms=7)
    world.offer(said(7, stop=True, key="another"))
    world.boot()
    world.run(60_000)
    assert world.pid() is None
    world.offer(said(8, stop=False))
    assert world.pid() is not None
    assert world.report().stopped is None


def test_a_word_of_the_controller_is_heeded_once() -> None:
    """What is said on the machine after it holds, however often it is declared again."""
    world = World()
    world.offer(said(7, stop=True))
    world.tell(events.PersonStarted(at_ms=world.now, entry=WEB, who="ana"), run_ms=2_000)
    assert world.pid() is not None
    world.offer(said(7, stop=True, key="another"))
    world.boot()
    world.run(2_000)
    assert world.report().state is EntryState.HEALTHY
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    world.offer(said(7, stop=True, key="a third"))
    assert world.report().stopped == BY_ANA
    world.offer(said(9, stop=False))
    assert world.pid() is not None


def test_a_lost_ledger_does_not_undo_a_stop_that_is_declared() -> None:
    world = World()
    world.offer(said(7, stop=True))
    del world.host.files.state[saved.LEDGER]
    world.boot()
    world.run(2_000)
    assert world.pid() is None
    assert world.report().state is EntryState.STOPPED


def test_a_start_lets_a_unit_run_that_ended_for_good() -> None:
    world = World()
    declared = {"server": unit("1", "exit", "3", restart=Restart.NO)}
    world.offer({WEB: entry(units=declared)})
    word = Word(number=1, stop=False, who="bob", at_ms=1)
    starts = len(world.acts)
    world.offer({WEB: entry(units=declared, word=word)})
    assert len(world.acts) > starts


def test_an_entry_that_was_removed_comes_back_as_a_new_one() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    world.offer({})
    world.offer({WEB: entry(units={"server": unit()})})
    assert world.report().units[SERVER].pid is not None


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_stop_that_stood_in_the_declaration_alone_is_in_the_ledger_before_it_is_carried_out(
    *, is_lost: bool
) -> None:
    """An agent that ends between two saved files has heeded nothing yet, nor one whose ledger was lost."""
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    before = dict(world.host.files.state)
    stop = said(7, stop=True)
    world.step(events.Offered(at_ms=world.now, declaration=world.declaration(stop, 2)))
    if is_lost:
        del before[saved.LEDGER]
    world.host.files.state.pop(saved.LEDGER)
    world.host.files.state |= {name: before[name] for name in before if name != saved.DECLARATION}
    world.boot()
    world.forget()
    while not any(isinstance(each, effects.StopProcess) for each in world.effects):
        assert world.inbox
        asked = world.step(world.inbox.popleft())
        for effect in asked:
            if not isinstance(effect, effects.StopProcess):
                world.perform(effect)
    kept = saved.decode_ledger(world.host.files.read_state(saved.LEDGER))
    assert kept is not None
    assert (kept.words, set(kept.stops)) == ({WEB: 7}, {WEB})
    history = saved.decode_history(world.host.files.read_state(saved.HISTORY))
    assert history is not None
    assert history.last == world.state.history.last
