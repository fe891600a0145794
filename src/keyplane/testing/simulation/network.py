"""A bus that loses, delays, repeats and overtakes, and that goes away with all that it carries."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keyplane.model.names import MachineName
from keyplane.ports.bus import BusUnavailableError, ValueBus
from keyplane.ports.errors import PortError
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.life import Life

OnAsk = Callable[[MachineName, bytes], Awaitable[bytes]]
OnTold = Callable[[MachineName, bytes], Awaitable[None]]
Reply = asyncio.Future[bytes]

LATE_S = 9.0
"""The longest that a message is on its way. Of a report more than ten seconds are not expected:
`ordering.OVERTAKEN_MAX_MS`."""
_LOOK_AGAIN_S = 0.3
NEWS_BYTES = 100
"""An answer without a declaration is shorter."""


@dataclass(slots=True, kw_only=True)
class Odds:
    """How often a message meets which fate."""

    lost: float = 0.0
    late: float = 0.0
    twice: float = 0.0
    stale: float = 0.0
    """An answer that the machine was given before comes in place of the one that is due."""


@dataclass(slots=True, kw_only=True)
class Serving:
    """A controller that answers."""

    life: Life
    on_ask: OnAsk
    on_report: OnTold
    on_facts: OnTold
    on_beat: OnTold


@dataclass(slots=True, kw_only=True)
class _Message:
    kind: str
    machine: MachineName
    payload: bytes
    reply: Reply


class Network:
    """What agents and controllers meet on."""

    def __init__(
        self,
        chance: Chance,
        log: Callable[[str, str], None],
        heard: Callable[[MachineName], None],
    ) -> None:
        """`heard` is told of whom a controller hears."""
        self.odds = Odds()
        self.is_up = True
        self.outlived: dict[MachineName, Callable[[], None]] = {}
        """Machines whose next report comes very late, and what happens once it has left."""
        self._chance = chance
        self._log = log
        self._heard = heard
        self._serving: list[Serving] = []
        self._agents: list[AgentEnd] = []
        self._waiting: dict[int, _Message] = {}
        """Sent while it was down."""
        self._pending: dict[int, Reply] = {}
        self._count = 0
        self._answers: dict[MachineName, list[bytes]] = {}
        self.on_crash: list[Callable[[], None]] = []
        self.on_restart: list[Callable[[], None]] = []

    # The bus itself.

    def crash(self) -> None:
        self.is_up = False
        for reply in list(self._pending.values()):
            _fail(reply, "not connected")
        for told in self.on_crash:
            told()

    def restart(self) -> None:
        self.is_up = True
        waiting, self._waiting = self._waiting, {}
        for message in waiting.values():
            self._send(message)
        for agent in list(self._agents):
            self._later(agent.woken)
        for told in self.on_restart:
            told()

    def serve(self, serving: Serving) -> None:
        self._serving.append(serving)

    def join(self, end: "AgentEnd") -> None:
        self._agents = [each for each in self._agents if not each.is_gone]
        self._agents.append(end)

    def controller(self, life: Life) -> "ControllerEnd":
        return ControllerEnd(self, life)

    # Messages.

    async def request(
        self, kind: str, machine: MachineName, payload: bytes, timeout_ms: int
    ) -> bytes:
        loop = asyncio.get_running_loop()
        reply: Reply = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, _fail, reply, "nobody answered in time")
        self._count += 1
        number = self._count
        self._pending[number] = reply
        message = _Message(kind=kind, machine=machine, payload=payload, reply=reply)
        if self.is_up:
            self._send(message)
        else:
            self._waiting[number] = message
        try:
            return await reply
        finally:
            timer.cancel()
            del self._pending[number]
            self._waiting.pop(number, None)

    def beat(self, machine: MachineName, payload: bytes) -> None:
        reply: Reply = asyncio.get_running_loop().create_future()
        self._send(_Message(kind="beat", machine=machine, payload=payload, reply=reply))

    def hint(self, machine: MachineName) -> None:
        if self._chance.happens(self.odds.lost):
            self._log("bus", f"loses a hint to {machine}")
            return
        for _ in range(2 if self._chance.happens(self.odds.twice) else 1):
            for agent in self._agents:
                if agent.machine == machine:
                    self._later(agent.woken)

    def _send(self, message: _Message) -> None:
        if self._chance.happens(self.odds.lost):
            self._log("bus", f"loses {message.kind} of {message.machine}")
            return
        if message.kind == "report" and message.machine in self.outlived:
            self.outlived.pop(message.machine)()
            delay_s = self._chance.between(LATE_S / 2, LATE_S)
            asyncio.get_running_loop().call_later(delay_s, self._arrive, message)
            return
        for _ in range(2 if self._chance.happens(self.odds.twice) else 1):
            self._later(self._arrive, message)

    def _later(self, call: Callable[..., None], *args: object) -> None:
        late = self._chance.happens(self.odds.late)
        delay_s = self._chance.between(0.5, LATE_S) if late else self._chance.between(0.001, 0.02)
        asyncio.get_running_loop().call_later(delay_s, call, *args)

    def _arrive(self, message: _Message) -> None:
        if not self.is_up:
            return
        self._serving = [each for each in self._serving if not each.life.is_dead]
        if not self._serving:
            if not message.reply.done():
                loop = asyncio.get_running_loop()
                loop.call_later(_LOOK_AGAIN_S, self._arrive, message)
            return
        serving = self._chance.pick(self._serving)
        serving.life.spawn(self._served(serving, message))

    async def _served(self, serving: Serving, message: _Message) -> None:
        machine, payload = message.machine, message.payload
        await serving.life.thaw()
        answer = b""
        self._heard(machine)
        try:
            if message.kind == "ask":
                answer = self._replayed(machine, await serving.on_ask(machine, payload))
            elif message.kind == "report":
                await serving.on_report(machine, payload)
            elif message.kind == "facts":
                await serving.on_facts(machine, payload)
            else:
                await serving.on_beat(machine, payload)
        except PortError as error:
            self._later(_fail, message.reply, str(error))
            return
        if not self._chance.happens(self.odds.lost):
            self._later(_answer, message.reply, answer)

    def _replayed(self, machine: MachineName, answer: bytes) -> bytes:
        given = self._answers.setdefault(machine, [])
        if len(answer) > NEWS_BYTES:
            given.append(answer)
        if not given or not self._chance.happens(self.odds.stale):
            return answer
        self._log("bus", f"gives {machine} an old answer")
        return self._chance.pick(given)


def _fail(reply: Reply, why: str) -> None:
    if not reply.done():
        reply.set_exception(BusUnavailableError(why))
        reply.exception()  # a beat's is never awaited


def _answer(reply: Reply, answer: bytes) -> None:
    if not reply.done():
        reply.set_result(answer)


class AgentEnd:
    """The port `AgentBus` of one life of an agent."""

    def __init__(
        self, network: Network, machine: MachineName, life: Life, values: ValueBus
    ) -> None:
        self.machine = machine
        self.values = values
        self._network = network
        self._life = life
        self._wake: Callable[[], None] | None = None

    @property
    def is_gone(self) -> bool:
        return self._life.is_dead

    def woken(self) -> None:
        if self._wake is not None and not self.is_gone:
            self._wake()

    async def on_hint(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    async def ask(self, payload: bytes, *, timeout_ms: int) -> bytes:
        self._life.alive()
        return await self._network.request("ask", self.machine, payload, timeout_ms)

    async def report(self, payload: bytes, *, timeout_ms: int) -> None:
        self._life.boundary("before a report")
        await self._network.request("report", self.machine, payload, timeout_ms)

    async def tell_facts(self, payload: bytes, *, timeout_ms: int) -> None:
        self._life.boundary("before it tells facts")
        await self._network.request("facts", self.machine, payload, timeout_ms)

    async def beat(self, payload: bytes) -> None:
        self._life.alive()
        if not self._network.is_up:
            raise BusUnavailableError("not connected")
        self._network.beat(self.machine, payload)

    async def close(self) -> None:
        """Nothing is held."""


class ControllerEnd:
    """The port `ControllerBus` of one life of a controller."""

    def __init__(self, network: Network, life: Life) -> None:
        self._network = network
        self._life = life

    async def hint(self, machine: MachineName) -> None:
        self._life.boundary(f"before a hint to {machine}")
        if not self._network.is_up:
            raise BusUnavailableError("not connected")
        self._network.hint(machine)

    async def serve(
        self, *, on_ask: OnAsk, on_report: OnTold, on_facts: OnTold, on_beat: OnTold
    ) -> None:
        serving = Serving(
            life=self._life,
            on_ask=on_ask,
            on_report=on_report,
            on_facts=on_facts,
            on_beat=on_beat,
        )
        self._network.serve(serving)
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is held."""
