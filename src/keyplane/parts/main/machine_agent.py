"""Wires the agent of one local machine."""

import asyncio
import contextlib
import fcntl
import os
import random
import secrets
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from keyplane.adapters import clock
from keyplane.adapters.linux.artifacts import ArtifactCache
from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.linux.machine_facts import LinuxFacts
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.sources import LinuxSources
from keyplane.adapters.linux.volumes import LinuxVolumes
from keyplane.adapters.nats import keys, server
from keyplane.adapters.nats.agent_bus import NatsAgentBus
from keyplane.adapters.oci.client import Registry
from keyplane.adapters.oci.upload import VolumeUpload
from keyplane.model.names import Digest, MachineName
from keyplane.parts import agent_socket, metrics_socket, unix_socket
from keyplane.parts.agent import Agent, Host
from keyplane.parts.agent_line import Identity
from keyplane.parts.main import local
from keyplane.parts.state_dir import StateDir
from keyplane.ports.bus import BusKeyError
from keyplane.ports.store import StoreUnavailableError


class EmbeddedStore:
    """The store of this box, at the address where it is read now."""

    def __init__(self, address: Path) -> None:
        self._address = address

    async def has(self, digest: Digest) -> bool:
        return await self._registry().has(digest)

    async def read(self, digest: Digest) -> AsyncIterator[bytes]:
        async for piece in self._registry().read(digest):
            yield piece

    def _registry(self) -> Registry:
        return Registry(self.address())

    def address(self) -> str:
        try:
            return self._address.read_text(encoding="ascii")
        except OSError as error:
            raise StoreUnavailableError("no controller says where its store is yet") from error


def run(state: StateDir, machine: str) -> None:
    asyncio.run(_run(state, MachineName(machine)))


async def _run(state: StateDir, machine: MachineName) -> None:
    placement = local.placement(state, machine)
    placement.state.make()
    own = placement.state.agent
    lock = os.open(own / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # A former life that is still ending would act on the same machine.
    await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
    bus = NatsAgentBus(
        machine=machine,
        seed=keys.ensure_bus_key(own / "bus.seed").seed,
        locate=lambda: server.locate(state.bus),
    )
    try:
        pinned = (own / "controller.pub").read_text(encoding="ascii")
    except OSError as error:
        raise BusKeyError(f"{machine} does not know its controller: {error}") from error
    store = EmbeddedStore(state.store_url)
    upload = VolumeUpload(
        locate=store.address, machine=machine, key=keys.signing_key(own / "bus.seed")
    )
    host = Host(
        files=LinuxFiles(placement.state, placement.state.root),
        artifacts=ArtifactCache(placement.state, store),
        processes=LinuxProcesses(placement),
        sources=LinuxSources(placement, placement.state.root),
        facts=LinuxFacts(root=placement.state.root, path=placement.environment["PATH"]),
        volumes=LinuxVolumes(placement.state, placement.state.root, store, upload),
    )
    agent = Agent(
        identity=Identity(
            machine=machine,
            controller_key=keys.parse_verify_key(pinned),
            boot=secrets.token_hex(8),
        ),
        host=host,
        bus=bus,
        clock=clock.SystemClock(),
        spread=random.random,
    )
    task = asyncio.create_task(agent.run())
    parted = asyncio.create_task(
        # The bus or the controller may know this machine by other keys than it has.
        unix_socket.until_removed(own / "bus.seed", own / "controller.pub")
    )
    asked = asyncio.create_task(agent_socket.serve(agent, own / agent_socket.NAME))
    told = asyncio.create_task(
        metrics_socket.serve(state.metrics_socket(f"agent-{machine}"), "agent", agent.measure)
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await asyncio.wait({task, parted}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise BusKeyError(f"the keys of {machine} were removed or replaced")
        with contextlib.suppress(asyncio.CancelledError):
            task.result()
    finally:
        jobs = (task, parted, asked, told)
        for each in jobs:
            each.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        await bus.close()
        os.close(lock)
