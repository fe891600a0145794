"""Declarations to many agents and their reports taken in, against the same bytes sent bare.

Both go through the same client library to a server of their own, from one process. The bare side
asks and answers with prepared bytes and does no other work; ours signs nothing anew either (an
offer is signed once, when it is made) but opens, checks and decodes what comes in at both ends.

    python -m benchmarks.bus [agents] [kilobytes of content each]
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import nacl.signing
import nkeys
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.beside import cores
from keyplane import wire
from keyplane.adapters.nats import keys
from keyplane.adapters.nats.agent_bus import NatsAgentBus
from keyplane.adapters.nats.controller_bus import NatsControllerBus
from keyplane.adapters.nats.permissions import Controller, Machine, User
from keyplane.adapters.nats.server import EmbeddedServer
from keyplane.model.declaration import (
    NO_OFFER,
    Declaration,
    DeclaredEntry,
    DeclaredUnit,
    EntryReport,
    EntryState,
    OfferNumber,
    Report,
    UnitReport,
    UnitState,
)
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.parts.main import heap

ROUNDS = 5
TIMEOUT_MS = 60_000
OFFER = OfferNumber(0, 1)
SOME = Digest("sha256-" + "0" * 64)


def make_key() -> keys.BusKey:
    """In memory: thousands of durable files are no part of what is measured."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    public = bytes(nkeys.from_seed(seed).public_key)
    return keys.BusKey(seed=seed.decode(), public=public.decode())


def declaration_of(machine: MachineName, content_size: int) -> Declaration:
    unit = DeclaredUnit(digest=SOME, kind="process", command=("/bin/true",), env={"A": "1"})
    entry = DeclaredEntry(key=SOME, module="m", version="1", units={UnitName("u"): unit})
    return Declaration(
        machine=machine,
        offer=OFFER,
        generation=SOME,
        entries={EntryId(f"i{number}:r@{machine}"): entry for number in range(25)},
        contents={SOME: os.urandom(content_size)},
    )


def report_of(machine: MachineName, declaration: Declaration) -> Report:
    unit = UnitReport(state=UnitState.HEALTHY, digest=SOME, pid=4_000, start_ticks=123_456)
    entry = EntryReport(state=EntryState.HEALTHY, key=SOME, units={UnitName("u"): unit})
    return Report(
        machine=machine,
        offer=OFFER,
        settled=OFFER,
        sequence=1,
        boot="b",
        entries=dict.fromkeys(declaration.entries, entry),
    )


async def ours(url: str, seeds: dict[MachineName, str], controller_seed: str, size: int) -> float:
    signing_key = nacl.signing.SigningKey.generate()
    declarations = {machine: declaration_of(machine, size) for machine in seeds}
    offers: dict[MachineName, bytes] = {}
    for machine, declaration in declarations.items():
        signed = wire.sign(declaration, signing_key)
        assert isinstance(signed, bytes)
        offers[machine] = signed
    reports = {machine: report_of(machine, each) for machine, each in declarations.items()}
    taken: set[MachineName] = set()

    async def on_ask(machine: MachineName, payload: bytes) -> bytes:
        assert isinstance(wire.decode_ask(payload), wire.Ask)
        return wire.encode(wire.Answer(declaration=offers[machine], highest=OFFER))

    async def on_report(machine: MachineName, payload: bytes) -> None:
        assert isinstance(wire.decode_report(payload, machine=machine), Report)
        taken.add(machine)

    async def on_beat(machine: MachineName, payload: bytes) -> None:
        pass

    controller = NatsControllerBus(seed=controller_seed, locate=lambda: url)
    serving = asyncio.create_task(
        controller.serve(on_ask=on_ask, on_report=on_report, on_facts=on_beat, on_beat=on_beat)
    )
    agents: dict[MachineName, NatsAgentBus] = {}
    ask = wire.encode(wire.Ask(have=NO_OFFER, wire=1, boot="b"))

    async def converge(machine: MachineName) -> None:
        answer = wire.decode_answer(await agents[machine].ask(ask, timeout_ms=TIMEOUT_MS))
        assert isinstance(answer, wire.Answer)
        assert answer.declaration is not None
        opened = wire.open_declaration(
            answer.declaration, key=signing_key.verify_key, machine=machine
        )
        assert isinstance(opened, Declaration)
        report = wire.encode_report(reports[machine])
        await agents[machine].report(report, timeout_ms=TIMEOUT_MS)

    for machine, seed in seeds.items():
        agents[machine] = NatsAgentBus(machine=machine, seed=seed, locate=lambda: url)
        await converge(machine)
    best = float("inf")
    for _ in range(ROUNDS):
        taken.clear()
        began = time.perf_counter()
        await asyncio.gather(*(converge(machine) for machine in agents))
        best = min(best, time.perf_counter() - began)
        assert len(taken) == len(agents)
    await asyncio.gather(*(agent.close() for agent in agents.values()))
    await controller.close()
    await serving
    return best


async def bare(url: str, seeds: dict[MachineName, str], controller_seed: str, size: int) -> float:
    some = MachineName("m0")
    declaration = declaration_of(some, size)
    signed = wire.sign(declaration, nacl.signing.SigningKey.generate())
    assert isinstance(signed, bytes)
    report = wire.encode_report(report_of(some, declaration))

    async def answer(message: Msg) -> None:
        await message.respond(signed)

    async def acknowledge(message: Msg) -> None:
        await message.respond(b"")

    controller = Client()
    await controller.connect(url, nkeys_seed_str=controller_seed)
    await controller.subscribe("kp.ask.*", cb=answer)
    await controller.subscribe("kp.report.*", cb=acknowledge)
    agents: dict[MachineName, Client] = {}
    for machine, seed in seeds.items():
        agents[machine] = Client()
        await agents[machine].connect(url, nkeys_seed_str=seed, inbox_prefix=f"_INBOX.{machine}")

    async def converge(machine: MachineName, client: Client) -> None:
        await client.request(f"kp.ask.{machine}", b"x" * 50, timeout=60)
        await client.request(f"kp.report.{machine}", report, timeout=60)

    await asyncio.gather(*(converge(*each) for each in agents.items()))
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await asyncio.gather(*(converge(*each) for each in agents.items()))
        best = min(best, time.perf_counter() - began)
    await asyncio.gather(*(client.close() for client in agents.values()))
    await controller.close()
    return best


async def main(count: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        controller = make_key()
        machines = {MachineName(f"m{number}"): make_key() for number in range(count)}
        users = [User(principal=Controller(), public_key=controller.public)]
        users += [
            User(principal=Machine(name), public_key=key.public) for name, key in machines.items()
        ]
        seeds = {name: key.seed for name, key in machines.items()}
        print(cores.take())
        heap.look_seldom()  # as a controller does, and the bare side here too
        server = EmbeddedServer(directory=root / "bus")
        await server.start(users)
        floor = await bare(server.url, seeds, controller.seed, size)
        work = await ours(server.url, seeds, controller.seed, size)
        await server.stop()
    print(f"{count} agents, {size / 1024:g} KiB each: ours {work * 1000:.0f} ms, ", end="")
    print(f"bare {floor * 1000:.0f} ms, {work / floor:.2f} times")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    agents_wanted, kilobytes = (given + [5_000, 20][len(given) :])[:2]
    asyncio.run(main(agents_wanted, kilobytes * 1024))
