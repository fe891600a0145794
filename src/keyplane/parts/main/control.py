"""Wires a controller: its inventory, its bus, its store, and the sockets it answers on."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import nacl.signing
import uvicorn
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from keyplane.adapters import clock, directory
from keyplane.adapters.nats import keys, server
from keyplane.adapters.nats.controller_bus import NatsControllerBus
from keyplane.adapters.oci import intake, layout, serve
from keyplane.adapters.revision import RevisionTree
from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.adapters.starlark.runner import Runner
from keyplane.documents.evaluation import Run
from keyplane.documents.reading import Reading
from keyplane.documents.text import Unreadable
from keyplane.journal import Journal
from keyplane.model import duration, names
from keyplane.model.names import MachineName
from keyplane.model.volumes import OrderKind
from keyplane.parts import (
    control_api,
    leasing,
    metrics_socket,
    supervisor_client,
    unix_socket,
)
from keyplane.parts.collecting import Collecting
from keyplane.parts.controller import Controller
from keyplane.parts.main import heap
from keyplane.parts.offering import Offering
from keyplane.parts.peer_protocol import PeerProtocol
from keyplane.parts.planning import Planning
from keyplane.parts.state_dir import StateDir
from keyplane.ports import fact_order
from keyplane.ports.errors import PermanentError, TransientError
from keyplane.ports.inventory import Inventory
from keyplane.ports.store import Pack, StoreUnavailableError
from keyplane.rollout.declaring_values import Rights

log = Journal(__name__.removeprefix("keyplane."))

HOLD = "KEYPLANE_FACT_HOLD"
"""Says how long a fact has to hold, as a duration, where a minute is too short or too long."""
HOLDER = "embedded"
ANSWERED_S = 2
"""How long an answer that is being given may still take when the controller ends."""
STORE_HOST = "127.0.0.1"
"""The embedded store is read by the machines of this box only."""


def run(state: StateDir) -> None:
    heap.look_seldom()
    asyncio.run(_run(state))


async def _run(state: StateDir) -> None:
    lock = await _alone(state)
    inventory = await SqlInventory.open(f"sqlite:///{state.inventory}")
    bus = NatsControllerBus(
        seed=keys.ensure_bus_key(state.controller / "bus.seed").seed,
        locate=lambda: server.locate(state.bus),
    )
    store = layout.Layout(state.store)
    system_clock = clock.SystemClock()
    offering = Offering(
        inventory=inventory,
        bus=bus,
        clock=system_clock,
        key=keys.ensure_signing_key(state.controller / "signing.key"),
    )
    with Runner() as evaluator:
        controller = Controller(
            inventory=inventory,
            planning=Planning(read=_reader(evaluator.run), archive=_archive),
            offering=offering,
            store=store,
            clock=system_clock,
            agents=lambda machines: supervisor_client.ask(
                state.supervisor_socket, {"do": "agents", "machines": list(machines)}
            ),
            permit=lambda rights: supervisor_client.ask(
                state.supervisor_socket, {"do": "permit", "rights": _rights(rights)}
            ),
            hold_ms=_hold_ms(),
        )
        collecting = Collecting(
            inventory=inventory,
            offering=offering,
            shelf=store,
            controller=controller,
            clock=system_clock,
        )
        try:
            await _clear(store)
            await _until_told(state, controller, collecting, inventory, bus, store)
        finally:
            await bus.close()
            await inventory.release_lease()
            await inventory.close()
            os.close(lock)


def _hold_ms() -> int:
    """How long a fact has to hold here before plans are made by it."""
    stated = os.environ.get(HOLD)
    if stated is None:
        return fact_order.HOLD_MS
    parsed = duration.parse(stated)
    if parsed is None:
        log.warning("no duration, so the usual one holds", variable=HOLD, value=stated)
        return fact_order.HOLD_MS
    return parsed.milliseconds


async def _until_told(  # noqa: PLR0913, PLR0917  # what it is made of
    state: StateDir,
    controller: Controller,
    collecting: Collecting,
    inventory: Inventory,
    bus: NatsControllerBus,
    store: layout.Layout,
) -> None:
    """Run until TERM, or until something that must not end has ended."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)

    async def measure() -> None:
        await controller.measure()
        await collecting.measure()

    await leasing.take(inventory, clock.SystemClock(), HOLDER)
    state.control_socket.parent.mkdir(mode=0o700, exist_ok=True)
    with contextlib.ExitStack() as stack:
        control = stack.enter_context(unix_socket.listen(state.control_socket))
        reading = stack.enter_context(_store_socket(state))
        jobs = [
            controller.run(),
            collecting.run(),
            metrics_socket.serve(state.metrics_socket("controller"), "controller", measure),
            bus.serve(
                on_ask=controller.on_ask,
                on_report=controller.on_report,
                on_facts=controller.facts.on_facts,
                on_beat=controller.on_beat,
            ),
            _serve(control_api.application(controller, collecting, told), control, PeerProtocol),
            _serve(serve.application(store, _taking_in(state, inventory, store)), reading),
            _keep_lease(inventory),
            _until_lost(state),
        ]
        tasks = [asyncio.create_task(job) for job in jobs]
        waiting = asyncio.create_task(told.wait())
        try:
            done, _ = await asyncio.wait({*tasks, waiting}, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {waiting}:
                task.result()
        finally:
            told.set()
            for task in (*tasks, waiting):
                task.cancel()
            await asyncio.wait({*tasks, waiting})


def _taking_in(state: StateDir, inventory: Inventory, store: layout.Layout) -> list[Route]:
    """Where the machines of this box put what their volumes hold."""

    def key(machine: str) -> nacl.signing.VerifyKey | None:
        seed = state.machine(machine) / "agent" / "bus.seed"
        known = names.is_name(machine) and seed.is_file()
        return keys.signing_key(seed).verify_key if known else None

    async def expected(machine: str, entry: str, number: int) -> bool:
        return any(
            (each.entry, each.number) == (entry, number)
            for each in await inventory.volume_orders()
            if each.kind is not OrderKind.TAKE and each.entry.endswith(f"@{machine}")
        )

    return intake.routes(store, key, expected)


async def _alone(state: StateDir) -> int:
    """Wait until no other process is this fleet's embedded controller; holds that as long as open.

    So the lease can be taken under one name in every life: a controller that was killed is
    followed at once, where a stranger would wait until its lease ran out.
    """
    lock = os.open(state.controller / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
    return lock


async def _clear(store: layout.Layout) -> None:
    """Of what a life before this was packing when it was killed."""
    try:
        await asyncio.to_thread(store.clear)
    except StoreUnavailableError as error:
        log.warning("the store could not be cleared", problem=str(error))


async def _keep_lease(inventory: Inventory) -> None:
    now = clock.SystemClock().now_ms
    while True:
        await asyncio.sleep(leasing.LEASE_MS / 3000)
        try:
            until_ms = now() + leasing.LEASE_MS
            if not await inventory.take_lease(HOLDER, now_ms=now(), until_ms=until_ms):
                log.error("another controller took the lease")
                return
        except TransientError as error:
            log.warning("the lease could not be renewed", problem=str(error))


async def _until_lost(state: StateDir) -> None:
    """Return once people find no controller here: another life of it makes its files anew."""
    needed = (
        state.control_socket,
        state.store_url,
        state.controller / "bus.seed",
        state.controller / "signing.key",
    )
    await unix_socket.until_removed(*needed)
    log.error("the socket, the store's address or a key was removed")


def _reader(run: Run) -> Callable[[Mapping[str, bytes]], Reading]:
    def read(files: Mapping[str, bytes]) -> Reading:
        return directory.documents_of(files, run)

    return read


def _archive(files: Mapping[str, bytes], folder: str, path: str) -> Pack:
    """Sends the tar of a directory of the text."""

    def send(sink: Callable[[bytes], object]) -> None:
        found = RevisionTree(files).pack(folder, path, sink)
        if isinstance(found, Unreadable):
            raise PermanentError(f"cannot pack {folder}/{path}: {found.message}")

    return send


def _rights(rights: Mapping[MachineName, Rights]) -> dict[str, Any]:
    return {
        machine: {"says": list(each.says), "reads": list(each.reads)}
        for machine, each in rights.items()
    }


def _store_socket(state: StateDir) -> socket.socket:
    """Listen where machines read artifacts, and write down where that is."""
    listener = socket.create_server((STORE_HOST, 0))
    listener.settimeout(0)
    url = f"http://{STORE_HOST}:{listener.getsockname()[1]}"
    draft = Path(f"{state.store_url}.new")
    draft.write_text(url, encoding="ascii")
    draft.replace(state.store_url)
    return listener


class _Server(uvicorn.Server):
    """Leaves signals to the part that it serves in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(
    application: ASGIApp, listener: socket.socket, protocol: type[H11Protocol] = H11Protocol
) -> None:
    """Serve until cancelled; answers that are being given are then given to their end."""
    config = uvicorn.Config(
        application,
        http=protocol,
        log_level="warning",
        lifespan="off",
        access_log=False,
        timeout_graceful_shutdown=ANSWERED_S,
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
