"""One value that many agents read: all of them act within the window and a second more.

The agents are the product's own, each with its own user and connection to a real server; their
machines are in memory, so that fifty cost no fifty Python processes.
"""

import asyncio
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keyplane import wire
from keyplane.adapters.clock import SystemClock
from keyplane.adapters.nats import keys
from keyplane.adapters.nats.agent_bus import NatsAgentBus
from keyplane.adapters.nats.controller_bus import NatsControllerBus
from keyplane.adapters.nats.permissions import Controller, Machine, User
from keyplane.adapters.nats.server import EmbeddedServer, locate
from keyplane.converge import saved
from keyplane.model.declaration import Declaration, DeclaredEntry, DeclaredUnit, OfferNumber
from keyplane.model.host import ObservedProcess, ProcessSpec
from keyplane.model.module import ReactionKind
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.reaction import Contract, DeclaredRates
from keyplane.parts.agent import Agent, Host
from keyplane.parts.agent_line import Identity
from keyplane.ports.bus import BusUnavailableError
from keyplane.testing.facts import MemoryFacts
from keyplane.testing.host import Faults, MemoryHost, MemoryProcesses
from keyplane.testing.sources import MemorySources
from tests.unit.wire.values import KEY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

READERS = int(os.environ.get("KEYPLANE_TEST_READERS", "50"))
WINDOW_MS = 500
SLACK_S = 1.0
"""Beyond the window: all have acted by then."""
ROUNDS = 20
"""Where others take the processor away for seconds, the next round may be spared."""
TICK_S = 0.01
SHARED = "vpn:node@provider/provides/peer/address"


class Timed(MemoryProcesses):
    """Notes with which value each start was, and when."""

    def __init__(self, faults: Faults, starts: dict[str, float]) -> None:
        super().__init__(faults)
        self.starts = starts

    async def start(self, spec: ProcessSpec) -> ObservedProcess:
        self.starts.setdefault(spec.env["PEER"], time.monotonic())
        return await super().start(spec)


@dataclass
class Reader:
    name: MachineName
    starts: dict[str, float] = field(default_factory=dict)
    memory: MemoryHost = field(default_factory=MemoryHost)

    def is_quiet(self) -> bool:
        """No window is open."""
        kept = self.memory.files.state.get(saved.REACTIONS)
        state = None if kept is None else saved.decode_reactions(kept)
        return state is not None and state.opened_ms is None


def declared(machine: MachineName) -> bytes:
    contract = Contract(sources=(SHARED,), reaction=ReactionKind.RESTART)
    unit = DeclaredUnit(
        digest=Digest("sha256-" + "1" * 64),
        kind="process",
        command=("run",),
        dynamic={"PEER": contract},
    )
    entry = DeclaredEntry(
        key=Digest("sha256-" + "2" * 64), module="m", version="1", units={UnitName("u"): unit}
    )
    signed = wire.sign(
        Declaration(
            machine=machine,
            offer=OfferNumber(1, 1),
            generation=Digest("g"),
            entries={EntryId(f"game:main@{machine}"): entry},
            rates=DeclaredRates(window_ms=WINDOW_MS, burst=ROUNDS, restarts_per_unit=2 * ROUNDS),
        ),
        KEY,
    )
    assert isinstance(signed, bytes)
    return signed


async def on_ask(machine: MachineName, payload: bytes) -> bytes:
    ask = wire.decode_ask(payload)
    assert isinstance(ask, wire.Ask)
    offer = OfferNumber(1, 1)
    news = declared(machine) if ask.have < offer else None
    return wire.encode(wire.Answer(declaration=news, highest=offer))


async def on_told(machine: MachineName, payload: bytes) -> None:
    pass


def agent(reader: Reader, bus: NatsAgentBus) -> Agent:
    memory = reader.memory
    memory.processes = Timed(memory.faults, reader.starts)
    host = Host(
        files=memory.files,
        artifacts=memory.artifacts,
        processes=memory.processes,
        volumes=memory.volumes,
        sources=MemorySources(),
        facts=MemoryFacts(),
    )
    identity = Identity(machine=reader.name, controller_key=KEY.verify_key, boot="b")
    return Agent(identity=identity, host=host, bus=bus, clock=SystemClock(), spread=lambda: 0.0)


async def say(bus: NatsAgentBus, number: int, value: str) -> None:
    word = wire.encode_word(wire.Word(export=SHARED, number=number, value=value))
    async with asyncio.timeout(60):
        while True:
            try:
                await bus.values.say(SHARED, word, only_if_none=False, timeout_ms=5_000)
            except BusUnavailableError:
                await asyncio.sleep(0.05)
            else:
                return


async def test_one_value_reaches_all_its_readers_within_the_window_and_a_second(
    tmp_path: Path, record_property, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report prints how late each was, in each round up to one in which all were in time."""
    readers = [Reader(MachineName(f"reader{number}")) for number in range(READERS)]
    provider = MachineName("provider")
    seeds = {
        name: keys.ensure_bus_key(tmp_path / "keys" / name)
        for name in ["controller", provider, *(reader.name for reader in readers)]
    }
    users = [
        User(principal=Controller(), public_key=seeds["controller"].public),
        User(principal=Machine(provider), public_key=seeds[provider].public, says=(SHARED,)),
        *(
            User(principal=Machine(r.name), public_key=seeds[r.name].public, reads=(SHARED,))
            for r in readers
        ),
    ]
    server = EmbeddedServer(directory=tmp_path / "bus")
    await server.start(users)

    def bus(name: MachineName) -> NatsAgentBus:
        return NatsAgentBus(
            machine=name, seed=seeds[name].seed, locate=lambda: locate(tmp_path / "bus")
        )

    control = NatsControllerBus(
        seed=seeds["controller"].seed, locate=lambda: locate(tmp_path / "bus")
    )
    buses = {name: bus(name) for name in [provider, *(reader.name for reader in readers)]}
    tasks = [
        asyncio.create_task(
            control.serve(on_ask=on_ask, on_report=on_told, on_facts=on_told, on_beat=on_told)
        ),
        *(asyncio.create_task(agent(r, buses[r.name]).run()) for r in readers),
    ]
    taken = Taken()
    tasks.append(asyncio.create_task(taken.watch()))
    shown: list[str] = []
    late: list[float] = []
    try:
        await say(buses[provider], 1, "first")
        await until(lambda: all("first" in reader.starts for reader in readers))
        for number in range(2, 2 + ROUNDS):
            await until(lambda: all(reader.is_quiet() for reader in readers))
            said, value = time.monotonic(), f"value {number}"
            taken.seconds = 0.0
            await say(buses[provider], number, value)
            await until(lambda value=value: all(value in each.starts for each in readers))
            late = sorted(each.starts[value] - said - WINDOW_MS / 1000 for each in readers)
            shown.append(f"{_histogram(late)}, with {taken.seconds:.1f} s of others")
            assert late[0] >= -0.05  # nobody acts before its window is over
            if late[-1] <= SLACK_S + taken.seconds:
                break
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in (*buses.values(), control):
            await each.close()
        await server.stop()
    record_property("late", shown)
    with capsys.disabled():
        print(f"\n{READERS} readers, later than the window by", *shown, sep="\n  ")
    assert late[-1] <= SLACK_S + taken.seconds


class Taken:
    """How long others had the processor while this process had something to do."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def watch(self) -> None:
        while True:
            began, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(TICK_S)
            late_s = time.monotonic() - began - TICK_S
            self.seconds += max(0.0, late_s - (time.thread_time() - worked))


def _histogram(late: list[float]) -> str:
    counted = Counter(round(1000 * each) // 50 * 50 for each in late)
    return ", ".join(f"{at} ms: {count}" for at, count in sorted(counted.items()))


async def until(holds) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.02)
