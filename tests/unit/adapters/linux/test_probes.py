"""Health probes against real servers and commands."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.model.declaration import Health

from .conftest import alive, needs_root, spec

UNIT_SPEC = spec("sleep", "60")
LONG_MS = 60_000
"""Of what answers at once, on a machine that stands still now and then."""


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A server that answers `/ok`, `/moved`, `/bad`; says nonsense at `/no`; hangs else."""
    answers = {b"/ok?a=1": b"HTTP/1.1 204 Yes", b"/moved": b"HTTP/1.1 302 There\r\nLocation: /bad"}
    answers |= {b"/bad": b"HTTP/1.1 500 No", b"/no": b"SMTP ready"}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                asked = (await reader.readline()).split(b" ")
                answer = answers.get(asked[1]) if len(asked) > 1 else None
                if answer is not None:
                    writer.write(answer + b"\r\n\r\n")
                    await writer.drain()
                else:
                    await reader.read()
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
def closed() -> Iterator[str]:
    """An address that refuses: taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


async def test_http(processes: LinuxProcesses, port: int, closed: str) -> None:
    """2xx and 3xx are healthy; no redirection is followed; what is wrong is said."""
    base = f"http://127.0.0.1:{port}"

    async def probe(path: str) -> str | None:
        return await processes.probe(Health(http=base + path, timeout_ms=LONG_MS), UNIT_SPEC)

    assert await probe("/ok?a=1") is None
    assert await probe("/moved") is None
    assert await probe("/bad") == f"{base}/bad: status 500"
    assert await probe("/no") == f"{base}/no: no answer of HTTP"
    nobody = f"http://{closed}/"
    refused = await processes.probe(Health(http=nobody, timeout_ms=LONG_MS), UNIT_SPEC)
    assert refused == f"{nobody}: connection refused"
    assert "no http URL" in (await processes.probe(Health(http="ftp://x/"), UNIT_SPEC) or "")


async def test_a_probe_keeps_to_its_timeout(processes: LinuxProcesses, port: int) -> None:
    health = Health(http=f"http://127.0.0.1:{port}/hangs", timeout_ms=50)
    async with asyncio.timeout(LONG_MS / 1000):
        assert await processes.probe(health, UNIT_SPEC) == "no answer within 50 ms"


async def test_tcp(processes: LinuxProcesses, port: int, closed: str) -> None:
    open_ = Health(tcp=f"127.0.0.1:{port}", timeout_ms=LONG_MS)
    assert await processes.probe(open_, UNIT_SPEC) is None
    refused = await processes.probe(Health(tcp=closed, timeout_ms=LONG_MS), UNIT_SPEC)
    assert refused == f"{closed}: connection refused"
    assert "no HOST:PORT" in (await processes.probe(Health(tcp="x"), UNIT_SPEC) or "")


@needs_root
async def test_a_command_runs_as_the_unit(processes: LinuxProcesses) -> None:
    """In its environment and as its account."""
    unit = spec("true", env={"A": "1"}, user="nobody")

    async def probe(*command: str) -> str | None:
        return await processes.probe(Health(command=command, timeout_ms=LONG_MS), unit)

    assert await probe("/bin/sh", "-c", "test $A$(id -un) = 1nobody") is None
    assert await probe("/bin/sh", "-c", "echo why; exit 3") == "/bin/sh: exit 3: why"
    missing = await probe("/no/such")
    assert missing == "/no/such: exit 127: cannot execute /no/such: No such file or directory"


async def test_a_command_is_killed_with_all_that_it_started(
    processes: LinuxProcesses, tmp_path: Path
) -> None:
    """At the timeout, and what it leaves behind in the background at its end."""
    child = tmp_path / "child"
    starts = f"setsid sleep 60 & echo $! > {child}"
    for timeout_ms in (300, 3_000, 30_000):
        hangs = Health(command=("/bin/sh", "-c", f"{starts}; wait"), timeout_ms=timeout_ms)
        told = await processes.probe(hangs, UNIT_SPEC)
        assert told == f"/bin/sh: no end within {timeout_ms} ms"
        if child.exists() and child.read_text():  # else it had no turn before its end
            break
    assert not alive(int(child.read_text()))
    leaves = Health(command=("/bin/sh", "-c", starts), timeout_ms=LONG_MS)
    assert await processes.probe(leaves, UNIT_SPEC) is None
    assert not alive(int(child.read_text()))
