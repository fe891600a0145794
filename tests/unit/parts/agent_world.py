"""An agent on a machine in memory, and a controller on the other end of a bus in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import nacl.signing

from keyplane import wire
from keyplane.model.declaration import NO_OFFER, Declaration, DeclaredEntry, OfferNumber, Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.parts.agent import Agent, Host
from keyplane.parts.agent_line import Identity
from keyplane.testing.bus import MemoryBus
from keyplane.testing.clock import LoopClock, VirtualLoop
from keyplane.testing.facts import MemoryFacts
from keyplane.testing.host import MemoryHost
from keyplane.testing.sources import MemorySources

ALPHA = MachineName("alpha")


def in_virtual_time(main: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(100_000):
            await main()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


@dataclass
class Desk:
    """A controller: one signed declaration for the machine, and what was told."""

    key: nacl.signing.SigningKey = field(default_factory=nacl.signing.SigningKey.generate)
    signed: bytes | None = None
    offer: OfferNumber = NO_OFFER
    asks: list[wire.Ask] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    beats: list[wire.Beat] = field(default_factory=list)
    facts: list[wire.Facts] = field(default_factory=list)
    counter: int = 0
    heard: int | None = None
    """What it says that it was told."""
    has_facts: str | None = None
    """The digest of the facts that it says it has."""

    def declare(
        self,
        entries: Mapping[EntryId, DeclaredEntry],
        contents: Mapping[Digest, bytes] | None = None,
        *,
        key: nacl.signing.SigningKey | None = None,
    ) -> None:
        self.counter += 1
        self.offer = OfferNumber(1, self.counter)
        declaration = Declaration(
            machine=ALPHA,
            offer=self.offer,
            generation=Digest(f"sha256-{'0' * 64}"),
            entries=entries,
            contents=contents or {},
        )
        signed = wire.sign(declaration, key or self.key)
        assert isinstance(signed, bytes)
        self.signed = signed

    async def on_ask(self, machine: MachineName, payload: bytes) -> bytes:
        ask = wire.decode_ask(payload)
        assert isinstance(ask, wire.Ask)
        self.asks.append(ask)
        news = self.signed if ask.have < self.offer else None
        answer = wire.Answer(
            declaration=news, highest=self.offer, heard=self.heard, facts=self.has_facts
        )
        return wire.encode(answer)

    async def on_report(self, machine: MachineName, payload: bytes) -> None:
        report = wire.decode_report(payload, machine=machine)
        assert isinstance(report, Report)
        self.reports.append(report)

    async def on_facts(self, machine: MachineName, payload: bytes) -> None:
        told = wire.decode_facts(payload)
        assert isinstance(told, wire.Facts)
        self.facts.append(told)

    async def on_beat(self, machine: MachineName, payload: bytes) -> None:
        beat = wire.decode_beat(payload)
        assert isinstance(beat, wire.Beat)
        self.beats.append(beat)


class World:
    """Make it within the loop."""

    def __init__(self) -> None:
        self.host = MemoryHost()
        self.bus = MemoryBus()
        self.sources = MemorySources()
        self.facts = MemoryFacts()
        self.desk = Desk()
        self.controller = self.bus.controller()
        self.lives = 0

    def agent(self) -> Agent:
        self.lives += 1
        host = self.host
        return Agent(
            identity=Identity(
                machine=ALPHA, controller_key=self.desk.key.verify_key, boot=f"life-{self.lives}"
            ),
            host=Host(
                files=host.files,
                artifacts=host.artifacts,
                processes=host.processes,
                volumes=host.volumes,
                sources=self.sources,
                facts=self.facts,
            ),
            bus=self.bus.agent(ALPHA),
            clock=LoopClock(),
            spread=lambda: 0.5,
        )

    @asynccontextmanager
    async def served(self):
        desk = self.desk
        serving = asyncio.create_task(
            self.controller.serve(
                on_ask=desk.on_ask,
                on_report=desk.on_report,
                on_facts=desk.on_facts,
                on_beat=desk.on_beat,
            )
        )
        try:
            yield
        finally:
            await self.controller.close()
            await serving

    @asynccontextmanager
    async def running(self):
        """One life of an agent; it ends as on TERM."""
        agent = self.agent()
        life = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            assert not life.done(), "the agent ended by itself"
            life.cancel()
            await asyncio.wait([life])
