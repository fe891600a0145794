"""A rollout driven on a real state machine, an inventory and a bus in memory."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import nacl.signing
import pytest

from keyplane import wire
from keyplane.model.declaration import (
    NO_OFFER,
    EntryReport,
    EntryState,
    OfferNumber,
    Report,
    UnitReport,
    UnitState,
)
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.plan import Allocations, Dynamic, Edge, Plan, PlannedMachine
from keyplane.parts import control_messages as messages
from keyplane.parts.mixing import OvertakenError
from keyplane.parts.offering import Offering
from keyplane.parts.rolling import Rolling
from keyplane.ports.inventory import InventoryUnavailableError, PlannedEntry, StoredPlan
from keyplane.rollout import state as states
from keyplane.rollout.machine import FAILING_MS
from keyplane.rollout.policies import Terms
from keyplane.rollout.state import Phase
from keyplane.testing.bus import MemoryBus
from keyplane.testing.clock import ManualClock
from keyplane.testing.inventory import MemoryInventory
from tests.unit.rollout.values import digest, planned, unit

KEY = nacl.signing.SigningKey(b"k" * 32)
DB, WEB = EntryId("db:main@alpha"), EntryId("web:main@beta")
ALPHA, BETA = MachineName("alpha"), MachineName("beta")


class World:
    """One controller's life after another, over one inventory."""

    def __init__(self) -> None:
        self.inventory = MemoryInventory()
        self.clock = ManualClock()
        self.bus = MemoryBus()
        self.sequence = 0
        self.rolling = self.life()

    def life(self) -> Rolling:
        offering = Offering(
            inventory=self.inventory, bus=self.bus.controller(), clock=self.clock, key=KEY
        )
        return Rolling(inventory=self.inventory, offering=offering, clock=self.clock)

    async def apply(
        self,
        keys: Mapping[EntryId, str],
        *,
        who: str = "me",
        unsound: bool = False,
        words: int = 1,
        window: str = "",
    ):
        """With a window, entries read a dynamic value, and every machine reacts by it."""
        contract = Dynamic(from_="v:n@gamma/provides/p/e", reaction="restart")
        target = await self.inventory.target()
        base = await self.rolling.declared.base(target)
        entries = {
            entry: PlannedEntry(
                entry=planned(
                    key,
                    units={
                        "main": unit(
                            key,
                            command=["x" * words],
                            dynamic={"V": contract} if window else {},
                        )
                    },
                ).entry
            )
            for entry, key in sorted(keys.items())
        }
        edges = [Edge(consumer=WEB, slot="db", provider=DB, provide="database", chosen="only")]
        plan = Plan(
            format="keyplane.plan/1",
            fleet="test",
            generation=digest(repr((sorted(keys.items()), window))),
            entries={entry: each.entry for entry, each in entries.items()},
            allocations=Allocations(ports={}),
            edges=edges if unsound or (DB in keys and WEB in keys) else [],
            exports={},
            machines={
                machine: PlannedMachine(
                    key="k", address="a", rates={"debounce": {"window": window, "burst": 3}}
                )
                for machine in ((ALPHA, BETA) if window else ())
            },
            diagnostics=[],
        )
        stored = StoredPlan(plan=plan, revision=1, entries=entries, contents={})
        parent = Digest(target.plan.generation) if target else None
        return await self.rolling.begin(
            stored, base, parent=parent, before=target, who=who, terms=Terms()
        )

    async def offered(self, machine: MachineName) -> dict[EntryId, Digest]:
        offer = await self.inventory.last_offer(machine)
        if offer is None:
            return {}
        declared = wire.open_declaration(offer.signed, key=KEY.verify_key, machine=machine)
        assert not isinstance(declared, wire.Refused)
        return {entry: each.key for entry, each in declared.entries.items()}

    async def report(self, machine: MachineName, state: EntryState = EntryState.HEALTHY) -> None:
        """Everything offered is in that state, under pids of its own."""
        offer = await self.inventory.last_offer(machine)
        assert offer is not None
        self.sequence += 1
        unit = UnitState.HEALTHY if state is EntryState.HEALTHY else UnitState.FAILED
        entries = {
            entry: EntryReport(
                state=state,
                key=key,
                cause=None if state is EntryState.HEALTHY else "it burned down",
                units={
                    UnitName("main"): UnitReport(
                        state=unit,
                        cause=None if state is EntryState.HEALTHY else "it burned down",
                        digest=key,
                        pid=int(key[-4:], 16) + 2,
                        start_ticks=1,
                    )
                },
            )
            for entry, key in (await self.offered(machine)).items()
        }
        await self.rolling.reported(
            Report(
                machine=machine,
                offer=offer.offer,
                settled=offer.offer,
                sequence=self.sequence,
                boot="one",
                entries=entries,
            )
        )


async def all_of(events) -> list[messages.Event]:
    async with asyncio.timeout(60):
        return [event async for event in events]


async def test_a_consumer_is_offered_after_its_provider_is_healthy() -> None:
    """And the end counts what was started."""
    world = World()
    events = await world.apply({DB: "1", WEB: "1"})
    assert set(await world.offered(ALPHA)) == {DB}
    assert await world.offered(BETA) == {}
    await world.report(ALPHA)
    assert set(await world.offered(BETA)) == {WEB}
    await world.report(BETA)
    told = await all_of(events)
    assert [type(event) for event in told] == [
        messages.Begun,
        messages.Stepped,
        messages.EntryMoved,
        messages.Stepped,
        messages.EntryMoved,
        messages.Ended,
    ]
    end = told[-1]
    assert isinstance(end, messages.Ended)
    assert (end.outcome, end.started, end.restarted, end.untouched) == ("done", 2, 0, 0)


async def test_reports_that_come_at_once_are_each_judged() -> None:
    """Also where the first of them ends a step, and a later one fails in the next."""
    world = World()
    events = await world.apply({DB: "1", WEB: "1"})
    await asyncio.gather(world.report(ALPHA), world.report(ALPHA), world.report(ALPHA))
    assert set(await world.offered(BETA)) == {WEB}
    await asyncio.gather(
        world.report(ALPHA), world.report(BETA, EntryState.FAILED), world.report(ALPHA)
    )
    world.clock.advance(FAILING_MS)
    await world.rolling.tick(frozenset())
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "failed"
    assert [each.entry for each in end.failures] == [WEB]


async def test_no_difference_ends_at_once() -> None:
    """Nobody is offered anything anew."""
    world = World()
    await world.apply({DB: "1"})
    await world.report(ALPHA)
    before = await world.inventory.last_offer(ALPHA)
    told = await all_of(await world.apply({DB: "1"}))
    end = told[-1]
    assert isinstance(end, messages.Ended)
    assert (end.outcome, end.restarted, end.untouched) == ("done", 0, 1)
    assert await world.inventory.last_offer(ALPHA) == before


async def test_a_failed_entry_ends_it_and_the_rest_stays_as_it_was() -> None:
    """What was not sent is named, and is the base of the next apply."""
    world = World()
    events = await world.apply({DB: "1", WEB: "1"})
    await world.report(ALPHA)
    await world.report(BETA)
    await all_of(events)
    events = await world.apply({DB: "2", WEB: "2"})
    await world.report(ALPHA, EntryState.FAILED)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "failed"
    assert end.unsent == [WEB]
    assert end.failures[0].entry == DB
    assert "it burned down" in end.failures[0].cause
    base = await world.rolling.declared.base(await world.inventory.target())
    assert {entry: each.entry.key for entry, each in base.entries.items()} == {
        DB: planned("2").entry.key,
        WEB: planned("1").entry.key,
    }
    end = (await all_of(await world.rolling.follow()))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "failed"


async def test_a_newer_apply_supersedes_one_that_is_open() -> None:
    """Whoever followed the older one is told, and the newer one goes on from what was sent."""
    world = World()
    older = await world.apply({DB: "1", WEB: "1"})
    newer = await world.apply({DB: "2", WEB: "2"}, who="bob (7)")
    end = (await all_of(older))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "superseded"
    assert end.why.startswith("rollout 2, which bob (7) began, took this one over")
    await world.report(ALPHA)
    await world.report(BETA)
    end = (await all_of(newer))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"
    assert await world.offered(ALPHA) == {DB: planned("2").entry.key}


async def test_another_life_of_the_controller_goes_on_where_the_last_one_was() -> None:
    """It offers nothing twice under another number."""
    world = World()
    await world.apply({DB: "1", WEB: "1"})
    before = await world.inventory.last_offer(ALPHA)
    world.rolling = world.life()
    events = await world.rolling.follow()
    assert await world.inventory.last_offer(ALPHA) == before
    await world.report(ALPHA)
    await world.report(BETA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"


async def test_offers_that_cannot_be_stored_are_tried_again() -> None:
    """The rollout says what it waits for, and goes on once it can."""
    world = World()
    events = await world.apply({DB: "1", WEB: "1"})
    refusing = world.inventory.store_offers

    async def full(*_: object, **__: object) -> None:
        world.inventory.break_down("the disk is full")
        await refusing(*_, **__)  # type: ignore[arg-type]

    world.inventory.store_offers = full  # type: ignore[method-assign]
    await world.report(ALPHA)
    world.inventory.break_down(None)
    assert await world.offered(BETA) == {}
    world.inventory.store_offers = refusing  # type: ignore[method-assign]
    await world.rolling.tick(frozenset())
    await world.report(BETA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"


async def test_a_mixture_that_must_not_be_declared_ends_it_at_once() -> None:
    """Nobody is offered anything, and the entry at fault is named."""
    world = World()
    end = (await all_of(await world.apply({WEB: "1"}, unsound=True)))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "failed"
    assert [failure.entry for failure in end.failures] == [WEB]
    assert "cannot be declared so" in end.failures[0].cause
    assert await world.offered(BETA) == {}
    rollout = await world.inventory.rollout()
    assert rollout is not None
    assert not rollout.open


async def test_a_declaration_that_the_bus_does_not_carry_ends_it_at_once() -> None:
    """And none of its step was sent: what is declared stays as it was."""
    world = World()
    end = (await all_of(await world.apply({DB: "1", EntryId("b:main@beta"): "1"}, words=9 << 20)))[
        -1
    ]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "failed"
    assert "alpha cannot be sent its declaration" in end.failures[0].cause
    assert await world.offered(ALPHA) == {}
    assert await world.offered(BETA) == {}
    base = await world.rolling.declared.base(await world.inventory.target())
    assert base.entries == {}


async def test_silence_ends_it_at_the_deadline() -> None:
    """With the machine named."""
    world = World()
    events = await world.apply({DB: "1"})
    world.clock.advance(10 * 60 * 1000)
    await world.rolling.tick(frozenset())
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "failed"
    assert "alpha" in end.failures[0].cause


async def test_who_comes_late_is_told_which_rollout_ended() -> None:
    """A command that lost its controller must not take another's end for its own."""
    world = World()
    assert await all_of(await world.rolling.follow()) == []
    await world.apply({DB: "1"})
    await world.report(ALPHA)
    begun, end = await all_of(await world.rolling.follow())
    assert begun == messages.Begun(rollout=1, entries=1)
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"


async def test_a_lost_inventory_takes_nothing_away_from_what_runs() -> None:
    """Where machines run something and no target is known, no step offers a part of the target."""
    world = World()
    keys = {DB: "1", WEB: "1"}
    entries = {entry: planned(key).entry for entry, key in keys.items()}
    for machine, entry in ((ALPHA, DB), (BETA, WEB)):
        said = EntryReport(state=EntryState.APPLYING, key=Digest(entries[entry].key))
        await world.rolling.reported(
            Report(
                machine=machine,
                offer=OfferNumber(0, 7),
                settled=OfferNumber(0, 7),
                sequence=1,
                boot="before",
                entries={entry: said},
                refused=None,
            )
        )
    await world.apply(keys)
    assert set(await world.offered(ALPHA)) == {DB}
    assert set(await world.offered(BETA)) == {WEB}


async def test_a_report_that_was_overtaken_by_another_life_is_to_be_made_again() -> None:
    """Else a late one of a life that is over would stand until something changes."""
    world = World()
    await world.apply({DB: "1"})

    def of(boot: str, sequence: int) -> Report:
        none = NO_OFFER
        return Report(machine=ALPHA, offer=none, settled=none, sequence=sequence, boot=boot)

    await world.rolling.reported(of("present", 1))
    await world.rolling.reported(of("former", 7))  # late
    with pytest.raises(OvertakenError):
        await world.rolling.reported(of("present", 2))
    world.clock.advance(11_000)
    await world.rolling.reported(of("present", 3))
    assert (await world.inventory.reports())[ALPHA].report.boot == "present"


class LostAnswers(MemoryInventory):
    """Writes what it is told to, and then says once that it could not be reached."""

    def __init__(self) -> None:
        super().__init__()
        self.lose: set[str] = set()

    def _lost(self, call: str) -> None:
        if call in self.lose:
            self.lose.remove(call)
            raise InventoryUnavailableError("the connection was lost")

    async def commit(self, stored, **keys):
        row = await super().commit(stored, **keys)
        self._lost("commit")
        return row

    async def save_rollout(self, number, **keys):
        await super().save_rollout(number, **keys)
        self._lost("save_rollout")

    async def store_offers(self, offers, **keys):
        await super().store_offers(offers, **keys)
        if "after_offer" in self.lose:
            self.lose = {"save_rollout"}


def world_of_lost_answers() -> tuple[World, LostAnswers]:
    world, inventory = World(), LostAnswers()
    world.inventory = inventory
    world.rolling = world.life()
    return world, inventory


@pytest.mark.parametrize("lost", ["commit", "save_rollout"])
async def test_a_rollout_whose_beginning_was_not_answered_goes_on(lost: str) -> None:
    """Whoever asked is told of the trouble; the target stands, and so does its rollout."""
    world, inventory = world_of_lost_answers()
    inventory.lose = {lost}
    with pytest.raises(InventoryUnavailableError):
        await world.apply({DB: "1"})
    await world.rolling.tick(frozenset())
    assert set(await world.offered(ALPHA)) == {DB}
    await world.report(ALPHA)
    row = await inventory.rollout()
    assert row is not None
    assert not row.open


async def test_an_offer_of_which_no_word_could_be_saved_is_made_again() -> None:
    world, inventory = world_of_lost_answers()
    inventory.lose = {"after_offer"}
    with pytest.raises(InventoryUnavailableError):
        await world.apply({DB: "1", WEB: "1"})
    await world.rolling.tick(frozenset())
    await world.report(ALPHA)
    assert set(await world.offered(BETA)) == {WEB}


async def test_an_end_that_was_saved_unanswered_is_told() -> None:
    world, inventory = world_of_lost_answers()
    events = await world.apply({DB: "1"})
    inventory.lose = {"save_rollout"}
    with pytest.raises(InventoryUnavailableError):
        await world.report(ALPHA)
    await world.rolling.tick(frozenset())
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"


@pytest.mark.parametrize("days", [-1, 1])
async def test_a_clock_that_is_set_moves_no_deadline(days: int) -> None:
    world = World()
    await world.apply({DB: "1"})
    world.clock.jump(days * 86_400_000)
    await world.rolling.tick(frozenset())
    row = await world.inventory.rollout()
    assert row is not None
    assert row.open
    world.clock.advance(10 * 60_000)
    await world.rolling.tick(frozenset())
    row = await world.inventory.rollout()
    assert row is not None
    assert not row.open


async def window_ms(world: World, machine: MachineName) -> int:
    offer = await world.inventory.last_offer(machine)
    assert offer is not None
    declared = wire.open_declaration(offer.signed, key=KEY.verify_key, machine=machine)
    assert not isinstance(declared, wire.Refused)
    return declared.rates.window_ms


async def test_other_rates_alone_are_offered_at_once() -> None:
    """No entry is switched for them; each machine has them with what it runs."""
    world = World()
    await world.apply({DB: "1"}, window="30s")
    await world.report(ALPHA)
    assert await window_ms(world, ALPHA) == 30_000
    events = await world.apply({DB: "1"}, window="2s")
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"
    assert await window_ms(world, ALPHA) == 2_000
    assert await world.offered(ALPHA) == {DB: digest("1")}


async def test_rates_that_a_former_life_did_not_offer_are_offered_by_the_next() -> None:
    """It was killed between the commit and the offer."""
    world = World()
    await world.apply({DB: "1"}, window="30s")
    await world.report(ALPHA)
    world.rolling.declared.pay = _nothing
    await world.apply({DB: "1"}, window="2s")
    assert await window_ms(world, ALPHA) == 30_000
    await world.life().tick(frozenset())
    assert await window_ms(world, ALPHA) == 2_000


async def _nothing() -> None:
    pass


async def test_no_number_is_offered_that_a_machine_told_an_older_backup_of() -> None:
    """Else a report of what the inventory forgot would pass for one of what it offers now."""
    world = World()
    held = Report(
        machine=ALPHA,
        offer=OfferNumber(0, 5),
        settled=OfferNumber(0, 5),
        sequence=1,
        boot="b",
        entries={},
    )
    assert await world.inventory.record_reports([held], received_ms=1) == [True]
    await world.apply({DB: "2"})
    offer = await world.inventory.last_offer(ALPHA)
    assert offer is not None
    assert offer.offer > OfferNumber(0, 5)


async def test_a_rollout_whose_successor_could_not_end_it_is_ended_by_the_next_life() -> None:
    world = World()
    await world.apply({DB: "1"})
    first = await world.inventory.rollout()
    await world.apply({DB: "2"})
    assert first is not None
    await world.inventory.save_rollout(first.number, state=first.state, is_open=False)
    await world.life().tick(frozenset())
    ended = await world.inventory.rollout(first.number)
    assert ended is not None
    state = states.decode(ended.state)
    assert state is not None
    assert state.phase is Phase.SUPERSEDED


async def test_a_report_that_was_recorded_and_not_heard_is_heard_by_the_next_life() -> None:
    """Its agent says it once: the rollout would wait for it to its deadline."""
    world = World()
    await world.apply({DB: "1", WEB: "1"})
    await world.report(ALPHA)
    stored = await world.inventory.rollout()
    assert stored is not None
    await world.report(BETA)
    await world.inventory.save_rollout(stored.number, state=stored.state, is_open=True)
    world.rolling = world.life()
    await world.rolling.tick(frozenset())
    assert not world.rolling.is_open
    ended = await world.inventory.rollout()
    assert ended is not None
    state = states.decode(ended.state)
    assert state is not None
    assert state.phase is Phase.DONE


async def test_a_machine_that_left_and_is_back_is_heard_with_a_report_of_before() -> None:
    """It names entries that nobody declares meanwhile; what counts is what it says of today's."""
    world = World()
    await world.apply({DB: "1", WEB: "1"})
    await world.report(ALPHA)
    await world.report(BETA)
    (old,) = [
        each for each in (await world.inventory.reports()).values() if WEB in each.report.entries
    ]
    await world.apply({DB: "1"})
    await world.rolling.reported(replace(old.report, sequence=90))
    events = await world.apply({DB: "2", WEB: "2"})
    await world.rolling.reported(replace(old.report, sequence=91))
    world.sequence = 100
    await world.report(ALPHA)
    assert set(await world.offered(BETA)) == {WEB}
    await world.rolling.reported(replace(old.report, sequence=101))
    await world.report(BETA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"
