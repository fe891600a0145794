"""What dynamic values cost an agent: from a value that is said to the process that has it, and at rest.

The limit of the first is `posix_spawn` of the same program; the goal (DESIGN §11) is six times that,
with a window of 1 ms. The agent, its files and its processes are the real ones; the bus is one in
memory, whose way takes no time (`benchmarks.bus` has the real one's).

    python -m benchmarks.reactions [ROUNDS]
"""

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import nacl.signing

from benchmarks.spawn import Round, plain
from keyplane import wire
from keyplane.adapters.clock import SystemClock
from keyplane.adapters.linux.artifacts import ArtifactCache
from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.linux.machine_facts import LinuxFacts
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.sources import LinuxSources
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.adapters.linux.volumes import LinuxVolumes
from keyplane.converge import brain, events
from keyplane.converge.reaction_state import News
from keyplane.converge.saved import EarlierLife
from keyplane.model.declaration import Declaration, DeclaredEntry, DeclaredUnit, OfferNumber
from keyplane.model.module import ReactionKind
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.reaction import Contract, DeclaredRates
from keyplane.parts.agent import Agent, Host
from keyplane.parts.agent_line import Identity
from keyplane.testing.bus import MemoryBus
from keyplane.testing.store import MemoryStore

ALPHA = MachineName("alpha")
CONTRACTS = 1_000
BRAINS = 1_000
CHANGES = 10_000
KEY = nacl.signing.SigningKey.generate()
EVERY = DeclaredRates(window_ms=1, burst=10**9, restarts_per_unit=10**9, budget_ms=1)


def export(number: int) -> str:
    return f"vpn{number}:node@beta/provides/peer/address"


def declaration(
    units: int, *, command: tuple[str, ...], rates: DeclaredRates, reaction: ReactionKind
) -> Declaration:
    """An entry for each unit, each with one contract."""
    entries = {
        EntryId(f"web{number}:main@alpha"): DeclaredEntry(
            key=Digest("sha256-" + "1" * 64),
            module="web",
            version="1",
            units={
                UnitName("server"): DeclaredUnit(
                    digest=Digest(f"sha256-{number:064x}"),
                    kind="process",
                    command=command,
                    dynamic={"PEER": Contract(sources=(export(number),), reaction=reaction)},
                )
            },
        )
        for number in range(units)
    }
    return Declaration(
        machine=ALPHA,
        offer=OfferNumber(1, 1),
        generation=Digest("sha256-" + "0" * 64),
        entries=entries,
        rates=rates,
    )


class _NoUpload:
    def put(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("no volume is declared")


class Bench:
    """An agent on this machine, and a bus that says what it is told to."""

    def __init__(self, folder: Path, declared: Declaration, *, private_roots: bool) -> None:
        state = StateRoot(folder)
        state.make()
        placement = Placement(
            state=state, private_roots=private_roots, environment={"PATH": os.environ["PATH"]}
        )
        self.bus = MemoryBus()
        self.signed = wire.sign(declared, KEY)
        self.offer = declared.offer
        self.reports = 0
        self.processes = LinuxProcesses(placement)
        self.agent = Agent(
            identity=Identity(machine=ALPHA, controller_key=KEY.verify_key, boot="b"),
            host=Host(
                files=LinuxFiles(state, state.root),
                artifacts=ArtifactCache(state, MemoryStore()),
                processes=self.processes,
                sources=LinuxSources(placement, state.root),
                facts=LinuxFacts(root=state.root, path=placement.environment["PATH"]),
                volumes=LinuxVolumes(state, state.root, MemoryStore(), _NoUpload()),
            ),
            bus=self.bus.agent(ALPHA),
            clock=SystemClock(),
            spread=lambda: 0.0,
        )
        self.beta = self.bus.agent(MachineName("beta"))
        self.number = 0

    async def on_ask(self, machine: MachineName, payload: bytes) -> bytes:
        ask = wire.decode_ask(payload)
        assert isinstance(ask, wire.Ask)
        assert isinstance(self.signed, bytes)
        news = self.signed if ask.have < self.offer else None
        return wire.encode(wire.Answer(declaration=news, highest=self.offer))

    async def on_told(self, machine: MachineName, payload: bytes) -> None:
        self.reports += 1

    async def say(self, of: int, value: str) -> None:
        self.number += 1
        word = wire.Word(export=export(of), number=self.number, value=value)
        payload = wire.encode_word(word)
        await self.beta.values.say(export(of), payload, only_if_none=False, timeout_ms=1_000)

    @contextlib.asynccontextmanager
    async def running(self):
        serving = asyncio.create_task(
            self.bus.controller().serve(
                on_ask=self.on_ask,
                on_report=self.on_told,
                on_facts=self.on_told,
                on_beat=self.on_told,
            )
        )
        life = asyncio.create_task(self.agent.run())
        try:
            yield
        finally:
            for task in (life, serving):
                task.cancel()
            await asyncio.gather(life, serving, return_exceptions=True)
            for each in self.processes.observe():
                if each.running:
                    await self.processes.stop(each.entry, each.unit, each.digest, timeout_ms=1_000)


async def changed(rounds: int, folder: str | None, *, private_roots: bool) -> None:
    """From a value that is said to the first line of the process that was started with it.

    `private_roots` as for a `local` machine; a machine of its own needs none.

    In turns with its limit, as the load of the machine changes from one second to the next.
    """
    with tempfile.TemporaryDirectory(dir=folder) as name:
        round_ = Round(Path(name))
        declared = declaration(
            1, command=round_.command, rates=EVERY, reaction=ReactionKind.RESTART
        )
        bench = Bench(Path(name) / "state", declared, private_roots=private_roots)
        taken: list[float] = []
        limits: list[float] = []
        async with bench.running():
            await bench.say(0, "10.0.0.0")
            await round_.said()
            for turn in range(1, rounds + 1):
                await asyncio.sleep(0.05)  # the process before is known to run
                limits.append(await plain(round_))
                began = time.perf_counter()
                await bench.say(0, f"10.0.0.{turn}")
                taken.append(await round_.said() - began)
        synced = synced_write(Path(name), rounds)
        round_.close()
        median, limit = statistics.median(taken), statistics.median(limits)
        where = "a private root" if private_roots else "a machine of its own"
        print(f"state in {folder or tempfile.gettempdir()}, {where}")
        print(f"posix_spawn                            {limit * 1000:7.2f} ms     1.0 ×")
        print(
            f"value said -> restarted process        {median * 1000:7.2f} ms   "
            f"{median / limit:5.1f} ×   (goal 6.0 ×)"
        )
        print(f"a file written, and its folder, fsync  {synced * 1000:7.2f} ms")


def synced_write(folder: Path, rounds: int) -> float:
    """What the disk takes for one file: as a state is saved."""
    taken: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        with (folder / "new").open("wb") as file:
            file.write(bytes(1_000))
            file.flush()
            os.fsync(file.fileno())
        (folder / "new").replace(folder / "old")
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def memory_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def brains() -> None:
    """A thousand brains of one process, and ten thousand changes of what they read."""
    declared = declaration(1, command=("run",), rates=EVERY, reaction=ReactionKind.LIVE)
    before = memory_mib()
    states = []
    for number in range(BRAINS):
        state = brain.begin(
            machine=ALPHA,
            boot=f"b{number}",
            earlier=EarlierLife(),
            now_ms=0,
            wall_ms=0,
        )
        state, _ = brain.step(state, events.Offered(at_ms=1, declaration=declared))
        states.append(state)
    grown = memory_mib() - before
    began = time.process_time()
    for change in range(CHANGES):
        news = News(export=export(0), value=f"10.0.{change}", number=change + 1)
        which = change % BRAINS
        told = events.ValuesTold(at_ms=2 + change // 10, news=(news,))
        states[which], _ = brain.step(states[which], told)
    took = time.process_time() - began
    print(
        f"{BRAINS} brains, {CHANGES} changes: {took:.2f} s of one core, "
        f"{took / CHANGES * 1e6:.0f} µs each; {grown:.0f} MiB"
    )


def many() -> None:
    """A thousand contracts of one agent: memory, and a change of one of them."""
    declared = declaration(CONTRACTS, command=("run",), rates=EVERY, reaction=ReactionKind.LIVE)
    before = memory_mib()
    state = brain.begin(
        machine=ALPHA,
        boot="b",
        earlier=EarlierLife(),
        now_ms=0,
        wall_ms=0,
    )
    state, _ = brain.step(state, events.Offered(at_ms=1, declaration=declared))
    news = tuple(News(export=export(n), value="a", number=1) for n in range(CONTRACTS))
    state, _ = brain.step(state, events.ValuesTold(at_ms=2, news=news))
    grown = memory_mib() - before
    began = time.process_time()
    rounds = 200
    for turn in range(rounds):
        one = News(export=export(turn), value="b", number=2)
        state, _ = brain.step(state, events.ValuesTold(at_ms=100 + turn * 10, news=(one,)))
        state, _ = brain.step(state, events.Ticked(at_ms=105 + turn * 10))
    took = time.process_time() - began
    print(
        f"{CONTRACTS} contracts on one agent: {grown:.0f} MiB; "
        f"a change and its window {took / rounds * 1000:.2f} ms of a core"
    )


if __name__ == "__main__":
    ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    print(f"load {os.getloadavg()[0]:.1f}")
    for folder in ("/dev/shm", None):
        for private_roots in (False, True):
            asyncio.run(changed(ROUNDS, folder, private_roots=private_roots))
    many()
    brains()
