"""Whose port it is: real sockets of real processes, in the test's own and under shims."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator

import pytest

from keyplane.adapters.linux import listeners, socket_tables
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.socket_tables import TCP
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.declaration import Health
from keyplane.model.names import EntryId
from keyplane.ports.host import PortHeldError

from .conftest import HOST, spec, until

LISTEN = """
import os, socket, sys, time
if sys.argv[3:] == ["below"]:
    if os.fork():
        time.sleep(600)
    os.setsid()
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listens", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def held(address: str, port: int = 0) -> Iterator[int]:
    """This test's own process listens there."""
    with socket.create_server((address, port)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free() -> int:
    with held(HOST) as port:
        return port


def listening(port: int, *words: str, **changes: object):
    command = (sys.executable, "-c", LISTEN, HOST, str(port), *words)
    return spec(*command, ports=(port,), address=HOST, **changes)


async def test_a_unit_is_not_started_while_somebody_else_holds_its_port(
    processes: LinuxProcesses,
) -> None:
    """The holder is named by pid and command; once it lets go, the unit starts."""
    with held(HOST) as port:
        with pytest.raises(PortHeldError) as found:
            await processes.start(listening(port))
        assert f"port {port} is held by pid {os.getpid()} (" in str(found.value)
        assert processes.observe() == ()
    assert (await processes.start(listening(port))).running


async def test_a_listener_on_all_addresses_holds_the_port_of_each(
    processes: LinuxProcesses,
) -> None:
    with held("0.0.0.0") as port, pytest.raises(PortHeldError):
        await processes.start(listening(port))


async def test_a_listener_on_another_address_holds_nothing(processes: LinuxProcesses) -> None:
    """Machines of one computer have the same ports, each on its own address."""
    with held("127.0.0.99") as port:
        assert (await processes.start(listening(port))).running


async def test_another_unit_of_the_entry_may_hold_it(processes: LinuxProcesses, free: int) -> None:
    """Ports are the entry's; a unit of another entry is somebody else, and is named."""
    first = await processes.start(listening(free))
    await until(lambda: listeners.at((free,), HOST))
    # One that does not take it itself, as that would end it.
    sidecar = spec("sleep", "600", unit="sidecar", ports=(free,), address=HOST)
    assert (await processes.start(sidecar)).running
    with pytest.raises(PortHeldError) as found:
        await processes.start(listening(free, entry=EntryId("other:main@alpha")))
    assert f"pid {first.pid}" in str(found.value)
    assert "of web:main@alpha" in str(found.value)


@contextlib.contextmanager
def bound(address: str) -> Iterator[int]:
    """This test's own process has a port of UDP there."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.bind((address, 0))
        yield one.getsockname()[1]


@pytest.mark.parametrize("address", [HOST, "0.0.0.0", "::"], ids=["its", "all", "all of 6"])
async def test_a_port_of_udp_that_somebody_else_has_is_found_before_a_start(
    processes: LinuxProcesses, address: str
) -> None:
    with bound(address) as port:
        wanted = spec("sleep", "600", udp_ports=(port,), address=HOST)
        with pytest.raises(PortHeldError) as found:
            await processes.start(wanted)
        assert f"port {port} of UDP is held by pid {os.getpid()} (" in str(found.value)
        assert processes.observe() == ()
    assert (await processes.start(wanted)).running


async def test_a_port_of_one_protocol_is_none_of_the_other(processes: LinuxProcesses) -> None:
    with bound(HOST) as of_udp, held(HOST) as one, held(HOST) as other:
        of_tcp = one if one != of_udp else other
        wanted = spec("sleep", "600", ports=(of_udp,), udp_ports=(of_tcp,), address=HOST)
        assert (await processes.start(wanted)).running


@pytest.mark.parametrize("health", ["tcp", "http"])
async def test_an_answer_of_somebody_else_is_not_the_units_health(
    processes: LinuxProcesses, free: int, health: str
) -> None:
    unit = spec("sleep", "600", ports=(free,), address=HOST)
    await processes.start(unit)
    with held(HOST, free):
        problem = await processes.probe(Health(tcp=f"{HOST}:{free}", timeout_ms=60_000), unit)
        assert problem is not None
        assert f"port {free} answers, but is held by pid {os.getpid()} (" in problem
        target = f"http://{HOST}:{free}/" if health == "http" else f"{HOST}:{free}"
        assert listeners.answers(target, (free,), None, lambda: ()) is not None
        # It is not judged what is no port of its entry.
        assert listeners.answers(target, (free + 1,), None, lambda: ()) is None


@pytest.mark.parametrize("words", [(), ("below",)])
async def test_an_answer_of_the_unit_or_of_its_children_is(
    processes: LinuxProcesses, free: int, words: tuple[str, ...]
) -> None:
    """A child in a session of its own is the unit's, as its shim is its ancestor."""
    unit = listening(free, *words)
    await processes.start(unit)
    await until(lambda: listeners.at((free,), HOST))
    assert await processes.probe(Health(tcp=f"{HOST}:{free}", timeout_ms=60_000), unit) is None


def test_who_ends_while_he_is_looked_for_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """His port is free by then, and nobody could be named."""
    server = socket.create_server((HOST, 0))
    port = server.getsockname()[1]

    def ends(_: int) -> Iterator[int]:
        server.close()
        yield from ()

    with monkeypatch.context() as patch:
        patch.setattr(listeners, "_holders", lambda _: iter(()))
        assert "cannot be looked into" in str(listeners.foreign({TCP: (port,)}, HOST, ()))
        assert "cannot be looked into" in str(
            listeners.answers(f"{HOST}:{port}", (port,), None, lambda: ())
        )
        patch.setattr(listeners, "_holders", ends)
        assert listeners.foreign({TCP: (port,)}, HOST, ()) is None
        server = socket.create_server((HOST, port))
        assert listeners.answers(f"{HOST}:{port}", (port,), None, lambda: ()) is None


def test_what_listens_is_read_of_both_families() -> None:
    with held(HOST) as port:
        assert [each.port for each in listeners.at((port,), HOST)] == [port]
        assert listeners.at((port,), "a-name.example") == []
    with (
        contextlib.suppress(OSError),
        socket.create_server(("::1", 0), family=socket.AF_INET6) as server,
    ):
        port = server.getsockname()[1]
        assert [each.port for each in listeners.at((port,), "::1")] == [port]


async def test_a_unit_is_where_its_fleet_was_moved_to(
    processes: LinuxProcesses, state: StateRoot, free: int
) -> None:
    """It is known by its run directory, as that stands by now; also one that was removed."""
    await processes.start(listening(free))
    await until(lambda: listeners.at((free,), HOST))
    [(port, mark)] = listeners.marked((free,), HOST, socket_tables.TCP)
    assert (port, mark.parent.parent.parent) == (free, state.run)
    moved = state.path.with_name("moved")
    state.path.rename(moved)
    try:
        assert next(listeners.marked((free,), HOST, socket_tables.TCP)) == (
            free, moved / mark.relative_to(state.path),
        )  # fmt: skip
    finally:
        moved.rename(state.path)
