"""Wires the supervisor: which command each part is, and who is let on the bus."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence

from keyplane.adapters.linux import part_logs
from keyplane.adapters.nats import keys
from keyplane.adapters.nats.permissions import Controller, Machine, User
from keyplane.adapters.nats.server import EmbeddedServer
from keyplane.model.names import MachineName
from keyplane.parts import locks, metrics_socket
from keyplane.parts.state_dir import StateDir
from keyplane.parts.supervisor import ALREADY_RUNS, Part, Supervisor
from keyplane.ports.errors import PortError
from keyplane.rollout.declaring_values import Rights

LOG_BYTES_MAX = 8 << 20
"""A part's log is begun anew past this size, and one old one of twice that at most is kept beside it:
24 MiB a part, weeks of one that has nothing to complain of."""
LOGS_S = 5.0
"""How often the sizes of logs are looked at: a part that fails as fast as it can writes less than its
bound in between."""


def run(state: StateDir, machines: Sequence[str]) -> None:
    lock = os.open(state.supervisor_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not locks.take(lock):
        sys.exit(ALREADY_RUNS)
    asyncio.run(_supervise(state, machines, lock))


class StateRemovedError(PortError):
    """What a part would be started on is not there any more."""


def _check_there(state: StateDir, lock: int) -> None:
    """Nothing is put back of a state that was removed, or moved elsewhere, under its supervisor."""
    held = os.fstat(lock)
    with contextlib.suppress(FileNotFoundError):
        there = state.supervisor_lock.stat()
        if (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino):
            return
    raise StateRemovedError(f"{state.root} was removed or moved")


async def _supervise(state: StateDir, machines: Sequence[str], lock: int) -> None:
    server = EmbeddedServer(directory=state.bus)
    admitted: list[User] = []
    known: list[str] = []
    rights: dict[str, Rights] = {}

    def admit(names: Sequence[str]) -> None:
        _check_there(state, lock)
        known[:] = names
        admitted[:] = _users(state, names, rights)
        server.admit(admitted)

    def permit(found: Mapping[str, Rights]) -> None:
        if found != rights:
            rights.clear()
            rights.update(found)
            admit(list(known))

    def part(kind: str, *words: str) -> Part:
        def command() -> list[str]:
            _check_there(state, lock)
            # A key that was lost is made anew, and its holder let in by that.
            if _users(state, known, rights) != admitted:
                admit(list(known))
            return [sys.executable, "-m", "keyplane.parts.main", kind, str(state.root), *words]

        name = " ".join((kind, *words))
        log = state.logs / f"{'-'.join((kind, *words))}.log"
        return Part(name=name, command=command, log_file=log)

    def bus() -> list[str]:
        _check_there(state, lock)
        return server.prepare(admitted)

    supervisor = Supervisor(
        bus=Part(name="bus", command=bus, log_file=state.logs / "bus.log"),
        controller=part("controller"),
        agent=lambda machine: part("agent", machine),
        admit=admit,
        permit=permit,
    )
    beside = [
        asyncio.create_task(_bound_logs(state)),
        asyncio.create_task(server.keep_telling()),
        asyncio.create_task(
            metrics_socket.serve(
                state.metrics_socket("supervisor"), "supervisor", supervisor.measure
            )
        ),
    ]
    try:
        await supervisor.run(state.supervisor_socket, machines, state.supervisor_lock)
    finally:
        for each in beside:
            each.cancel()
        await asyncio.wait(beside)
        # What is left are parts that were killed, and nobody answers there.
        for left in state.metrics.glob("*.sock"):
            left.unlink(missing_ok=True)


async def _bound_logs(state: StateDir) -> None:
    while True:
        for log in state.logs.glob("*.log"):
            await asyncio.to_thread(part_logs.bound, log, LOG_BYTES_MAX)
        await asyncio.sleep(LOGS_S)


def _users(state: StateDir, machines: Sequence[str], rights: Mapping[str, Rights]) -> list[User]:
    """The principals of this fleet here; the key of each is made with its first start."""
    controller = keys.ensure_bus_key(state.controller / "bus.seed")
    signing = keys.ensure_signing_key(state.controller / "signing.key")
    users = [User(principal=Controller(), public_key=controller.public)]
    for name in machines:
        folder = state.machine(name)
        key = keys.ensure_bus_key(folder / "agent" / "bus.seed")
        keys.pin(folder / "agent" / "controller.pub", signing.verify_key)
        own = rights.get(name, Rights())
        users.append(
            User(
                principal=Machine(MachineName(name)),
                public_key=key.public,
                says=own.says,
                reads=own.reads,
            )
        )
    return users
