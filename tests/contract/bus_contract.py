"""What every bus does, the fake and the one on NATS."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol, TypeVar

import pytest

from keyplane import wire
from keyplane.model.declaration import OfferNumber
from keyplane.model.names import MachineName
from keyplane.ports.bus import AgentBus, BusRefusedError, BusUnavailableError, ControllerBus
from keyplane.ports.errors import TransientError

T = TypeVar("T")

ALPHA = MachineName("alpha")
BETA = MachineName("beta")
PROBE = b"probe"
LONG_MS = 60_000
AGAIN_MS = 10_000
"""Of one try, where the next is made until the deadline."""
DEADLINE_S = 120.0


class World(Protocol):
    """A bus with two machines, alpha and beta. Closes what it made."""

    def controller(self) -> ControllerBus: ...

    def agent(self, machine: MachineName) -> AgentBus: ...

    async def crash(self) -> None:
        """The bus is gone, with everything that it held."""
        ...

    async def restart(self) -> None: ...


async def until(holds: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():
            await asyncio.sleep(0.005)
    assert holds(), what


async def until_served(call: Callable[[], Awaitable[T]]) -> T:
    """Call until whoever is called is there."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(BusUnavailableError):
                return await call()
            await asyncio.sleep(0.005)


class Desk:
    """A controller's functions: they write down what came, and answer with the machine's name."""

    def __init__(self) -> None:
        self.asks: list[tuple[MachineName, bytes]] = []
        self.reports: list[tuple[MachineName, bytes]] = []
        self.facts: list[tuple[MachineName, bytes]] = []
        self.beats: list[tuple[MachineName, bytes]] = []

    async def on_ask(self, machine: MachineName, payload: bytes) -> bytes:
        self.asks.append((machine, payload))
        return b"for " + machine.encode() + b": " + payload

    async def on_report(self, machine: MachineName, payload: bytes) -> None:
        self.reports.append((machine, payload))

    async def on_facts(self, machine: MachineName, payload: bytes) -> None:
        self.facts.append((machine, payload))

    async def on_beat(self, machine: MachineName, payload: bytes) -> None:
        self.beats.append((machine, payload))


@asynccontextmanager
async def served(
    world: World,
    desk: Desk,
    *,
    on_ask: Callable[[MachineName, bytes], Awaitable[bytes]] | None = None,
    on_report: Callable[[MachineName, bytes], Awaitable[None]] | None = None,
    on_facts: Callable[[MachineName, bytes], Awaitable[None]] | None = None,
):
    """A controller at work, once a probe of beta was heard; the desk sees nothing of those."""
    controller = world.controller()
    is_served = asyncio.Event()

    async def on_beat(machine: MachineName, payload: bytes) -> None:
        if payload == PROBE:
            is_served.set()
        else:
            await desk.on_beat(machine, payload)

    serving = asyncio.create_task(
        controller.serve(
            on_ask=on_ask or desk.on_ask,
            on_report=on_report or desk.on_report,
            on_facts=on_facts or desk.on_facts,
            on_beat=on_beat,
        )
    )
    try:
        # Beats are subscribed to last: once one is heard, everything is.
        probe = world.agent(BETA)
        async with asyncio.timeout(DEADLINE_S):
            while not is_served.is_set():
                with suppress(BusUnavailableError):
                    await probe.beat(PROBE)
                await asyncio.sleep(0.005)
        await probe.close()
        yield controller
    finally:
        await controller.close()
        await asyncio.gather(serving, return_exceptions=True)


class BusContract:
    """Subclasses give the fixture `world`."""

    async def test_an_ask_is_answered(self, world: World) -> None:
        """With the machine that the bus knows it by, and the bytes that it sent."""
        desk = Desk()
        async with served(world, desk):
            agent = world.agent(ALPHA)
            assert await agent.ask(b"what?", timeout_ms=LONG_MS) == b"for alpha: what?"
            assert desk.asks == [(ALPHA, b"what?")]

    async def test_each_gets_its_own_answer(self, world: World) -> None:
        """Many at once, of two machines."""
        async with served(world, Desk()):
            agents = {machine: world.agent(machine) for machine in (ALPHA, BETA)}
            asked = [(machine, b"%d" % number) for number in range(50) for machine in agents]
            answers = await asyncio.gather(
                *(agents[machine].ask(text, timeout_ms=LONG_MS) for machine, text in asked)
            )
            assert answers == [b"for " + machine.encode() + b": " + text for machine, text in asked]

    async def test_a_hint_wakes_its_machine_alone(self, world: World) -> None:
        async with served(world, Desk()) as controller:
            woken: list[MachineName] = []
            for machine in (ALPHA, BETA):
                agent = world.agent(machine)
                await agent.ask(b"", timeout_ms=LONG_MS)
                await agent.on_hint(lambda machine=machine: woken.append(machine))
            woken.clear()
            await controller.hint(BETA)
            await until(lambda: BETA in woken, "the hint arrives")
            await controller.hint(ALPHA)
            await until(lambda: ALPHA in woken, "the hint arrives")
            assert woken == [BETA, ALPHA]

    async def test_a_report_returns_once_it_was_recorded(self, world: World) -> None:
        desk = Desk()
        reached, release = asyncio.Event(), asyncio.Event()

        async def record(machine: MachineName, payload: bytes) -> None:
            reached.set()
            await release.wait()
            await desk.on_report(machine, payload)

        async with served(world, desk, on_report=record):
            agent = world.agent(ALPHA)
            report = asyncio.create_task(agent.report(b"is", timeout_ms=LONG_MS))
            await reached.wait()
            # A beat that came after it was heard: the report has had its time to return.
            await agent.beat(b"b")
            await until(lambda: bool(desk.beats), "the beat arrives")
            assert not report.done()
            release.set()
            await report
            assert desk.reports == [(ALPHA, b"is")]

    async def test_facts_are_told_once_they_were_recorded(self, world: World) -> None:
        """Of the machine whose bus it is, whatever they say; what was not recorded is said."""
        desk = Desk()

        async def record(machine: MachineName, payload: bytes) -> None:
            if not desk.facts:
                await desk.on_facts(machine, payload)
                raise TransientError("no space")
            await desk.on_facts(machine, payload)

        async with served(world, desk, on_facts=record):
            agent = world.agent(BETA)
            with pytest.raises(BusUnavailableError, match="no space"):
                await agent.tell_facts(b"alpha has a gpu", timeout_ms=LONG_MS)
            await agent.tell_facts(b"beta", timeout_ms=LONG_MS)
            assert desk.facts == [(BETA, b"alpha has a gpu"), (BETA, b"beta")]

    async def test_a_slow_report_holds_up_no_ask(self, world: World) -> None:
        reached, release = asyncio.Event(), asyncio.Event()

        async def record(machine: MachineName, payload: bytes) -> None:
            reached.set()
            await release.wait()

        async with served(world, Desk(), on_report=record):
            slow = asyncio.create_task(world.agent(BETA).report(b"", timeout_ms=LONG_MS))
            await reached.wait()
            assert await world.agent(ALPHA).ask(b"?", timeout_ms=LONG_MS) == b"for alpha: ?"
            release.set()
            await slow

    async def test_a_beat_is_heard(self, world: World) -> None:
        desk = Desk()
        async with served(world, desk):
            agent = world.agent(ALPHA)
            await agent.ask(b"", timeout_ms=LONG_MS)
            await agent.beat(b"7")
            await until(lambda: desk.beats == [(ALPHA, b"7")], "the beat arrives")

    async def test_what_the_controller_could_not_do_is_said(self, world: World) -> None:
        """A port error of its reaches the machine at once, with its cause, and ends nothing."""
        desk = Desk()

        async def locked(machine: MachineName, payload: bytes) -> bytes:
            if payload == b"first":
                raise TransientError("the inventory is locked: “busy”")
            return await desk.on_ask(machine, payload)

        async def record(machine: MachineName, payload: bytes) -> None:
            raise TransientError("no space")

        async with served(world, desk, on_ask=locked, on_report=record):
            agent = world.agent(ALPHA)
            with pytest.raises(BusUnavailableError, match="the inventory is locked"):
                await agent.ask(b"first", timeout_ms=LONG_MS)
            with pytest.raises(BusUnavailableError, match="no space"):
                await agent.report(b"", timeout_ms=LONG_MS)
            assert await agent.ask(b"?", timeout_ms=LONG_MS) == b"for alpha: ?"

    async def test_a_bug_of_the_controllers_is_not_swallowed(self, world: World) -> None:
        async def broken(machine: MachineName, payload: bytes) -> bytes:
            raise ZeroDivisionError

        controller = world.controller()
        desk = Desk()
        serving = asyncio.create_task(
            controller.serve(
                on_ask=broken,
                on_report=desk.on_report,
                on_facts=desk.on_facts,
                on_beat=desk.on_beat,
            )
        )
        agent = world.agent(ALPHA)
        async with asyncio.timeout(DEADLINE_S):
            while not serving.done():
                await asyncio.sleep(0.005)
                with pytest.raises(BusUnavailableError):
                    await agent.ask(b"", timeout_ms=50)
        with pytest.raises(ZeroDivisionError):
            await serving

    async def test_an_ask_that_nobody_answers_ends(self, world: World) -> None:
        with pytest.raises(BusUnavailableError):
            await world.agent(ALPHA).ask(b"", timeout_ms=100)

    async def test_an_ask_that_is_not_answered_in_time_ends(self, world: World) -> None:
        async def forgetful(machine: MachineName, payload: bytes) -> bytes:
            await asyncio.Event().wait()
            return b""

        async with served(world, Desk(), on_ask=forgetful):
            with pytest.raises(BusUnavailableError, match="100 ms"):
                await world.agent(ALPHA).ask(b"", timeout_ms=100)

    async def test_the_largest_declaration_is_carried(self, world: World) -> None:
        """And what is larger than any is refused, naming its size, with the bus as it was."""
        largest = wire.encode(
            wire.Answer(
                declaration=bytes(wire.SIGNED_SIZE_MAX),
                highest=OfferNumber(2**62, 2**62),
            )
        )

        async def answer(machine: MachineName, payload: bytes) -> bytes:
            return largest

        async with served(world, Desk(), on_ask=answer):
            agent = world.agent(ALPHA)
            assert await agent.ask(b"", timeout_ms=LONG_MS) == largest
            too_large = bytes(8 * 1024 * 1024 + 1)
            with pytest.raises(BusRefusedError, match=str(len(too_large))):
                await agent.report(too_large, timeout_ms=LONG_MS)
            assert await agent.ask(b"", timeout_ms=LONG_MS) == largest

    async def test_a_lost_bus_is_found_again(self, world: World) -> None:
        """Waits end at once; hints, asks, reports and beats go on where the bus comes back."""
        desk = Desk()
        waiting, stuck = asyncio.Event(), asyncio.Event()

        async def answer(machine: MachineName, payload: bytes) -> bytes:
            if payload == b"stuck":
                waiting.set()
                await stuck.wait()
            return await desk.on_ask(machine, payload)

        async with served(world, desk, on_ask=answer) as controller:
            agent = world.agent(ALPHA)
            hints: list[str] = []
            await agent.ask(b"", timeout_ms=LONG_MS)
            await agent.on_hint(lambda: hints.append("hint"))
            ask = asyncio.create_task(agent.ask(b"stuck", timeout_ms=10 * LONG_MS))
            await waiting.wait()
            await world.crash()
            with pytest.raises(BusUnavailableError):
                await asyncio.wait_for(ask, DEADLINE_S)
            stuck.set()
            with pytest.raises(BusUnavailableError):
                await agent.ask(b"", timeout_ms=50)
            with pytest.raises(BusUnavailableError):
                await agent.beat(b"")
            hints.clear()
            await world.restart()
            await until(lambda: bool(hints), "a reconnect wakes")
            await self._ask_until_answered(agent)
            await self._report_until_heard(agent, b"again")
            assert set(desk.reports) == {(ALPHA, b"again")}
            hints.clear()
            await controller.hint(ALPHA)
            await until(lambda: bool(hints), "the hint arrives")

    async def test_an_ask_waits_for_the_bus(self, world: World) -> None:
        """One made while there is no bus is sent when there is, if its time has not run out."""
        async with served(world, Desk()):
            await world.crash()
            agent = world.agent(ALPHA)
            ask = asyncio.create_task(self._ask_until_answered(agent))
            await world.restart()
            await ask

    async def test_closing(self, world: World) -> None:
        """Ends the serving and every wait; what is closed is unavailable, and may close again."""
        controller, agent, desk = world.controller(), world.agent(ALPHA), Desk()
        serving = asyncio.create_task(
            controller.serve(
                on_ask=desk.on_ask,
                on_report=desk.on_report,
                on_facts=desk.on_facts,
                on_beat=desk.on_beat,
            )
        )
        await self._ask_until_answered(agent)
        await agent.close()
        with pytest.raises(BusUnavailableError):
            await agent.ask(b"", timeout_ms=50)
        with pytest.raises(BusUnavailableError):
            await agent.beat(b"")
        await controller.close()
        await asyncio.wait_for(serving, DEADLINE_S)
        await agent.close()
        await controller.close()

    async def _ask_until_answered(self, agent: AgentBus) -> None:
        """The bus may be back before its controller is."""
        assert await until_served(lambda: agent.ask(b"?", timeout_ms=AGAIN_MS)) == b"for alpha: ?"

    async def _report_until_heard(self, agent: AgentBus, payload: bytes) -> None:
        """A controller that is back serves one kind after the other."""
        await until_served(lambda: agent.report(payload, timeout_ms=AGAIN_MS))
