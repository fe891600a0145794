"""Words of people on entries, from the inventory to the machines that heed them."""

import pytest

from keyplane import wire
from keyplane.model.declaration import Word
from keyplane.parts import control_messages as messages
from keyplane.parts.people import People
from keyplane.ports.inventory import InventoryUnavailableError
from tests.unit.parts.test_rolling import ALPHA, DB, KEY, World


async def running() -> World:
    world = World()
    await world.apply({DB: "1"})
    await world.report(ALPHA)
    return world


async def word_of(world: World) -> Word | None:
    """As its machine was offered it."""
    offer = await world.inventory.last_offer(ALPHA)
    assert offer is not None
    declared = wire.open_declaration(offer.signed, key=KEY.verify_key, machine=ALPHA)
    assert not isinstance(declared, wire.Refused)
    return declared.entries[DB].word


async def test_a_word_that_a_former_life_did_not_offer_is_offered_by_the_next() -> None:
    """It was killed between the record and the offer."""
    world = await running()
    said = await world.inventory.say(DB, stop=True, who="ana", at_ms=7)
    assert await word_of(world) is None
    await world.life().tick(frozenset())
    assert await word_of(world) == said


async def test_a_word_that_could_not_be_offered_is_offered_soon() -> None:
    """The inventory went away between the two; whoever said it is told so."""
    world = await running()
    people = People(inventory=world.inventory, rolling=world.rolling, clock=world.clock)
    offer = world.rolling.declared.offer

    async def away(machines: object) -> None:
        raise InventoryUnavailableError("the inventory does not answer")

    world.rolling.declared.offer = away
    with pytest.raises(InventoryUnavailableError):
        await people.say(messages.Say(entry=DB, stop=True, who="ana"))
    world.rolling.declared.offer = offer
    await world.rolling.tick(frozenset())
    word = await word_of(world)
    assert word is not None
    assert word.stop


async def test_a_word_and_its_record_are_written_at_once() -> None:
    """Nobody is found to have stopped something of which the audit log knows nothing."""
    world = await running()
    word = await world.inventory.say(DB, stop=False, who="ana", at_ms=7)
    (newest,) = await world.inventory.audit_log(1)
    assert newest == (7, "ana", "start", {"entry": DB, "number": word.number})
