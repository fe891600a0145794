"""A controller and the agents of three machines, in memory and virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import nacl.signing

from keyplane.model.names import MachineName
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.agent import Agent, Host
from keyplane.parts.agent_line import Identity
from keyplane.parts.controller import Controller
from keyplane.parts.offering import Offering
from keyplane.parts.planning import Planning
from keyplane.ports import fact_order
from keyplane.testing.bus import MemoryBus
from keyplane.testing.clock import LoopClock, VirtualLoop
from keyplane.testing.facts import MemoryFacts
from keyplane.testing.host import MemoryHost
from keyplane.testing.inventory import MemoryInventory
from keyplane.testing.sources import MemorySources
from keyplane.testing.store import MemoryStore
from tests.unit.parts.fact_fleet import HEARD, archive, read

Json = Any

HOLD_S = fact_order.HOLD_MS / 1000
SETTLED_S = 10.0
"""Longer than an agent, a controller and a rollout take for what needs no waiting."""


def in_virtual_time(main: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(100_000):
            await main()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


class World:
    """Make it within the loop."""

    def __init__(self) -> None:
        self.inventory = MemoryInventory()
        self.bus = MemoryBus()
        self.key = nacl.signing.SigningKey.generate()
        self.hosts = {machine: MemoryHost() for machine in HEARD}
        self.facts = {machine: MemoryFacts() for machine in HEARD}
        self.agents: dict[MachineName, asyncio.Task[None]] = {}
        self.lives = 0
        self.is_permitted = asyncio.Event()
        """Whether rights on the bus are given at once; else whoever asks for some waits."""
        self.is_permitted.set()
        self.refusal: Exception | None = None
        """With what rights on the bus are refused."""
        self.kept: list[Sequence[str]] = []
        """The machines that were to have an agent on the controller's, each time."""
        self.controller = self._controller()

    def _controller(self) -> Controller:
        async def agents(machines: Sequence[str]) -> None:
            self.kept.append(machines)

        async def permit(_: Any) -> None:
            await self.is_permitted.wait()
            if self.refusal is not None:
                raise self.refusal

        clock = LoopClock()
        bus = self.bus.controller()
        return Controller(
            inventory=self.inventory,
            planning=Planning(read=read, archive=archive),
            offering=Offering(inventory=self.inventory, bus=bus, clock=clock, key=self.key),
            store=MemoryStore(),
            clock=clock,
            agents=agents,
            permit=permit,
            hold_ms=fact_order.HOLD_MS,
        )

    @asynccontextmanager
    async def running(self):
        """A life of the controller, and of each agent."""
        async with self.controlled():
            for machine in HEARD:
                self.begin(machine)
            await asyncio.sleep(SETTLED_S)
            try:
                yield self
            finally:
                for machine in list(self.agents):
                    await self.end(machine)

    @asynccontextmanager
    async def controlled(self):
        """A life of a controller."""
        self.controller = controller = self._controller()
        tasks = [
            asyncio.create_task(controller.run()),
            asyncio.create_task(
                self.bus.controller().serve(
                    on_ask=controller.on_ask,
                    on_report=controller.on_report,
                    on_facts=controller.facts.on_facts,
                    on_beat=controller.on_beat,
                )
            ),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def begin(self, machine: MachineName) -> None:
        self.lives += 1
        host = self.hosts[machine]
        agent = Agent(
            identity=Identity(
                machine=machine, controller_key=self.key.verify_key, boot=f"life-{self.lives}"
            ),
            host=Host(
                files=host.files,
                artifacts=host.artifacts,
                processes=host.processes,
                sources=MemorySources(),
                volumes=host.volumes,
                facts=self.facts[machine],
            ),
            bus=self.bus.agent(machine),
            clock=LoopClock(),
            spread=lambda: 0.5,
        )
        self.agents[machine] = asyncio.create_task(agent.run())

    async def end(self, machine: MachineName) -> None:
        """The machine is off, or cut off: nothing is heard of it."""
        task = self.agents.pop(machine)
        task.cancel()
        await asyncio.wait({task})

    def say(self, machine: str, **facts: Json) -> None:
        """`gpu__count` is `gpu.count`; None takes one away."""
        now = dict(self.facts[MachineName(machine)].now)
        now.update({name.replace("__", "."): value for name, value in facts.items()})
        self.facts[MachineName(machine)].now = {k: v for k, v in now.items() if v is not None}

    async def apply(self, files: Mapping[str, bytes]) -> messages.Ended:
        """As a person does it: what stands is looked at first, and seen to its end."""
        newest = await self.inventory.revision()
        over = None if newest is None else newest.number
        return await self.do(changes.Directory(files=dict(files), over=over))

    async def do(self, asked: changes.Asked) -> messages.Ended:
        proposal = await self.controller.propose(messages.Propose(asked=asked))
        assert not proposal.nothing, proposal.said
        order = messages.Apply(
            asked=asked,
            parent=proposal.parent,
            revision=proposal.revision,
            generation=proposal.generation,
        )
        async for event in await self.controller.apply(order, who="ada"):
            if isinstance(event, messages.Ended):
                return event
        raise AssertionError("it never ended")

    def runs(self) -> dict[str, Mapping[str, str]]:
        """What runs, with its environment."""
        return {
            str(run.seen.entry): run.spec.env
            for host in self.hosts.values()
            for run in host.processes.runs.values()
            if run.seen.running
        }

    def pids(self) -> dict[str, int | None]:
        return {
            str(run.seen.entry): run.seen.pid
            for host in self.hosts.values()
            for run in host.processes.runs.values()
            if run.seen.running
        }

    async def waiting(self) -> dict[str, Mapping[str, str]]:
        """By machine: what it would stop, move or spoil."""
        found = (await self.controller.status()).facts
        return {each.machine: each.entries for each in found}

    async def generations(self) -> int:
        return len(await self.inventory.generations())
