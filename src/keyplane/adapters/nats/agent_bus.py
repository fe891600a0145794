"""The bus as one machine's agent has it, on NATS (`ports.bus.AgentBus`)."""

from collections.abc import Callable

from nats.aio.msg import Msg

from keyplane.adapters.nats import replies, subjects
from keyplane.adapters.nats.link import Link
from keyplane.adapters.nats.permissions import Machine
from keyplane.adapters.nats.values import NatsValues
from keyplane.model.names import MachineName


class NatsAgentBus:
    """Made inside a running loop, connected or not: what is not there yet is waited for."""

    def __init__(self, *, machine: MachineName, seed: str, locate: Callable[[], str]) -> None:
        """`locate` gives the bus's URL, and is asked before each attempt to connect."""
        self._machine = machine
        self._link = Link(principal=Machine(machine), seed=seed, locate=locate)
        self.values = NatsValues(self._link)
        """The port `ValueBus`."""

    async def on_hint(self, wake: Callable[[], None]) -> None:
        async def take(_: Msg) -> None:
            wake()

        self._link.on_connected(wake)
        await self._link.subscribe(subjects.hint(self._machine), take)

    async def ask(self, payload: bytes, *, timeout_ms: int) -> bytes:
        return await self._request(subjects.ask(self._machine), payload, timeout_ms)

    async def report(self, payload: bytes, *, timeout_ms: int) -> None:
        await self._request(subjects.report(self._machine), payload, timeout_ms)

    async def tell_facts(self, payload: bytes, *, timeout_ms: int) -> None:
        await self._request(subjects.facts(self._machine), payload, timeout_ms)

    async def beat(self, payload: bytes) -> None:
        await self._link.publish(subjects.beat(self._machine), payload)

    async def close(self) -> None:
        await self._link.close()

    async def _request(self, subject: str, payload: bytes, timeout_ms: int) -> bytes:
        message = await self._link.request(subject, payload, timeout_ms=timeout_ms)
        return replies.answer_of(message)
