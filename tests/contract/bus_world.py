"""A real bus with a controller and two machines; also without its permissions, to show attacks."""

import asyncio
import contextlib
import errno
import json
import os
import random
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from keyplane.adapters.nats import keys
from keyplane.adapters.nats.agent_bus import NatsAgentBus
from keyplane.adapters.nats.controller_bus import NatsControllerBus
from keyplane.adapters.nats.permissions import Controller, Machine, Principal, User
from keyplane.adapters.nats.server import EmbeddedServer, locate
from keyplane.model.names import MachineName

ALPHA = MachineName("alpha")
BETA = MachineName("beta")
ALPHAS = "vpn:node@alpha/provides/peer/address"
BETAS = "vpn:node@beta/provides/peer/address"
HIDDEN = "vault:main@beta/provides/door/code"
"""Beta says it, and alpha does not read it."""


class Fleet:
    """Keys and users of a controller, alpha and beta."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "bus"
        self.keys = {
            principal: keys.ensure_bus_key(root / "keys" / name)
            for name, principal in [
                ("controller", Controller()),
                ("alpha", Machine(ALPHA)),
                ("beta", Machine(BETA)),
            ]
        }
        rights = {
            Machine(ALPHA): ((ALPHAS,), (BETAS,)),
            Machine(BETA): ((BETAS, HIDDEN), (ALPHAS,)),
        }
        self.users = [
            User(
                principal=principal,
                public_key=key.public,
                says=rights.get(principal, ((), ()))[0],
                reads=rights.get(principal, ((), ()))[1],
            )
            for principal, key in self.keys.items()
        ]

    def locate(self) -> str:
        return locate(self.directory)

    def seed(self, principal: Principal) -> str:
        return self.keys[principal].seed


class NatsWorld:
    """The contract's world: an embedded server that can be killed and started again."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.server = EmbeddedServer(directory=fleet.directory)
        self.open: list[NatsAgentBus | NatsControllerBus] = []

    def controller(self) -> NatsControllerBus:
        bus = NatsControllerBus(seed=self.fleet.seed(Controller()), locate=self.fleet.locate)
        self.open.append(bus)
        return bus

    def agent(self, machine: MachineName) -> NatsAgentBus:
        seed = self.fleet.seed(Machine(machine))
        bus = NatsAgentBus(machine=machine, seed=seed, locate=self.fleet.locate)
        self.open.append(bus)
        return bus

    async def crash(self) -> None:
        assert self.server.pid is not None
        os.kill(self.server.pid, signal.SIGKILL)
        assert "signal KILL" in await self.server.exited()

    async def restart(self) -> None:
        await self.server.start(self.fleet.users)

    async def close(self) -> None:
        for bus in self.open:
            await bus.close()
        await self.server.stop()


@asynccontextmanager
async def nats_world(root: Path) -> AsyncIterator[NatsWorld]:
    world = NatsWorld(Fleet(root))
    await world.restart()
    try:
        yield world
    finally:
        await world.close()


HELD = range(30_000, 32_000)
"""Given out to nobody: not by the bus, by plans, or by the kernel."""


@contextlib.contextmanager
def occupied(port: int | None = None):
    """A port that another process listens at."""
    for each in (port,) if port is not None else random.sample(HELD, len(HELD)):
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind(("127.0.0.1", each))
                holder.listen(1)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                if port is None:
                    continue
            yield each  # where a port was named, somebody else's may have been quicker
            return


BUSY_S = 60
"""The library gives a server two seconds to take a client in, which a busy machine may stand still."""


@dataclass
class Raw:
    """A bare client: what a machine that runs other code than ours can do with its key."""

    client: Client
    violations: list[str] = field(default_factory=list)
    received: list[Msg] = field(default_factory=list)

    async def publish(self, subject: str, data: bytes, **more: Any) -> None:
        """Returns once the server has dealt with it."""
        await self.client.publish(subject, data, **more)
        await self.settle()

    async def subscribe(self, subject: str, **more: Any) -> None:
        async def take(message: Msg) -> None:
            self.received.append(message)

        await self.client.subscribe(subject, cb=take, **more)
        await self.settle()

    async def settle(self) -> None:
        """The library's ping overtakes what it has yet to write; the second one does not."""
        await self.client.flush(BUSY_S)
        await self.client.flush(BUSY_S)

    async def saw(self, holds: Callable[[Msg], bool]) -> bool:
        """Whether such a message came among what the server has sent until now."""
        await self.settle()
        return any(holds(message) for message in self.received)


@asynccontextmanager
async def raw_client(url: str, seed: str) -> AsyncIterator[Raw]:
    client = Client()
    raw = Raw(client)

    async def note(err: Exception) -> None:
        raw.violations.append(str(err))

    try:
        await client.connect(
            url,
            nkeys_seed_str=seed,
            error_cb=note,
            allow_reconnect=False,
            connect_timeout=BUSY_S,
        )
        yield raw
    finally:
        await client.close()


@asynccontextmanager
async def tampered_server(
    fleet: Fleet, change: Callable[[dict[str, Any]], None]
) -> AsyncIterator[str]:
    """A server with our configuration, changed: the URL."""
    server = EmbeddedServer(directory=fleet.directory)
    command = server.prepare(fleet.users)
    path = fleet.directory / "nats.conf"
    configuration = json.loads(path.read_text())
    change(configuration)
    path.write_text(json.dumps(configuration))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", configuration["port"])
                except OSError:
                    assert process.poll() is None
                    await asyncio.sleep(0.005)
                else:
                    writer.close()
                    await writer.wait_closed()
                    break
        yield server.url
    finally:
        process.terminate()
        process.wait(60)
        await server.stop()
