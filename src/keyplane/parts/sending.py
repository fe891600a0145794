"""What a step of a rollout sends: orders on volumes first, then declarations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from keyplane.model.declaration import OfferNumber
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.volumes import OrderChange, OrderKind, VolumeOrder
from keyplane.parts import carrying, mixing, rolling_state
from keyplane.parts.offering import Offering
from keyplane.ports.clock import Clock
from keyplane.ports.inventory import Inventory, PlannedEntry, StoredPlan
from keyplane.rollout import machine, volumes
from keyplane.rollout.state import Offer, State

Entries = Mapping[EntryId, PlannedEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """Sends steps, each again if it has to be."""

    inventory: Inventory
    offering: Offering
    clock: Clock
    checked: mixing.Checked = field(default_factory=mixing.Checked)

    async def send(
        self, state: State, asked: Offer, base: Entries, target: StoredPlan
    ) -> dict[MachineName, OfferNumber]:
        """Offer the machines of a step what they are to be; the number that each one has then."""
        await self._order(state, asked, base, target.entries)
        if state.takes:  # what was saved by now is what the step is to take
            orders = await self.inventory.volume_orders()
            await carrying.see(self.inventory, orders, at_ms=self.clock.now_ms())
        mixed = rolling_state.mixed(state, base, target)
        self.checked.check(mixed, machine.edges(state, target.plan.edges))
        generation = Digest(target.plan.generation)
        return await self.offering.offer(
            asked.machines, mixed, generation, target.contents, target.plan.machines
        )

    async def _order(self, state: State, asked: Offer, base: Entries, target: Entries) -> None:
        """Have entries of the step give their data away, or go on with it where they were."""
        put: list[VolumeOrder] = []
        drop: list[VolumeOrder] = []
        for entry in state.steps[asked.step].yielded:
            give = state.gives[entry]
            held = volumes.volumes_of(base[entry])
            order = VolumeOrder(
                entry=entry,
                kind=OrderKind.GIVE,
                number=give.number,
                who="",
                at_ms=self.clock.now_ms(),
                volumes=held,
                other=give.to,
            )
            if not asked.back:
                put.append(order)
                continue
            number = await carrying.next_number(self.inventory, self.clock) + len(put)
            drop.append(order)
            put.append(replace(order, kind=OrderKind.TAKE, number=number, other=None, keeps=True))
            # What it writes from now on is in no save: who is sent after it takes another one.
            put.append(
                replace(
                    order,
                    entry=give.to,
                    kind=OrderKind.TAKE,
                    number=number + 1,
                    volumes=volumes.volumes_of(target[give.to]),
                    other=entry,
                )
            )
        if put:
            await self.inventory.change_volume_orders(OrderChange(put=tuple(put), drop=tuple(drop)))
