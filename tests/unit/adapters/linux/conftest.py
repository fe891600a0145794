"""A machine's state root, units in it, and waits on predicates."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.host import ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName

ENTRY = EntryId("web:main@alpha")
UNIT = UnitName("server")
HOST = f"127.{64 + (os.getpid() >> 16 & 63)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""A loopback address of this process alone: a port that was free there is nobody else's then."""
DIGEST = Digest("sha256-" + "a" * 64)

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="changes accounts or mounts, which takes root"
)


def spec(*command: str, **changes: object) -> ProcessSpec:
    values: dict[str, object] = {"entry": ENTRY, "unit": UNIT, "digest": DIGEST, "env": {}}
    return ProcessSpec(command=command, **(values | changes))  # type: ignore[arg-type]


def shell(script: str, **changes: object) -> ProcessSpec:
    return spec("/bin/sh", "-c", script, **changes)


async def until(predicate: Callable[[], object], deadline_s: float = 60.0) -> None:
    end = time.monotonic() + deadline_s
    while not predicate():
        assert time.monotonic() < end, "the deadline passed"
        await asyncio.sleep(0.005)


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text[text.rindex(")") + 2] not in "ZX"


@pytest.fixture
def state(tmp_path: Path) -> StateRoot:
    root = StateRoot(tmp_path / "state")
    root.make()
    return root


@pytest.fixture
def placement(state: StateRoot) -> Placement:
    return Placement(state=state, private_roots=False, environment={"PATH": os.environ["PATH"]})


@pytest.fixture
def private(state: StateRoot) -> Placement:
    return Placement(state=state, private_roots=True, environment={"PATH": os.environ["PATH"]})


@pytest.fixture
async def processes(placement: Placement) -> AsyncIterator[LinuxProcesses]:
    units = LinuxProcesses(placement)
    yield units
    await stop_all(units)


@pytest.fixture
async def local(private: Placement) -> AsyncIterator[LinuxProcesses]:
    units = LinuxProcesses(private)
    yield units
    await stop_all(units)


async def stop_all(units: LinuxProcesses) -> None:
    for seen in units.observe():
        await units.stop(seen.entry, seen.unit, seen.digest, timeout_ms=0)
        units.forget(seen.entry, seen.unit, seen.digest)
    units.close()
