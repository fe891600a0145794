"""A real machine keeps the contract of the host's ports: `local`, and one of its own."""

import hashlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keyplane.adapters.linux.artifacts import ArtifactCache
from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.adapters.oci.layout import Layout
from keyplane.model.host import ObservedProcess
from keyplane.model.names import Digest
from tests.contract.host_contract import FilesContract, Machine, ProcessesContract


class Programs:
    def runs(self) -> tuple[str, ...]:
        return ("sleep", "60")

    def exits(self, code: int) -> tuple[str, ...]:
        return ("sh", "-c", f"exit {code}")

    def missing(self) -> tuple[str, ...]:
        return ("/no/such/program",)


@pytest.fixture(params=["private roots", "bare"])
async def machine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Machine]:
    state = StateRoot(tmp_path / "state")
    state.make()
    placement = Placement(
        state=state,
        private_roots=request.param == "private roots",
        environment={"PATH": os.environ["PATH"]},
    )
    store = Layout(tmp_path / "store")
    lives = [LinuxProcesses(placement)]

    def again() -> LinuxProcesses:
        lives.append(LinuxProcesses(placement))
        return lives[-1]

    def archive(content: str) -> Digest:
        tree = tmp_path / "trees" / hashlib.sha256(content.encode()).hexdigest()
        tree.mkdir(parents=True)
        (tree / "name").write_text(content)
        return store.put_directory(tree)

    def foreign(path: str, content: bytes) -> None:
        place = Path(f"{state.root}{path}")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(place.parent, os.W_OK):
            place.parent.chmod(0o755)  # an archive, which is writable by none
        place.write_bytes(content)

    def kill(process: ObservedProcess) -> None:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)

    yield Machine(
        files=LinuxFiles(state, state.root),
        artifacts=ArtifactCache(state, store),
        processes=lives[0],
        commands=Programs(),
        again=again,
        archive=archive,
        foreign=foreign,
        kill=kill,
    )
    for seen in lives[0].observe():
        await lives[0].stop(seen.entry, seen.unit, seen.digest, timeout_ms=0)
    for life in lives:
        life.close()


class TestLinuxFiles(FilesContract):
    pass


class TestLinuxProcesses(ProcessesContract):
    pass
