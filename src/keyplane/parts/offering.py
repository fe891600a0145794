"""Makes each machine's whole declaration, numbers and signs it, and wakes the machine.

A declaration that says what the last one said keeps its number: a machine is offered anew only
when what it should be has changed. An inventory that was lost, or is an old backup, knows lower
numbers than the agents, who refuse those; and some that it gives may be those of what it forgot.
So a machine that has what the inventory does not know is offered in a new epoch.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import nacl.signing

from keyplane import metrics, wire
from keyplane.model.declaration import NO_OFFER, Declaration, OfferNumber, Word
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.model.plan import PlannedMachine
from keyplane.model.volumes import VolumeOrder
from keyplane.parts import builds
from keyplane.parts.together import Together
from keyplane.ports import ordering
from keyplane.ports.bus import BusUnavailableError, ControllerBus
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PermanentError
from keyplane.ports.inventory import Inventory, StoredOffer
from keyplane.rollout import declaring, declaring_values, permits, volumes
from keyplane.rollout.mixture import Mixture
from keyplane.rollout.permits import Guards
from keyplane.rollout.planned import Planned

COUNTER_MAX = 1 << 53
EPOCH_MAX = 1 << 20
"""No machine is offered so often, and no inventory restored: who says that it has such a number
makes it up, and no further one is made of it."""

GLANCE_S = 0.025
"""How long heartbeats are gathered: of a thousand machines five are judged by one read. Those that
a bus gives at once (64) are through it as fast as those of ten thousand machines come."""


class UnofferableError(PermanentError):
    """A declaration that cannot be sent: too large, or of what no agent can run."""

    def __init__(self, machine: MachineName, text: str) -> None:
        super().__init__(f"{machine} cannot be sent its declaration: {text}")
        self.machine = machine


class Offering:
    """Offers, as they are stored and sent."""

    def __init__(
        self,
        *,
        inventory: Inventory,
        bus: ControllerBus,
        clock: Clock,
        key: nacl.signing.SigningKey,
    ) -> None:
        self._inventory = inventory
        self._bus = bus
        self._clock = clock
        self._key = key
        self._had: dict[MachineName, OfferNumber] = {}
        """The highest number that each agent said it has, in this life of the controller."""
        self._numbering = asyncio.Lock()
        """Held from when a last offer is read until the next is written: what is numbered anew is
        the last one still."""
        self._reading = Together(self._read)
        self._glancing = Together(self._read, after_s=GLANCE_S)

    async def offer(
        self,
        machines: Iterable[MachineName],
        mixture: Mixture,
        generation: Digest,
        contents: Mapping[Digest, bytes],
        planned: Mapping[str, PlannedMachine],
    ) -> dict[MachineName, OfferNumber]:
        """Offer each of the machines its part of a mixture; the number that each one has now.

        Written before anybody is woken, and all or, where one cannot be sent, none. Doing it again
        changes nothing.
        """
        machines = tuple(machines)
        async with self._numbering:
            numbers = await self._offer(machines, mixture, generation, contents, planned)
        for machine in numbers:
            await self.hint(machine)
        return numbers

    async def _offer(
        self,
        machines: Sequence[MachineName],
        mixture: Mixture,
        generation: Digest,
        contents: Mapping[Digest, bytes],
        planned: Mapping[str, PlannedMachine],
    ) -> dict[MachineName, OfferNumber]:
        by_machine = mixture.by_machine(machines)
        words, frozen = await self._inventory.words(), await self._inventory.frozen()
        orders = await self._inventory.volume_orders()
        everything = {**contents, **mixture.contents}
        # Taken first: what the inventory says is then no older, unless it fell back.
        had = {machine: self._had.get(machine, NO_OFFER) for machine in machines}
        last = await self._inventory.last_offers(machines)
        numbers: dict[MachineName, OfferNumber] = {}
        made: list[StoredOffer] = []
        for machine in machines:
            entries = by_machine.get(machine, dict[EntryId, Planned]())
            draft = declaring.declare(machine, NO_OFFER, generation, entries, everything)
            if isinstance(draft, declaring.Refused):
                raise UnofferableError(machine, "; ".join(row.message for row in draft.rows))
            said = planned[machine].rates if machine in planned else None
            address = planned[machine].address if machine in planned else None
            draft = replace(
                draft,
                rates=declaring_values.rates(said),
                address=address,
                frozen=bool(frozen) and declaring_values.reacts(draft),
            )
            ordered = _with_orders(_with_words(draft, words), orders)
            guarded = _guarded(ordered, mixture.guards)
            found = self._made(guarded, had[machine], last.get(machine))
            if isinstance(found, StoredOffer):
                made.append(found)
                numbers[machine] = found.offer
            else:
                numbers[machine] = found
        if made:
            await self._inventory.store_offers(made, at_ms=self._clock.now_ms())
        return numbers

    def _made(
        self, draft: Declaration, had: OfferNumber, last: StoredOffer | None
    ) -> StoredOffer | OfferNumber:
        """The offer to be stored; the number alone of one that is stored already."""
        digest = wire.digest_of(draft)
        is_same = last is not None and last.digest == digest
        if last is not None and is_same and last.offer >= had:
            return last.offer
        number = ordering.next_offer(None if last is None else last.offer)
        if is_same or number <= had:
            number = ordering.offer_above(had)
        return self._signed(replace(draft, offer=number), digest)

    def _signed(self, declaration: Declaration, digest: Digest) -> StoredOffer:
        signed = wire.sign(declaration, self._key)
        metrics.offers.inc()
        if isinstance(signed, wire.TooLarge):
            raise UnofferableError(declaration.machine, str(signed))
        return StoredOffer(
            machine=declaration.machine,
            offer=declaration.offer,
            digest=digest,
            signed=signed,
            carried=builds.carried(declaration),
        )

    async def last(self, machine: MachineName) -> Declaration | None:
        """What the machine was last offered; None if that was nothing, or not by this controller."""
        stored = await self.stored(machine)
        if stored is None:
            return None
        opened = wire.open_declaration(stored.signed, key=self._key.verify_key, machine=machine)
        return None if isinstance(opened, wire.Refused) else opened

    async def stored(self, machine: MachineName) -> StoredOffer | None:
        """The last offer of a machine; those that are asked for together are one read."""
        return await self._reading(machine)

    async def glance(self, machine: MachineName) -> StoredOffer | None:
        """The same for a heartbeat, which somebody else's may wait for."""
        return await self._glancing(machine)

    async def _read(self, machines: Sequence[MachineName]) -> list[StoredOffer | None]:
        found = await self._inventory.last_offers(frozenset(machines))
        return [found.get(machine) for machine in machines]

    def heard(self, machine: MachineName, has: OfferNumber) -> None:
        """An agent says which offer it has."""
        if has.counter < COUNTER_MAX and has.epoch < EPOCH_MAX:
            self._had[machine] = max(has, self._had.get(machine, NO_OFFER))

    async def hint(self, machine: MachineName) -> None:
        """Wake a machine; a hint that cannot be sent is made up for by its next heartbeat."""
        try:
            await self._bus.hint(machine)
        except BusUnavailableError:
            return

    async def answer(self, machine: MachineName, ask: wire.Ask) -> wire.Answer:
        self.heard(machine, ask.have)
        last = await self.stored(machine)
        if self._is_past(machine, last, ask):
            async with self._numbering:
                last = await self._anew(machine, ask)
        if last is None:
            return wire.Answer(declaration=None, highest=NO_OFFER)
        newer = last.offer > ask.have
        return wire.Answer(declaration=last.signed if newer else None, highest=last.offer)

    def _is_past(self, machine: MachineName, last: StoredOffer | None, ask: wire.Ask) -> bool:
        """Whether the machine has what the inventory does not know."""
        had = self._had.get(machine, NO_OFFER)
        if last is None:
            return had > NO_OFFER
        is_another = ask.have == last.offer and not has(last, ask.have, ask.generation)
        return had > last.offer or is_another

    async def _anew(self, machine: MachineName, ask: wire.Ask) -> StoredOffer | None:
        """What it was offered last, above what it has; it may have been offered more meanwhile."""
        last = (await self._inventory.last_offers([machine])).get(machine)
        had = self._had.get(machine, NO_OFFER)
        if last is None:
            return await self._emptied(machine, had)
        if self._is_past(machine, last, ask):
            return await self._renumbered(last, ordering.offer_above(max(had, last.offer)))
        return last

    async def _emptied(self, machine: MachineName, had: OfferNumber) -> StoredOffer | None:
        """Nothing, for a machine that has something and was forgotten with it.

        None where there is no target, or one that has something for it: a rollout brings that.
        """
        target = await self._inventory.target()
        if target is None or any(split_entry(entry)[2] == machine for entry in target.entries):
            return None
        generation = Digest(target.plan.generation)
        draft = declaring.declare(machine, NO_OFFER, generation, dict[EntryId, Planned](), {})
        assert not isinstance(draft, declaring.Refused)
        digest = wire.digest_of(draft)
        return await self._stored(replace(draft, offer=ordering.offer_above(had)), digest)

    async def renew(self, machines: Iterable[MachineName]) -> None:
        """Offer what was offered last under another number, so that it is tried once more."""
        machines = tuple(machines)
        async with self._numbering:
            stored = await self._inventory.last_offers(machines)
            for machine in machines:
                if (last := stored.get(machine)) is not None:
                    had = max(last.offer, self._had.get(machine, NO_OFFER))
                    await self._renumbered(last, ordering.next_offer(had))
        for machine in machines:
            await self.hint(machine)

    async def _renumbered(self, last: StoredOffer, number: OfferNumber) -> StoredOffer:
        """The same offer under a number that its machine takes."""
        opened = wire.open_declaration(last.signed, key=self._key.verify_key, machine=last.machine)
        if isinstance(opened, wire.Refused):
            return last  # of another key: the next apply signs it anew
        return await self._stored(replace(opened, offer=number), last.digest)

    async def _stored(self, declaration: Declaration, digest: Digest) -> StoredOffer:
        offer = self._signed(declaration, digest)
        await self._inventory.store_offers([offer], at_ms=self._clock.now_ms())
        return offer


def has(last: StoredOffer, number: OfferNumber, generation: Digest | None) -> bool:
    """Whether a machine that says this of what it has, has what it was offered last.

    It may have something else under the same number, which the inventory forgot.
    """
    if number != last.offer:
        return False
    if generation is None or number.epoch >= EPOCH_MAX:
        return True  # it does not say, or what it says is not to be believed
    return generation == wire.generation_of(last.signed)


def _guarded(draft: Declaration, guards: Guards) -> Declaration:
    """With the entries marked that are of a set of which some have to stay up."""
    found = {
        entry: replace(declared, guarded=True)
        for entry, declared in draft.entries.items()
        if guards and permits.role_of(entry) in guards
    }
    return replace(draft, entries={**draft.entries, **found}) if found else draft


def _with_orders(draft: Declaration, orders: Sequence[VolumeOrder]) -> Declaration:
    """With what is to become of the data of its entries. It moves no key either."""
    made = dict(draft.entries)
    for entry in sorted({each.entry for each in orders} & made.keys()):
        save, take = volumes.declared([each for each in orders if each.entry == entry])
        made[entry] = replace(made[entry], save=save, take=take)
    return replace(draft, entries=made)


def _with_words(draft: Declaration, words: Mapping[EntryId, Word]) -> Declaration:
    """With what people said of its entries. It moves no key: nothing is restarted for it."""
    said = {
        entry: replace(declared, word=words[entry])
        for entry, declared in draft.entries.items()
        if entry in words
    }
    return replace(draft, entries={**draft.entries, **said}) if said else draft
