"""A bus in memory: one line between a controller and its machines' agents.

Gone and back at will (`crash`, `restart`), with nothing kept, as a bus may be.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from keyplane.model.names import MachineName
from keyplane.ports.bus import BusRefusedError, BusUnavailableError
from keyplane.ports.errors import PortError

T = TypeVar("T")

SIZE_MAX = 8 * 1024 * 1024
"""What the real one is configured to carry."""

OnAsk = Callable[[MachineName, bytes], Awaitable[bytes]]
OnTold = Callable[[MachineName, bytes], Awaitable[None]]


@dataclass(slots=True)
class _Serving:
    on_ask: OnAsk
    on_report: OnTold
    on_facts: OnTold
    on_beat: OnTold
    over: asyncio.Future[None]


class MemoryBus:
    """What agents and the controller meet on."""

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.up.set()
        self.down = asyncio.Event()
        self.served = asyncio.Event()
        self.serving: _Serving | None = None
        self.agents: list[MemoryAgentBus] = []
        self.stored: dict[str, tuple[int, bytes]] = {}
        """What was said last of each export, and its number. All of it is lost with the bus."""
        self.writes = 0
        self.work: set[asyncio.Task[None]] = set()

    def crash(self) -> None:
        """Every wait ends; nothing is answered until it is back."""
        self.up.clear()
        self.down.set()
        self.stored.clear()
        for agent in self.agents:
            agent.values.deaf()

    def restart(self) -> None:
        self.down.clear()
        self.up.set()
        for agent in self.agents:
            agent.woken()
            agent.values.woken()

    def agent(self, machine: MachineName) -> "MemoryAgentBus":
        agent = MemoryAgentBus(self, machine)
        self.agents.append(agent)
        return agent

    def controller(self) -> "MemoryControllerBus":
        return MemoryControllerBus(self)

    async def served_by(self) -> _Serving:
        """The controller's functions, once the bus is up and a controller is there."""
        while self.serving is None or not self.up.is_set():
            await self.up.wait()
            await self.served.wait()
        return self.serving


class MemoryAgentBus:
    """The port `AgentBus`, in memory."""

    def __init__(self, bus: MemoryBus, machine: MachineName) -> None:
        self._bus = bus
        self._machine = machine
        self._wakes: list[Callable[[], None]] = []
        self._closed = asyncio.Event()
        self.values = MemoryValues(bus)

    def woken(self) -> None:
        if not self._closed.is_set():
            for wake in self._wakes:
                wake()

    @property
    def machine(self) -> MachineName:
        return self._machine

    async def on_hint(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    async def ask(self, payload: bytes, *, timeout_ms: int) -> bytes:
        async def ask() -> bytes:
            serving = await self._bus.served_by()
            return await _guarded(serving, serving.on_ask(self._machine, payload))

        return await self._request(payload, ask(), timeout_ms)

    async def report(self, payload: bytes, *, timeout_ms: int) -> None:
        async def report() -> None:
            serving = await self._bus.served_by()
            await _guarded(serving, serving.on_report(self._machine, payload))

        await self._request(payload, report(), timeout_ms)

    async def tell_facts(self, payload: bytes, *, timeout_ms: int) -> None:
        async def tell() -> None:
            serving = await self._bus.served_by()
            await _guarded(serving, serving.on_facts(self._machine, payload))

        await self._request(payload, tell(), timeout_ms)

    async def beat(self, payload: bytes) -> None:
        if self._closed.is_set() or not self._bus.up.is_set():
            raise BusUnavailableError("not connected")
        serving = self._bus.serving
        if serving is not None:
            task = asyncio.ensure_future(_told(serving, serving.on_beat(self._machine, payload)))
            self._bus.work.add(task)
            task.add_done_callback(self._bus.work.discard)

    async def close(self) -> None:
        self._closed.set()

    async def _request(self, payload: bytes, request: Awaitable[T], timeout_ms: int) -> T:
        asked = asyncio.ensure_future(request)
        if len(payload) > SIZE_MAX:
            asked.cancel()
            raise BusRefusedError(f"{len(payload)} bytes are more than {SIZE_MAX}")
        # One that is made while the bus is down waits for it; a crash ends those that are under way.
        lost = self._bus.down if self._bus.up.is_set() else asyncio.Event()
        ends = [asyncio.ensure_future(each.wait()) for each in (self._closed, lost)]
        try:
            await asyncio.wait(
                [asked, *ends], timeout=timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED
            )
            if asked.done() and not self._closed.is_set():
                return asked.result()
            if ends[0].done() or ends[1].done():
                raise BusUnavailableError("not connected")
            raise BusUnavailableError(f"nobody answered within {timeout_ms} ms")
        finally:
            for each in (asked, *ends):
                each.cancel()


class MemoryValues:
    """The port `ValueBus`, in memory."""

    def __init__(self, bus: MemoryBus) -> None:
        self._bus = bus
        self._wakes: list[Callable[[], None]] = []
        self._takes: dict[str, Callable[[str, bytes], None]] = {}

    def deaf(self) -> None:
        self._takes.clear()

    def woken(self) -> None:
        for wake in self._wakes:
            wake()

    def on_connected(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)
        if self._bus.up.is_set():
            wake()

    async def say(self, export: str, payload: bytes, *, only_if_none: bool, timeout_ms: int) -> int:
        bus = self._up()
        if export not in bus.stored or not only_if_none:
            bus.writes += 1
            bus.stored[export] = (bus.writes, payload)
        for agent in bus.agents:
            agent.values.hear(export, payload)
        return bus.stored[export][0]

    def hear(self, export: str, payload: bytes) -> None:
        take = self._takes.get(export)
        if take is not None:
            take(export, payload)

    async def read(self, export: str, *, timeout_ms: int) -> bytes | None:
        found = self._up().stored.get(export)
        return None if found is None else found[1]

    async def listen(
        self, exports: Collection[str], take: Callable[[str, bytes], None]
    ) -> frozenset[str]:
        self._up()
        self._takes = dict.fromkeys(exports, take)
        return frozenset(exports)

    def _up(self) -> MemoryBus:
        if not self._bus.up.is_set():
            raise BusUnavailableError("not connected")
        return self._bus


class MemoryControllerBus:
    """The port `ControllerBus`, in memory."""

    def __init__(self, bus: MemoryBus) -> None:
        self._bus = bus
        self._closed = asyncio.Event()

    async def hint(self, machine: MachineName) -> None:
        if self._closed.is_set() or not self._bus.up.is_set():
            raise BusUnavailableError("not connected")
        for agent in self._bus.agents:
            if agent.machine == machine:
                agent.woken()

    async def serve(
        self, *, on_ask: OnAsk, on_report: OnTold, on_facts: OnTold, on_beat: OnTold
    ) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = _Serving(
            on_ask=on_ask, on_report=on_report, on_facts=on_facts, on_beat=on_beat, over=over
        )
        self._bus.serving = serving
        self._bus.served.set()
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait([over, closed], return_when=asyncio.FIRST_COMPLETED)
            if over.done():
                over.result()
        finally:
            closed.cancel()
            over.cancel()
            if self._bus.serving is serving:
                self._bus.serving = None
                self._bus.served.clear()

    async def close(self) -> None:
        self._closed.set()


async def _guarded(serving: _Serving, answer: Awaitable[T]) -> T:
    """A port error of the controller's reaches the machine; a bug ends the serving."""
    try:
        return await answer
    except PortError as error:
        raise BusUnavailableError(str(error)) from error
    except Exception as error:
        if not serving.over.done():
            serving.over.set_exception(error)
        raise BusUnavailableError("the controller failed") from error


async def _told(serving: _Serving, told: Awaitable[None]) -> None:
    try:
        await told
    except PortError:
        pass
    except Exception as error:  # noqa: BLE001 - a bug of the controller's is raised from `serve`
        if not serving.over.done():
            serving.over.set_exception(error)
