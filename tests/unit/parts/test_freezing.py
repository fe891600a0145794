"""A frozen fleet: no rollout sends anything, and no machine reacts to a value."""

import pytest

from keyplane import wire
from keyplane.model.names import MachineName
from keyplane.parts import control_messages as messages
from keyplane.ports.inventory import InventoryUnavailableError
from keyplane.rollout import state as states
from keyplane.rollout.state import Paused, Phase
from tests.unit.parts.test_rolling import ALPHA, BETA, DB, KEY, WEB, World, all_of


async def is_frozen(world: World, machine: MachineName) -> bool:
    offer = await world.inventory.last_offer(machine)
    assert offer is not None
    declared = wire.open_declaration(offer.signed, key=KEY.verify_key, machine=machine)
    assert not isinstance(declared, wire.Refused)
    return declared.frozen


async def phase(world: World) -> tuple[Phase, str]:
    row = await world.inventory.rollout()
    assert row is not None
    state = states.decode(row.state)
    assert state is not None
    return state.phase, state.paused


async def test_machines_that_react_hear_of_it_and_of_its_end() -> None:
    """Each under a number of its own; who reads no dynamic value is told nothing."""
    world = World()
    await world.apply({DB: "1"}, window="2s")
    await world.report(ALPHA)
    first = await world.inventory.last_offer(ALPHA)
    assert not await is_frozen(world, ALPHA)
    await world.rolling.freeze("by ada")
    assert await is_frozen(world, ALPHA)
    await world.rolling.freeze("")
    assert not await is_frozen(world, ALPHA)
    last = await world.inventory.last_offer(ALPHA)
    assert first is not None
    assert last is not None
    assert last.offer.counter == first.offer.counter + 2

    plain = World()
    await plain.apply({DB: "1"})
    before = await plain.inventory.last_offer(ALPHA)
    await plain.rolling.freeze("by ada")
    assert await plain.inventory.last_offer(ALPHA) == before


async def test_a_fleet_may_be_frozen_before_anything_is_applied() -> None:
    """The first apply is recorded, and waits; what machines are offered then is not frozen."""
    world = World()
    await world.rolling.freeze("by ada")
    events = await world.apply({DB: "1"}, window="2s")
    assert await phase(world) == (Phase.PAUSED, "the fleet is frozen by ada")
    assert await world.inventory.last_offer(ALPHA) is None
    await world.rolling.freeze("")
    assert not await is_frozen(world, ALPHA)
    await world.report(ALPHA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"


async def test_what_a_rollout_had_sent_is_judged_and_the_rest_waits() -> None:
    world = World()
    events = await world.apply({DB: "1", WEB: "1"})
    await world.rolling.freeze("by ada")
    await world.report(ALPHA)
    assert await phase(world) == (Phase.PAUSED, "the fleet is frozen by ada")
    assert await world.offered(BETA) == {}
    await world.rolling.freeze("")
    assert set(await world.offered(BETA)) == {WEB}
    await world.report(BETA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"


@pytest.mark.parametrize("before", [True, False])
async def test_a_thaw_ends_no_pause_that_a_person_asked_for(before: bool) -> None:
    world = World()
    await world.apply({DB: "1", WEB: "1"})
    pause = Paused(why="by bob", now_ms=0)
    if before:
        await world.rolling.tell(1, pause)
    await world.rolling.freeze("by ada")
    if not before:
        await world.rolling.tell(1, pause)
    await world.report(ALPHA)
    await world.rolling.freeze("")
    assert await phase(world) == (Phase.PAUSED, "by bob")


async def test_a_life_that_ends_in_the_middle_of_it_leaves_the_rest_to_the_next() -> None:
    """It was killed once the word was written down, and before anybody heard of it."""
    world = World()
    await world.apply({DB: "1", WEB: "1"}, window="2s")
    await world.inventory.freeze("by ada")
    later = world.life()
    await later.tick(frozenset())
    assert await is_frozen(world, ALPHA)
    assert (await phase(world))[1] == "the fleet is frozen by ada"
    await world.inventory.freeze("")
    await world.life().tick(frozenset())
    assert not await is_frozen(world, ALPHA)
    assert (await phase(world))[1] == ""


async def test_a_word_of_which_the_answer_was_lost_is_heeded_all_the_same() -> None:
    world = World()
    await world.apply({DB: "1"}, window="2s")
    store = world.inventory.store_offers

    async def fails(*_: object, **__: object) -> None:
        raise InventoryUnavailableError("locked")

    world.inventory.store_offers = fails
    with pytest.raises(InventoryUnavailableError):
        await world.rolling.freeze("by ada")
    world.inventory.store_offers = store
    await world.rolling.tick(frozenset())
    assert await is_frozen(world, ALPHA)
