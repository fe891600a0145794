"""Offers are numbered above all that their machine has, whatever the inventory forgot."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import nacl.signing
import pytest

from keyplane import wire
from keyplane.model.declaration import NO_OFFER, Declaration, OfferNumber
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.plan import Allocations, Plan
from keyplane.parts.offering import COUNTER_MAX, EPOCH_MAX, Offering
from keyplane.ports.inventory import PlannedEntry, StoredPlan
from keyplane.rollout import mixture
from keyplane.testing.bus import MemoryBus
from keyplane.testing.clock import ManualClock
from keyplane.testing.inventory import MemoryInventory
from tests.unit.rollout.values import digest, planned

KEY = nacl.signing.SigningKey(b"k" * 32)
ALPHA = MachineName("alpha")
WEB = EntryId("web:main@alpha")


def offering(inventory: MemoryInventory) -> Offering:
    """One life of a controller."""
    return Offering(inventory=inventory, bus=MemoryBus().controller(), clock=ManualClock(), key=KEY)


async def offer(life: Offering, key: str) -> OfferNumber:
    entries = {WEB: PlannedEntry(entry=planned(key).entry)}
    numbers = await life.offer([ALPHA], mixture.mix({}, entries, (), 0, {}), digest(key), {}, {})
    return numbers[ALPHA]


async def ask(
    life: Offering, have: OfferNumber, generation: Digest | None = None
) -> Declaration | None:
    asked = wire.Ask(have=have, wire=wire.WIRE_VERSION, boot="b", generation=generation)
    answer = await life.answer(ALPHA, asked)
    if answer.declaration is None:
        return None
    opened = wire.open_declaration(answer.declaration, key=KEY.verify_key, machine=ALPHA)
    assert not isinstance(opened, wire.Refused)
    return opened


async def test_what_was_offered_is_answered_until_it_is_had() -> None:
    life = offering(MemoryInventory())
    number = await offer(life, "1")
    assert number == OfferNumber(0, 1)
    declared = await ask(life, NO_OFFER)
    assert declared is not None
    assert declared.offer == number
    assert await ask(life, number) is None
    assert await offer(life, "1") == number
    assert await offer(life, "2") == OfferNumber(0, 2)


async def test_a_lost_inventory_offers_above_what_the_agent_has() -> None:
    """Where the agent was heard first, by whatever it said."""
    life = offering(MemoryInventory())
    life.heard(ALPHA, OfferNumber(0, 7))
    assert await offer(life, "1") == OfferNumber(1, 1)
    assert await offer(life, "1") == OfferNumber(1, 1)
    assert await offer(life, "2") == OfferNumber(1, 2)


async def test_an_offer_made_before_the_agent_was_heard_is_numbered_anew() -> None:
    """It is the same offer, and is so for the next life too."""
    inventory = MemoryInventory()
    life = offering(inventory)
    await offer(life, "1")
    declared = await ask(life, OfferNumber(0, 7))
    assert declared is not None
    assert declared.offer == OfferNumber(1, 1)
    assert declared.entries[WEB].key == Digest(planned("1").entry.key)
    assert await ask(life, OfferNumber(1, 1)) is None
    assert await offer(offering(inventory), "1") == OfferNumber(1, 1)


class Slow(MemoryInventory):
    """Holds back what was just read of the last offers, the next time alone."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read, self.goes_on = asyncio.Event(), asyncio.Event()
        self.is_held = False

    async def last_offers(self, machines: Collection[MachineName]) -> Mapping[MachineName, Any]:
        found = await super().last_offers(machines)
        if self.is_held:
            self.is_held = False
            self.is_read.set()
            await self.goes_on.wait()
        return found


@pytest.mark.parametrize("how", ["asks", "renews"])
async def test_what_is_numbered_anew_is_the_last_offer_still(how: str) -> None:
    """While one that was read is numbered anew, the machine is offered another."""
    inventory = Slow()
    life = offering(inventory)
    await offer(life, "1")
    inventory.is_held = True
    again = ask(life, OfferNumber(0, 7)) if how == "asks" else life.renew([ALPHA])
    async with asyncio.timeout(60):
        anew = asyncio.create_task(again)
        await inventory.is_read.wait()
        newer = asyncio.create_task(offer(life, "2"))
        for _ in range(100):  # it comes as far as it may
            await asyncio.sleep(0)
        inventory.goes_on.set()
        await asyncio.gather(anew, newer)
    declared = await ask(life, NO_OFFER)
    assert declared is not None
    assert declared.entries[WEB].key == Digest(planned("2").entry.key)


async def commit(inventory: MemoryInventory, *entries: EntryId) -> None:
    planned_entries = {each: PlannedEntry(entry=planned("1").entry) for each in entries}
    plan = Plan(
        format="keyplane.plan/1",
        fleet="test",
        generation=digest("plan"),
        entries={entry: each.entry for entry, each in planned_entries.items()},
        allocations=Allocations(ports={}),
        edges=[],
        exports={},
        machines={},
        diagnostics=[],
    )
    stored = StoredPlan(plan=plan, revision=1, entries=planned_entries, contents={})
    await inventory.commit(stored, parent=None, rollout=b"", base={}, who="ada", at_ms=1)


async def test_a_machine_that_was_forgotten_with_what_it_has_is_offered_nothing() -> None:
    """Once a target says that it has nothing, and no sooner."""
    inventory = MemoryInventory()
    life = offering(inventory)
    assert await ask(life, OfferNumber(0, 7)) is None
    await commit(inventory, EntryId("web:main@beta"))
    declared = await ask(life, OfferNumber(0, 7))
    assert declared is not None
    assert (declared.offer, declared.entries) == (OfferNumber(1, 1), {})
    assert await ask(life, OfferNumber(1, 1), digest("plan")) is None


async def test_a_machine_that_a_rollout_has_not_come_to_keeps_what_it_has() -> None:
    inventory = MemoryInventory()
    life = offering(inventory)
    await commit(inventory, WEB)
    assert await ask(life, OfferNumber(0, 7)) is None
    assert await ask(life, NO_OFFER) is None


async def test_a_number_that_was_given_before_and_forgotten_is_not_taken_for_the_new_one() -> None:
    """An older copy of the inventory counts on to what a machine has of the newer one."""
    life = offering(MemoryInventory())
    for key in ("1", "2", "3"):
        await offer(life, key)
    assert await ask(life, OfferNumber(0, 3), digest("3")) is None
    declared = await ask(life, OfferNumber(0, 3), digest("other"))
    assert declared is not None
    assert declared.offer == OfferNumber(1, 1)
    assert declared.entries[WEB].key == Digest(planned("3").entry.key)
    assert await ask(life, OfferNumber(1, 1), digest("3")) is None


async def test_an_agent_that_lost_its_declaration_alone_is_numbered_by_its_heartbeat() -> None:
    """It asks with nothing, and would refuse what is below its ledger's number."""
    life = offering(MemoryInventory())
    await offer(life, "1")
    life.heard(ALPHA, OfferNumber(0, 7))
    declared = await ask(life, NO_OFFER)
    assert declared is not None
    assert declared.offer == OfferNumber(1, 1)


async def test_a_number_that_nobody_can_have_is_made_nothing_of() -> None:
    """Else one machine could make the inventory's numbers overflow."""
    life = offering(MemoryInventory())
    await offer(life, "1")
    assert await ask(life, OfferNumber(0, COUNTER_MAX)) is None
    assert await ask(life, OfferNumber(EPOCH_MAX, 1)) is None
    assert await offer(life, "2") == OfferNumber(0, 2)
