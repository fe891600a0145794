"""The embedded server: started, found again, and never left over."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keyplane.adapters.nats.permissions import Machine, User
from keyplane.adapters.nats.server import EmbeddedServer, locate
from keyplane.ports.bus import BusServerError
from tests.contract.bus_contract import DEADLINE_S
from tests.contract.bus_world import ALPHA, Fleet, occupied, raw_client


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.fixture
async def server(fleet: Fleet) -> AsyncIterator[EmbeddedServer]:
    made = EmbeddedServer(directory=fleet.directory)
    yield made
    await made.stop()


def port_of(server: EmbeddedServer) -> int:
    return int(server.url.rpartition(":")[2])


def has_ended(descriptor: int) -> bool:
    """Of a process, by its descriptor, within a deadline."""
    return bool(select.select([descriptor], [], [], DEADLINE_S)[0])


def _says_its_pid(fleet: Fleet) -> bool:
    """The server makes the file first, and then writes into it."""
    path = fleet.directory / "nats.pid"
    return path.exists() and bool(path.read_text().strip())


async def test_it_serves_once_started(fleet: Fleet, server: EmbeddedServer) -> None:
    """On loopback, with JetStream, large messages, and a port apart from what plans hand out."""
    await server.start(fleet.users)
    assert server.url.startswith("nats://127.0.0.1:")
    assert port_of(server) not in range(20_000, 30_000)
    assert locate(fleet.directory) == server.url
    async with raw_client(server.url, fleet.seed(Machine(ALPHA))) as raw:
        assert raw.client.max_payload == 8 * 1024 * 1024
    log = (fleet.directory / "nats.log").read_text()
    assert "Starting JetStream" in log
    port = f":{port_of(server):04X}"
    found: set[str] = set()
    for _ in range(5):  # read in pieces, while others open and close theirs
        sockets = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        listening = [line.split()[1] for line in sockets.splitlines() if line.split()[3] == "0A"]
        found |= {address for address in listening if address.endswith(port)}
    assert found == {f"0100007F{port}"}


@pytest.mark.parametrize("name", ["ü ñ 😀", "q\"u'o", "tab\tline\nbell\a", "b\b\f", r"\u0041\n"])
async def test_its_directory_has_any_name(tmp_path: Path, name: str) -> None:
    fleet = Fleet(tmp_path / name)
    server = EmbeddedServer(directory=fleet.directory)
    try:
        await server.start(fleet.users)
        assert "Starting JetStream" in (fleet.directory / "nats.log").read_text()
    finally:
        await server.stop()


async def test_the_port_is_kept(fleet: Fleet, server: EmbeddedServer) -> None:
    """Over starts, and by whoever runs it next."""
    await server.start(fleet.users)
    first = server.url
    await server.stop()
    again = EmbeddedServer(directory=fleet.directory)
    await again.start(fleet.users)
    assert again.url == first
    await again.stop()


async def test_a_kept_port_that_is_taken_is_given_up(fleet: Fleet, server: EmbeddedServer) -> None:
    await server.start(fleet.users)
    first = port_of(server)
    await server.stop()
    with occupied(first):
        await server.start(fleet.users)
        assert port_of(server) != first
    async with raw_client(server.url, fleet.seed(Machine(ALPHA))):
        pass


async def test_a_given_port_that_is_taken_is_said(fleet: Fleet) -> None:
    """A port that a person chose is not given up; the next try finds everything in order."""
    with occupied() as port:
        server = EmbeddedServer(directory=fleet.directory, port=port)
        with pytest.raises(BusServerError, match=f"port {port} of the bus is taken"):
            await server.start(fleet.users)
    await server.start(fleet.users)
    assert port_of(server) == port
    await server.stop()


async def test_a_store_that_it_cannot_use_is_said(fleet: Fleet, server: EmbeddedServer) -> None:
    """With what the server itself said of it, and without a traceback."""
    (fleet.directory / "store").mkdir(parents=True)
    (fleet.directory / "store" / "jetstream").write_text("no directory")
    with pytest.raises(BusServerError, match=r"does not start.*exit 1.*storage directory"):
        await server.start(fleet.users)
    (fleet.directory / "store" / "jetstream").unlink()
    await server.start(fleet.users)


async def test_a_directory_that_it_cannot_use_is_said(tmp_path: Path, fleet: Fleet) -> None:
    (tmp_path / "bus").write_text("no directory")
    with pytest.raises(BusServerError, match=r"cannot use .*/bus"):
        await EmbeddedServer(directory=fleet.directory).start(fleet.users)


async def test_a_configuration_that_it_does_not_take_is_said(
    fleet: Fleet, server: EmbeddedServer
) -> None:
    """At a start, and at a reload: there the server goes on as it was."""
    wrong = [*fleet.users, User(principal=Machine(ALPHA), public_key="no key")]
    with pytest.raises(BusServerError, match="does not start"):
        await server.start(wrong)
    await server.start(fleet.users)
    with pytest.raises(BusServerError, match=r"does not take its users: .*nkey"):
        await server.reload(wrong)
    async with raw_client(server.url, fleet.seed(Machine(ALPHA))):
        pass
    await server.reload(fleet.users)


async def test_one_directory_has_one_server(fleet: Fleet, server: EmbeddedServer) -> None:
    await server.start(fleet.users)
    with pytest.raises(BusServerError, match="another process runs the bus"):
        await EmbeddedServer(directory=fleet.directory).start(fleet.users)
    async with raw_client(server.url, fleet.seed(Machine(ALPHA))):
        pass


async def test_its_end_is_told(fleet: Fleet, server: EmbeddedServer) -> None:
    await server.start(fleet.users)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert "signal KILL" in await asyncio.wait_for(server.exited(), DEADLINE_S)
    with pytest.raises(BusServerError, match="does not run"):
        await server.reload(fleet.users)
    await server.start(fleet.users)


STARTER = """
import asyncio, sys
from pathlib import Path
from keyplane.adapters.nats.server import EmbeddedServer
from tests.contract.bus_world import Fleet

async def main():
    fleet = Fleet(Path(sys.argv[1]))
    server = EmbeddedServer(directory=fleet.directory)
    await server.start(fleet.users)
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_it_ends_with_who_started_it(
    tmp_path: Path, fleet: Fleet, server: EmbeddedServer
) -> None:
    """However that ends; and the next one starts where it was."""
    root = Path(__file__).parents[2]
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'src'}"},
    )
    assert starter.stdout is not None
    with starter.stdout:
        left = os.pidfd_open(int(starter.stdout.readline()))
    starter.kill()
    starter.wait()
    assert has_ended(left)
    os.close(left)
    await server.start(fleet.users)


async def test_a_leftover_is_ended(fleet: Fleet, server: EmbeddedServer) -> None:
    """One that did outlive its starter: its port and its store are the next one's."""
    command = server.prepare(fleet.users)
    await server.stop()
    leftover = subprocess.Popen(command)
    left = os.pidfd_open(leftover.pid)
    async with asyncio.timeout(DEADLINE_S):
        while not _says_its_pid(fleet):
            await asyncio.sleep(0.005)
    port = port_of(server)
    await server.start(fleet.users)
    assert has_ended(left)
    assert leftover.wait() == -signal.SIGKILL
    assert port_of(server) == port
    os.close(left)


async def test_a_process_that_got_its_pid_is_left_alone(
    fleet: Fleet, server: EmbeddedServer
) -> None:
    """Pids are given anew; what has one that was a server's is somebody else's."""
    bystander = subprocess.Popen(["/bin/sleep", "600"])
    fleet.directory.mkdir(parents=True)
    (fleet.directory / "nats.pid").write_text(str(bystander.pid))
    await server.start(fleet.users)
    server.admit(fleet.users)
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


async def test_a_supervisor_runs_the_command(fleet: Fleet) -> None:
    """The other way to run it: prepared here, started by another, users let in by `admit`."""
    server = EmbeddedServer(directory=fleet.directory)
    without = [user for user in fleet.users if user.principal != Machine(ALPHA)]
    process = subprocess.Popen(server.prepare(without))
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not _says_its_pid(fleet):
                await asyncio.sleep(0.005)
        # Another process lets them in: it has no lock, and keeps the port.
        EmbeddedServer(directory=fleet.directory).admit(fleet.users)
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    async with raw_client(server.url, fleet.seed(Machine(ALPHA))):
                        break
                except Exception:  # noqa: BLE001 - not let in yet, whatever the library says
                    await asyncio.sleep(0.005)
    finally:
        process.terminate()
        process.wait()
        await server.stop()


READS_FIRST = """
import os, signal, sys, time
from pathlib import Path
configuration, pid, heard = map(Path, sys.argv[1:])
print(" ".join(configuration.read_text().split()), flush=True)
sys.stdin.readline()
signal.signal(signal.SIGHUP, lambda *_: heard.write_text(configuration.read_text()))
pid.write_text(str(os.getpid()))
while True:
    signal.pause()
"""


async def test_who_is_let_in_while_it_starts_is_told_to_it(fleet: Fleet, tmp_path: Path) -> None:
    """As it does, this one reads its configuration first, and says then where it is found."""
    server = EmbeddedServer(directory=fleet.directory)
    alpha = next(user for user in fleet.users if user.principal == Machine(ALPHA))
    server.prepare([user for user in fleet.users if user != alpha])
    files = [fleet.directory / "nats.conf", fleet.directory / "nats.pid", tmp_path / "heard"]
    telling = asyncio.create_task(server.keep_telling())
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", READS_FIRST, *map(str, files)]
    with subprocess.Popen(command, **pipes) as starting, contextlib.ExitStack() as stack:
        stack.callback(starting.kill)
        assert alpha.public_key not in starting.stdout.readline()
        server.admit(fleet.users)
        starting.stdin.write("\n")
        starting.stdin.flush()
        async with asyncio.timeout(DEADLINE_S):
            while not (files[-1].exists() and alpha.public_key in files[-1].read_text()):
                await asyncio.sleep(0.01)
    telling.cancel()
    await asyncio.wait([telling])
    await server.stop()


def test_nothing_was_started(tmp_path: Path) -> None:
    with pytest.raises(BusServerError, match="no bus was started"):
        locate(tmp_path)
