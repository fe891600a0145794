"""The agent's loop: what it asks, saves, runs and tells, on a bus and a machine in memory."""

import asyncio

import nacl.signing

from keyplane.converge import saved
from keyplane.model.declaration import NO_OFFER, EntryState, OfferNumber
from keyplane.parts.agent import Agent
from keyplane.ports.host import HostBusyError
from tests.unit.converge.world import DB, SERVER, WEB, digest, entry, unit
from tests.unit.parts.agent_world import ALPHA, World, in_virtual_time


def test_it_asks_converges_reports_and_beats() -> None:
    async def main() -> None:
        world = World()
        files = {"/etc/x": "text"}
        world.desk.declare(
            {WEB: entry(units={"server": unit()}, files=files)}, {digest("text"): b"text"}
        )
        async with world.served(), world.running():
            await asyncio.sleep(12)
            report = world.desk.reports[-1]
            assert report.entries[WEB].state is EntryState.HEALTHY
            assert report.settled == report.offer == OfferNumber(1, 1)
            assert report.boot == "life-1"
            assert world.host.files.nodes["/etc/x"].content == b"text"
            assert [ask.have for ask in world.desk.asks] == [NO_OFFER]
            assert {beat.offer for beat in world.desk.beats[1:]} == {OfferNumber(1, 1)}
            assert 2 <= len(world.desk.beats) <= 4

    in_virtual_time(main)


def test_a_hint_is_followed_at_once() -> None:
    async def main() -> None:
        world = World()
        world.desk.declare({})
        async with world.served(), world.running():
            await asyncio.sleep(1)
            world.desk.declare({WEB: entry(units={"server": unit()})})
            await world.controller.hint(world.bus.agents[0].machine)
            await asyncio.sleep(0.01)
            assert len(world.host.running()) == 1
            assert [ask.have for ask in world.desk.asks] == [NO_OFFER, OfferNumber(1, 1)]

    in_virtual_time(main)


def test_what_is_not_signed_by_the_pinned_key_is_refused_and_told() -> None:
    async def main() -> None:
        world = World()
        world.desk.declare(
            {WEB: entry(units={"server": unit()})}, key=nacl.signing.SigningKey.generate()
        )
        async with world.served(), world.running():
            await asyncio.sleep(1)
            assert world.host.running() == {}
            assert "not signed" in str(world.desk.reports[-1].refused)
            assert world.desk.reports[-1].offer == NO_OFFER

    in_virtual_time(main)


def test_units_run_on_between_two_lives_and_are_adopted() -> None:
    async def main() -> None:
        world = World()
        world.desk.declare({WEB: entry(units={"server": unit()})})
        async with world.served():
            async with world.running():
                await asyncio.sleep(2)
            before = world.host.running()
            assert len(before) == 1
            async with world.running():
                await asyncio.sleep(2)
                assert world.host.running() == before
                report = world.desk.reports[-1]
                assert (report.boot, report.entries[WEB].state) == ("life-2", EntryState.HEALTHY)
                assert world.desk.asks[-1].have == OfferNumber(1, 1)

    in_virtual_time(main)


def test_an_end_is_heard_and_restarted_with_no_controller_at_all() -> None:
    async def main() -> None:
        world = World()
        world.desk.declare({WEB: entry(units={"server": unit()})})
        async with world.served(), world.running():
            await asyncio.sleep(2)
        async with world.running() as agent:
            await asyncio.sleep(60)
            world.host.processes.end(WEB, SERVER, code=1)
            await asyncio.sleep(3)
            assert len(world.host.running()) == 1
            assert agent.report().entries[WEB].units[SERVER].restarts == 1

    in_virtual_time(main)


def test_a_bus_that_comes_back_hears_the_report_again() -> None:
    async def main() -> None:
        world = World()
        world.desk.declare({WEB: entry(units={"server": unit()})})
        async with world.served(), world.running():
            await asyncio.sleep(5)
            world.bus.crash()
            await asyncio.sleep(60)
            world.desk.reports.clear()
            asks = len(world.desk.asks)
            world.bus.restart()
            await asyncio.sleep(3)
            assert [report.entries[WEB].state for report in world.desk.reports] == [
                EntryState.HEALTHY
            ]
            assert len(world.desk.asks) == asks + 1

    in_virtual_time(main)


def test_nothing_is_done_before_it_was_saved() -> None:
    """And why not is told, once."""

    async def main() -> None:
        world = World()
        world.desk.declare({WEB: entry(units={"server": unit()})})
        full = [HostBusyError("no space left")] * 100
        world.host.faults.plan("write_state", saved.DECLARATION, *full)
        async with world.served(), world.running():
            await asyncio.sleep(2.5)
            assert world.host.running() == {}
            assert saved.DECLARATION not in world.host.files.state
            said = world.desk.reports[-1]
            assert (said.offer, said.settled) == (NO_OFFER, NO_OFFER)
            assert said.refused == "its state cannot be saved, so it does nothing: no space left"
            told = len(world.desk.reports)
            await asyncio.sleep(10)
            assert len(world.desk.reports) == told
            world.host.faults.heal()
            await asyncio.sleep(2)
            assert len(world.host.running()) == 1
            said = world.desk.reports[-1]
            assert (said.settled, said.refused) == (OfferNumber(1, 1), None)

    in_virtual_time(main)


def test_people_stop_and_start_an_entry_on_the_machine() -> None:
    async def main() -> None:
        world = World()
        world.desk.declare({WEB: entry(units={"server": unit()})})
        async with world.served(), world.running() as agent:
            await asyncio.sleep(2)
            assert agent.stop_entry(WEB, "ana")
            assert not agent.stop_entry(DB, "ana")
            await asyncio.sleep(1)
            assert world.host.running() == {}
            assert world.desk.reports[-1].entries[WEB].state is EntryState.STOPPED
            assert agent.start_entry(WEB, "ana")
            await asyncio.sleep(2)
            assert world.desk.reports[-1].entries[WEB].state is EntryState.HEALTHY

    in_virtual_time(main)


def test_an_end_is_not_missed_for_what_comes_just_then() -> None:
    """A value, facts or a bus that comes back wake loops that are to end, at any step of that."""

    async def main() -> None:
        world = World()
        async with world.served():
            for turns in range(-8, 9):
                agent = world.agent()
                life = asyncio.create_task(agent.run())
                await asyncio.sleep(20)
                steps = [life.cancel, lambda agent=agent: come(agent)]
                for step in steps if turns < 0 else reversed(steps):
                    step()
                    for _ in range(abs(turns)):
                        await asyncio.sleep(0)
                await asyncio.wait([life], timeout=60)
                assert life.cancelled(), turns

    def come(agent: Agent) -> None:
        for waits in (agent._facts, agent._dynamic._following, agent._dynamic._publishing):
            waits._due.set()

    in_virtual_time(main)


def test_what_a_controller_no_longer_holds_is_told_again() -> None:
    """As after a late report of a former life, though nothing has changed since."""

    async def main() -> None:
        world = World()
        async with world.served(), world.running():
            await asyncio.sleep(10)
            told = len(world.desk.reports)
            assert told
            world.desk.heard = world.desk.reports[-1].sequence
            await world.controller.hint(ALPHA)
            await asyncio.sleep(10)
            assert len(world.desk.reports) == told
            world.desk.heard = 0
            await world.controller.hint(ALPHA)
            await asyncio.sleep(10)
            assert len(world.desk.reports) > told

    in_virtual_time(main)
