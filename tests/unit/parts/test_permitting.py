"""A controller grants permits by what machines report, and remembers them in the inventory alone."""

from dataclasses import replace

import nacl.signing
import pytest

from keyplane import wire
from keyplane.model.declaration import EntryReport, EntryState, Member, OfferNumber, Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.plan import Allocations, Plan
from keyplane.model.volumes import VolumesReport
from keyplane.parts.declared import Declared
from keyplane.parts.hearing import Hearing
from keyplane.parts.offering import Offering
from keyplane.parts.permitting import Permitting
from keyplane.parts.rolling import Rolling
from keyplane.parts.status import SILENT_MS
from keyplane.ports.inventory import PlannedEntry, StoredPlan
from keyplane.rollout.policies import Rule, Terms
from keyplane.testing.bus import MemoryBus
from keyplane.testing.clock import ManualClock
from keyplane.testing.inventory import MemoryInventory
from tests.unit.rollout.values import digest, planned

KEY = nacl.signing.SigningKey(b"k" * 32)
ALPHA, BETA, GAMMA = (MachineName(name) for name in ("alpha", "beta", "gamma"))
ALL = (ALPHA, BETA, GAMMA)


def entry_on(machine: MachineName) -> EntryId:
    return EntryId(f"web:main@{machine}")


class World:
    """A set of three, of which one may be away; one life of its controller after another."""

    def __init__(self) -> None:
        self.inventory = MemoryInventory()
        self.clock = ManualClock()
        self.bus = MemoryBus()
        self.sequences = dict.fromkeys(ALL, 0)
        self.hinted: list[MachineName] = []
        self.begin()

    def begin(self) -> None:
        offering = Offering(
            inventory=self.inventory, bus=self.bus.controller(), clock=self.clock, key=KEY
        )
        self.rolling = Rolling(inventory=self.inventory, offering=offering, clock=self.clock)
        self.hearing = Hearing(self.clock)
        self.permitting = Permitting(
            inventory=self.inventory,
            declared=self.rolling.declared,
            hearing=self.hearing,
            clock=self.clock,
            hint=self._hint,
        )
        self.rolling.recording.recorded = self.permitting.recorded

    async def _hint(self, machine: MachineName) -> None:
        self.hinted.append(machine)

    async def apply(self, rule: Rule) -> None:
        entries = {entry_on(each): PlannedEntry(entry=planned("1").entry) for each in ALL}
        target = await self.inventory.target()
        plan = Plan(
            format="keyplane.plan/1",
            fleet="test",
            generation=digest("one"),
            entries={entry: each.entry for entry, each in entries.items()},
            allocations=Allocations(ports={}),
            edges=[],
            exports={},
            machines={},
            diagnostics=[],
        )
        await self.rolling.begin(
            StoredPlan(plan=plan, revision=1, entries=entries, contents={}),
            await self.rolling.declared.base(target),
            parent=Digest(target.plan.generation) if target else None,
            before=target,
            who="me",
            terms=Terms(rules={"web": rule}),
        )

    async def report(
        self, machine: MachineName, member: Member, volumes: VolumesReport | None = None
    ) -> None:
        self.sequences[machine] += 1
        key = Digest(planned("1").entry.key)
        said = EntryReport(state=EntryState.HEALTHY, key=key, member=member, volumes=volumes)
        self.hearing.heard(machine)
        await self.rolling.reported(
            Report(
                machine=machine,
                offer=OfferNumber(0, 1),
                settled=OfferNumber(0, 1),
                sequence=self.sequences[machine],
                boot="one",
                entries={entry_on(machine): said},
            )
        )
        await self.permitting.look()

    async def held(self) -> dict[EntryId, str]:
        return dict(await self.inventory.permits())

    async def guarded(self, machine: MachineName) -> list[bool]:
        offer = await self.inventory.last_offer(machine)
        assert offer is not None
        opened = wire.open_declaration(offer.signed, key=KEY.verify_key, machine=machine)
        assert not isinstance(opened, wire.Refused)
        return [each.guarded for each in opened.entries.values()]


UP = Member(up=True)
ASKS = Member(up=True, permit="one/1")
HOLDS = replace(ASKS, held=True, up=False)
AWAY = Rule(away=1)


@pytest.fixture
async def world() -> World:
    world = World()
    await world.apply(AWAY)
    for machine in ALL:
        await world.report(machine, UP)
    return world


async def test_one_after_another(world: World) -> None:
    """The second is granted once the first is reported up, and without its permit."""
    await world.report(ALPHA, ASKS)
    assert await world.held() == {entry_on(ALPHA): "one/1"}
    assert world.hinted == [ALPHA]
    await world.report(BETA, ASKS)
    await world.report(ALPHA, HOLDS)
    await world.report(ALPHA, replace(HOLDS, up=True))
    assert await world.held() == {entry_on(ALPHA): "one/1"}
    assert "have to stay up" in world.permitting.refused[entry_on(BETA)]
    await world.report(ALPHA, UP)
    assert await world.held() == {entry_on(BETA): "one/1"}
    assert world.permitting.refused == {}


async def test_permits_that_are_out_outlive_the_controller(world: World) -> None:
    """And nothing is granted by the next life before each machine of a set was heard."""
    await world.report(ALPHA, ASKS)
    world.begin()
    await world.report(BETA, ASKS)
    assert await world.held() == {entry_on(ALPHA): "one/1"}
    await world.report(ALPHA, UP)
    assert await world.held() == {}
    assert "gamma is not heard" in world.permitting.refused[entry_on(BETA)]
    world.hearing.heard(GAMMA)
    world.permitting.beat(GAMMA, is_current=True)
    await world.permitting.look()
    assert await world.held() == {entry_on(BETA): "one/1"}


async def test_those_that_asked_a_former_life_are_not_taken_for_down(world: World) -> None:
    """All of them are not heard yet when the next one first looks."""
    await world.report(ALPHA, ASKS)
    await world.report(BETA, ASKS)
    await world.report(ALPHA, UP)
    await world.report(GAMMA, replace(ASKS, permit="one/2"))
    assert await world.held() == {entry_on(BETA): "one/1"}
    await world.report(BETA, replace(UP, up=False))
    await world.report(ALPHA, replace(ASKS, permit="one/3"))
    assert await world.held() == {}
    world.begin()
    await world.permitting.look()
    assert await world.held() == {}
    for machine in ALL:
        world.hearing.heard(machine)
        world.permitting.beat(machine, is_current=True)
    await world.permitting.look()
    assert await world.held() == {}
    await world.report(BETA, UP)
    assert len(await world.held()) == 1


async def test_a_machine_whose_last_report_is_on_its_way_is_not_believed(world: World) -> None:
    """As after a restore: what is held of it may be of long ago."""
    world.permitting.beat(GAMMA, is_current=False)
    await world.report(BETA, ASKS)
    assert await world.held() == {}


async def test_a_machine_that_falls_silent_counts_as_down(world: World) -> None:
    """Though nobody reports anything: time alone tells."""
    for _ in range(SILENT_MS // 1000 + 1):
        world.clock.advance(1000)
        world.hearing.heard(ALPHA)
    await world.report(BETA, ASKS)
    assert await world.held() == {}
    world.hearing.heard(GAMMA)
    await world.permitting.look()
    assert await world.held() == {entry_on(BETA): "one/1"}


async def test_a_hint_that_was_lost_is_made_up_for(world: World) -> None:
    """The machine asks still for what it has."""
    await world.report(ALPHA, ASKS)
    assert world.permitting.is_unaware(ALPHA)
    assert await world.permitting.held(ALPHA) == {entry_on(ALPHA): "one/1"}
    assert await world.permitting.held(BETA) == {}
    await world.report(ALPHA, HOLDS)
    assert not world.permitting.is_unaware(ALPHA)


async def test_an_inventory_that_fails_grants_nothing(world: World) -> None:
    """Whatever came of the write, what the inventory has is what counts afterwards."""
    world.inventory.break_down("locked")
    world.permitting.recorded(
        Report(
            machine=ALPHA,
            offer=OfferNumber(0, 1),
            settled=OfferNumber(0, 1),
            sequence=9,
            boot="one",
            entries={
                entry_on(ALPHA): EntryReport(state=EntryState.HEALTHY, key=Digest("k"), member=ASKS)
            },
        )
    )
    await world.permitting.look()
    assert world.hinted == []
    world.inventory.break_down(None)
    await world.permitting.look()
    assert await world.held() == {entry_on(ALPHA): "one/1"}


async def test_a_guard_that_is_stated_or_lifted_is_declared_at_once(world: World) -> None:
    """It is in no step of the rollout, and restarts nothing."""
    assert await world.guarded(ALPHA) == [True]
    await world.apply(Rule())
    assert [await world.guarded(machine) for machine in ALL] == [[False]] * 3
    await world.apply(Rule(floors={"main": 2}))
    assert [await world.guarded(machine) for machine in ALL] == [[True]] * 3


async def test_a_guard_that_a_former_life_did_not_declare_is_declared_by_the_next() -> None:
    """It was killed between the commit and the offer."""
    world = World()
    await world.apply(Rule())
    for machine in ALL:
        await world.report(machine, UP)
    world.rolling.declared.pay = _nothing
    await world.apply(AWAY)
    assert await world.guarded(ALPHA) == [False]
    world.begin()
    await world.rolling.tick(frozenset())
    assert await world.guarded(ALPHA) == [True]


async def test_where_nothing_is_guarded_nothing_is_read() -> None:
    world = World()
    await world.apply(Rule())
    world.inventory.break_down("locked")
    assert (await world.rolling.declared.guarded()).guards == {}
    assert isinstance(world.rolling.declared, Declared)


async def _nothing() -> None:
    pass


async def test_a_member_whose_data_another_has_taken_keeps_nobody_from_a_permit(
    world: World,
) -> None:
    """Until then it is one that is away, and who takes its data is not up yet."""
    await world.report(ALPHA, HOLDS, VolumesReport(given=7))
    await world.report(BETA, ASKS)
    assert await world.held() == {}
    await world.report(GAMMA, UP, VolumesReport(taken=7))
    assert await world.held() == {entry_on(BETA): "one/1"}
