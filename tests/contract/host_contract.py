"""What every machine does for its agent, the one in memory and a real one.

Subclasses give the fixture `machine`.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pytest

from keyplane.model.declaration import Health, Reload
from keyplane.model.host import ObservedProcess, PathKind, ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.ports.errors import PermanentError, PortError
from keyplane.ports.host import Artifacts, Files, HostError, Processes

ENTRY = EntryId("web:main@alpha")
UNIT = UnitName("server")
DEADLINE_S = 60.0
TIMEOUT_MS = 60_000


def digest(text: str) -> Digest:
    return Digest(f"sha256-{hashlib.sha256(text.encode()).hexdigest()}")


ONE, TWO = digest("unit 1"), digest("unit 2")


class Commands(Protocol):
    """Commands of this machine that do what is asked."""

    def runs(self) -> tuple[str, ...]:
        """Runs until it is stopped."""
        ...

    def exits(self, code: int) -> tuple[str, ...]: ...

    def missing(self) -> tuple[str, ...]:
        """There is no such program."""
        ...


@dataclass(frozen=True, kw_only=True)
class Machine:
    files: Files
    artifacts: Artifacts
    processes: Processes
    commands: Commands
    again: Callable[[], Processes]
    """The processes, as the next life of the agent finds them."""
    archive: Callable[[str], Digest]
    """Puts an archive with one file `name` of this content into the store."""
    foreign: Callable[[str, bytes], None]
    """Somebody else writes a file there."""
    kill: Callable[[ObservedProcess], None]
    """Somebody else kills the process."""


def spec(command: tuple[str, ...], *, of: Digest = ONE, unit: UnitName = UNIT) -> ProcessSpec:
    return ProcessSpec(entry=ENTRY, unit=unit, digest=of, command=command, env={})


async def next_end(processes: Processes) -> ObservedProcess:
    async with asyncio.timeout(DEADLINE_S):
        return await processes.exited()


class FilesContract:
    def test_what_is_written_is_seen(self, machine: Machine) -> None:
        files = machine.files
        assert files.observe("/etc/app/conf").kind is PathKind.ABSENT
        files.write("/etc/app/conf", b"one", mode="0640", owner=None, group=None)
        seen = files.observe("/etc/app/conf")
        assert (seen.kind, seen.digest, seen.mode) == (PathKind.FILE, digest("one"), "0640")
        assert files.observe("/etc/app").kind is PathKind.DIRECTORY
        files.write("/etc/app/conf", b"two", mode="0400", owner=None, group=None)
        seen = files.observe("/etc/app/conf")
        assert (seen.digest, seen.mode) == (digest("two"), "0400")

    def test_a_directory_is_made_and_changed_and_keeps_its_content(self, machine: Machine) -> None:
        files = machine.files
        files.make_directory("/srv/app", mode="0750", owner=None, group=None)
        files.write("/srv/app/x", b"x", mode="0644", owner=None, group=None)
        files.make_directory("/srv/app", mode="0700", owner=None, group=None)
        seen = files.observe("/srv/app")
        assert (seen.kind, seen.mode) == (PathKind.DIRECTORY, "0700")
        assert files.observe("/srv/app/x").digest == digest("x")

    def test_removing(self, machine: Machine) -> None:
        """Files and empty directories go; what is not empty stays; nothing there is no error."""
        files = machine.files
        files.make_directory("/srv/app", mode="0755", owner=None, group=None)
        machine.foreign("/srv/app/x", b"theirs")
        with pytest.raises(HostError):
            files.remove("/srv/app")
        assert files.observe("/srv/app/x").digest == digest("theirs")
        files.remove("/srv/app/x")
        files.remove("/srv/app")
        assert files.observe("/srv/app").kind is PathKind.ABSENT
        files.remove("/srv/app")
        files.remove("/srv/app/x")

    def test_one_kind_does_not_replace_another(self, machine: Machine) -> None:
        files = machine.files
        files.make_directory("/d", mode="0755", owner=None, group=None)
        machine.foreign("/f", b"theirs")
        with pytest.raises(HostError):
            files.write("/d", b"x", mode="0644", owner=None, group=None)
        with pytest.raises(HostError):
            files.make_directory("/f", mode="0755", owner=None, group=None)
        with pytest.raises(HostError):
            files.write("/f/below", b"x", mode="0644", owner=None, group=None)
        assert files.observe("/f").digest == digest("theirs")
        assert files.observe("/d").kind is PathKind.DIRECTORY

    async def test_an_archive_is_fetched_unpacked_replaced_and_removed(
        self, machine: Machine
    ) -> None:
        files, artifacts = machine.files, machine.artifacts
        one, two = machine.archive("one"), machine.archive("two")
        with pytest.raises(PortError):
            files.unpack(one, "/opt/app")
        await artifacts.fetch(one)
        await artifacts.fetch(one)
        assert artifacts.present() == {one}
        files.unpack(one, "/opt/app")
        seen = files.observe("/opt/app")
        assert seen.kind in {PathKind.ARCHIVE, PathKind.DIRECTORY}
        if seen.kind is PathKind.ARCHIVE:
            assert seen.digest == one
        machine.foreign("/opt/app/left", b"x")
        await artifacts.fetch(two)
        files.unpack(two, "/opt/app")
        assert files.observe("/opt/app/left").kind is PathKind.ABSENT
        files.remove("/opt/app")
        assert files.observe("/opt/app").kind is PathKind.ABSENT
        artifacts.remove(one)
        assert artifacts.present() == {two}

    async def test_an_archive_that_is_not_in_the_store_cannot_be_fetched(
        self, machine: Machine
    ) -> None:
        with pytest.raises(PermanentError):
            await machine.artifacts.fetch(digest("nowhere"))
        assert machine.artifacts.present() == frozenset()

    def test_an_archive_takes_no_directory_of_others(self, machine: Machine) -> None:
        machine.foreign("/opt/app/theirs", b"x")
        with pytest.raises(PortError):
            machine.files.unpack(machine.archive("one"), "/opt/app")
        assert machine.files.observe("/opt/app/theirs").digest == digest("x")

    def test_state_is_read_back(self, machine: Machine) -> None:
        files = machine.files
        assert files.read_state("ledger") is None
        files.write_state({"ledger": b"one", "declaration": b"d"})
        files.write_state({"ledger": b"two"})
        assert files.read_state("ledger") == b"two"
        assert files.read_state("declaration") == b"d"


class ProcessesContract:
    async def test_what_was_started_runs_and_is_not_started_twice(self, machine: Machine) -> None:
        processes = machine.processes
        assert processes.observe() == ()
        asked = spec(machine.commands.runs())
        started = await processes.start(asked)
        assert (started.entry, started.unit, started.digest) == (ENTRY, UNIT, ONE)
        assert started.running
        assert started.pid is not None
        assert await processes.start(asked) == started
        assert processes.observe() == (started,)

    async def test_a_next_life_finds_it(self, machine: Machine) -> None:
        started = await machine.processes.start(spec(machine.commands.runs()))
        again = machine.again()
        seen = again.observe()
        assert [(each.pid, each.start_ticks, each.running) for each in seen] == [
            (started.pid, started.start_ticks, True)
        ]
        assert (await again.start(spec(machine.commands.runs()))).pid == started.pid
        await again.stop(ENTRY, UNIT, ONE, timeout_ms=TIMEOUT_MS)
        assert [each.running for each in machine.processes.observe()] == [False]

    async def test_stopping_ends_it_and_is_told_by_its_return_alone(self, machine: Machine) -> None:
        processes = machine.processes
        ends = asyncio.create_task(processes.exited())
        await processes.start(spec(machine.commands.runs()))
        await processes.stop(ENTRY, UNIT, ONE, timeout_ms=TIMEOUT_MS)
        await processes.stop(ENTRY, UNIT, ONE, timeout_ms=TIMEOUT_MS)
        assert not any(each.running for each in processes.observe())
        other = UnitName("other")
        await processes.start(spec(machine.commands.exits(3), unit=other))
        async with asyncio.timeout(DEADLINE_S):
            assert (await ends).unit == other

    async def test_an_end_is_told_with_its_code_and_leaves_remains(self, machine: Machine) -> None:
        processes = machine.processes
        await processes.start(spec(machine.commands.exits(3)))
        end = await next_end(processes)
        assert (end.running, end.exit_code, end.cause) == (False, 3, None)
        assert processes.observe() == (end,)
        with_other_digest = spec(machine.commands.runs(), of=TWO)
        assert (await processes.start(with_other_digest)).running
        processes.forget(ENTRY, UNIT, ONE)
        processes.forget(ENTRY, UNIT, ONE)
        assert [each.digest for each in processes.observe()] == [TWO]

    async def test_one_that_was_killed_says_by_what(self, machine: Machine) -> None:
        started = await machine.processes.start(spec(machine.commands.runs()))
        machine.kill(started)
        end = await next_end(machine.processes)
        assert (end.pid, end.exit_code, end.exit_signal) == (started.pid, None, 9)

    async def test_what_ended_runs_again(self, machine: Machine) -> None:
        processes = machine.processes
        first = await processes.start(spec(machine.commands.runs()))
        machine.kill(first)
        await next_end(processes)
        second = await processes.start(spec(machine.commands.runs()))
        assert second.running
        assert (second.pid, second.start_ticks) != (first.pid, first.start_ticks)
        assert processes.observe() == (second,)

    async def test_a_program_that_is_not_there_is_said(self, machine: Machine) -> None:
        processes = machine.processes
        started = await processes.start(spec(machine.commands.missing()))
        assert not started.running
        assert started.cause
        assert not any(each.running for each in processes.observe())

    async def test_what_runs_is_not_forgotten(self, machine: Machine) -> None:
        processes = machine.processes
        await processes.start(spec(machine.commands.runs()))
        with pytest.raises(PortError):
            processes.forget(ENTRY, UNIT, ONE)
        assert [each.running for each in processes.observe()] == [True]

    async def test_only_what_runs_takes_a_reload(self, machine: Machine) -> None:
        processes, how = machine.processes, Reload(signal="URG")
        asked = spec(machine.commands.runs())
        await processes.start(asked)
        await processes.reload(ENTRY, UNIT, ONE, how, asked)
        assert [each.running for each in processes.observe()] == [True]
        await processes.stop(ENTRY, UNIT, ONE, timeout_ms=TIMEOUT_MS)
        with pytest.raises(PortError):
            await processes.reload(ENTRY, UNIT, ONE, how, asked)

    async def test_a_probe_tells_what_is_wrong_and_raises_nothing(self, machine: Machine) -> None:
        health = Health(tcp="127.0.0.1:1", timeout_ms=500)
        problem = await machine.processes.probe(health, spec(machine.commands.runs()))
        assert problem
