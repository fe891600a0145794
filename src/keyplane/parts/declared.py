"""What machines are declared to be now: the target, as far as the latest rollout has sent it.

Offered once more where something changed that is in no step: what people said, rates, guards, a
freeze.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.parts import rolling_state
from keyplane.parts.offering import Offering
from keyplane.parts.planning import Base
from keyplane.ports.inventory import Inventory, StoredPlan
from keyplane.rollout import declaring_values, permits
from keyplane.rollout.mixture import Mixture
from keyplane.rollout.permits import Guards, RoleId

READS_MAX = 10
"""Each that is in vain is one that somebody else was quicker with: so many at once are no people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """The sets of which some members have to stay up."""

    guards: Guards = field(default_factory=dict[RoleId, permits.Guard])
    members: Mapping[RoleId, frozenset[EntryId]] = field(
        default_factory=dict[RoleId, frozenset[EntryId]]
    )


class Declared:
    """Of one controller; nothing of it is known here alone."""

    def __init__(self, inventory: Inventory, offering: Offering) -> None:
        self._inventory = inventory
        self._offering = offering
        self._due: set[MachineName] = set()
        """Machines that may not have been offered yet what is in no step."""
        self._guards: Guards | None = None
        """None: they are to be read."""
        self._guarded: Guarded | None = None

    async def base(self, target: StoredPlan | None) -> Base:
        """The target, or, where a rollout did not get so far, the mixture."""
        latest = None if target is None else await self._inventory.rollout()
        return rolling_state.base(target, latest)

    async def now(self) -> tuple[StoredPlan | None, Base]:
        """The target, and what of it is declared; read anew where it was changed meanwhile."""
        for _ in range(READS_MAX):
            target = await self._inventory.target()
            latest = None if target is None else await self._inventory.rollout()
            if rolling_state.is_of(latest, target):
                return target, rolling_state.base(target, latest)
        raise rolling_state.changed_meanwhile()

    async def offer(self, machines: Iterable[MachineName]) -> None:
        """Offer these what is declared for them, with all that was said and stated meanwhile."""
        if (target := await self._inventory.target()) is None:
            return
        base = await self.base(target)
        await self._offering.offer(
            machines,
            Mixture(entries=base.entries, contents=base.contents, guards=base.guards),
            Digest(target.plan.generation),
            target.contents,
            target.plan.machines,
        )

    def owe(self, machines: Iterable[MachineName]) -> None:
        """To be offered once more with the next `pay`."""
        self._due.update(machines)

    async def begun(self, base: Base, stored: StoredPlan, guards: Guards) -> None:
        """Rates and guards are in no step: who has other ones hears of them at once."""
        self.owe(declaring_values.other_rates(base.plan, stored.plan))
        self.owe(permits.otherwise(base.guards, guards, {*base.entries, *stored.entries}))
        await self.pay()

    async def owe_unsure(self) -> None:
        """All that may not have been offered what is in no step, as nobody remembers."""
        await self.owe_reacting()
        await self._owe_told()
        await self._owe_guarded()

    async def owe_reacting(self) -> None:
        """Who reads a dynamic value: rates and a freeze are for them alone."""
        target = await self._inventory.target()
        base = await self.base(target)
        self.owe(declaring_values.reacting(base.entries))
        if target is not None:
            self.owe(declaring_values.reacting(target.entries))

    async def _owe_told(self) -> None:
        """Of whose entries a person said something: it may not have gone out with an offer yet."""
        self.owe(split_entry(entry)[2] for entry in await self._inventory.words())

    async def _owe_guarded(self) -> None:
        """Who has a member of a set of which some have to stay up."""
        base = await self.base(await self._inventory.target())
        self.owe(permits.otherwise({}, base.guards, base.entries))

    async def pay(self) -> None:
        if self._due:
            due = frozenset(self._due)
            await self.offer(sorted(due))
            self._due -= due

    def changed(self, guards: Guards | None) -> None:
        """Other entries are declared than before, or under other guards; None: who knows."""
        self._guards, self._guarded = guards, None

    async def guarded(self) -> Guarded:
        """Reads nothing where nothing is guarded, or nothing changed."""
        if self._guards is not None and not self._guards:
            return Guarded()
        if self._guarded is None:
            guards = self._guards
            base = await self.base(await self._inventory.target())
            if guards is not self._guards:
                return await self.guarded()  # it was changed while it was read
            self._guards = base.guards
            members = permits.sets(base.guards, base.entries)
            self._guarded = Guarded(guards=base.guards, members=members)
        return self._guarded
