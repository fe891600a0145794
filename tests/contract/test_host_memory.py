"""The machine in memory keeps the contract of the host's ports."""

import pytest

from keyplane.model.host import ObservedProcess
from keyplane.model.names import Digest
from keyplane.testing.host import MemoryHost
from tests.contract.host_contract import FilesContract, Machine, ProcessesContract, digest


class Scripted:
    def runs(self) -> tuple[str, ...]:
        return ("run",)

    def exits(self, code: int) -> tuple[str, ...]:
        return ("exit", str(code))

    def missing(self) -> tuple[str, ...]:
        return ("missing",)


@pytest.fixture
def machine() -> Machine:
    host = MemoryHost()

    def archive(content: str) -> Digest:
        made = digest(f"archive {content}")
        host.artifacts.stored.add(made)
        return made

    def kill(process: ObservedProcess) -> None:
        assert host.processes.end(process.entry, process.unit, signal=9)

    return Machine(
        files=host.files,
        artifacts=host.artifacts,
        processes=host.processes,
        commands=Scripted(),
        again=lambda: host.processes,
        archive=archive,
        foreign=host.files.put,
        kill=kill,
    )


class TestMemoryFiles(FilesContract):
    pass


class TestMemoryProcesses(ProcessesContract):
    pass
