"""A machine in memory: files, artifacts and virtual processes, with every promise of the ports.

It outlives any agent that runs on it, as a machine does. What a virtual process does is scripted
by its command: `run` runs until it is stopped, `exit N` ends at once, `missing` cannot be
executed. `MemoryProcesses.end` ends one that runs.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace

from keyplane.model.declaration import Health, Reload
from keyplane.model.host import (
    LogLine,
    ObservedPath,
    ObservedProcess,
    PathKind,
    ProcessSpec,
)
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.volumes import Saved
from keyplane.ports.errors import PortError
from keyplane.ports.host import HostBusyError, HostError, PortHeldError
from keyplane.ports.store import ArtifactMissingError

ABSENT = ObservedPath(kind=PathKind.ABSENT)


def digest_of(content: bytes) -> Digest:
    return Digest(f"sha256-{hashlib.sha256(content).hexdigest()}")


class Faults:
    """Calls that are to fail, and how often. Shared by the parts of one machine."""

    def __init__(self) -> None:
        self._planned: dict[tuple[str, str], list[PortError]] = {}

    def plan(self, call: str, subject: str, *errors: PortError) -> None:
        """Let the next calls on the subject (a path, digest or unit) fail, one after another."""
        self._planned.setdefault((call, subject), []).extend(errors)

    def heal(self) -> None:
        self._planned.clear()

    def meet(self, call: str, subject: str) -> None:
        planned = self._planned.get((call, subject))
        if planned:
            raise planned.pop(0)


@dataclass(slots=True)
class Node:
    """What stands at a path."""

    seen: ObservedPath
    content: bytes = b""


class MemoryFiles:
    """The port `Files`, in memory."""

    def __init__(self, artifacts: "MemoryArtifacts", faults: Faults) -> None:
        self.nodes: dict[str, Node] = {}
        self.state: dict[str, bytes] = {}
        self.removed: list[str] = []
        """Every path that was removed, in order."""
        self._artifacts = artifacts
        self._faults = faults

    def put(self, path: str, content: bytes, *, mode: str = "0644") -> None:
        """Somebody else writes a file."""
        seen = ObservedPath(kind=PathKind.FILE, digest=digest_of(content), mode=mode)
        self.nodes[path] = Node(seen, content)

    def observe(self, path: str) -> ObservedPath:
        self._faults.meet("observe", path)
        node = self.nodes.get(path)
        if node is not None:
            return node.seen
        return ObservedPath(kind=PathKind.DIRECTORY) if self._below(path) else ABSENT

    def write(
        self, path: str, content: bytes, *, mode: str, owner: str | None, group: str | None
    ) -> None:
        self._faults.meet("write", path)
        if self.observe(path).kind in {PathKind.DIRECTORY, PathKind.ARCHIVE}:
            raise HostError(f"{path} is a directory")
        self._check_parents(path)
        seen = ObservedPath(
            kind=PathKind.FILE, digest=digest_of(content), mode=mode, owner=owner, group=group
        )
        self.nodes[path] = Node(seen, content)

    def make_directory(self, path: str, *, mode: str, owner: str | None, group: str | None) -> None:
        self._faults.meet("make_directory", path)
        if self.observe(path).kind not in {PathKind.ABSENT, PathKind.DIRECTORY}:
            raise HostError(f"{path} is not a directory")
        self._check_parents(path)
        self.nodes[path] = Node(
            ObservedPath(kind=PathKind.DIRECTORY, mode=mode, owner=owner, group=group)
        )

    def unpack(self, digest: Digest, path: str) -> None:
        self._faults.meet("unpack", path)
        if digest not in self._artifacts.present():
            raise HostError(f"{digest} was not fetched")
        if self.observe(path).kind not in {PathKind.ABSENT, PathKind.ARCHIVE}:
            raise HostError(f"{path} was not unpacked by the agent")
        self._check_parents(path)
        for below in self._below(path):
            del self.nodes[below]
        self.nodes[path] = Node(ObservedPath(kind=PathKind.ARCHIVE, digest=digest))

    def remove(self, path: str) -> None:
        self._faults.meet("remove", path)
        kind = self.observe(path).kind
        if kind is PathKind.DIRECTORY and self._below(path):
            raise HostError(f"{path} is not empty")
        if kind is PathKind.ARCHIVE:
            for below in self._below(path):
                del self.nodes[below]
        if self.nodes.pop(path, None) is not None:
            self.removed.append(path)

    def read_state(self, name: str) -> bytes | None:
        return self.state.get(name)

    def write_state(self, contents: Mapping[str, bytes]) -> None:
        for name, content in contents.items():
            self._faults.meet("write_state", name)
            self.state[name] = content

    def _below(self, path: str) -> list[str]:
        return [each for each in self.nodes if each.startswith(f"{path.rstrip('/')}/")]

    def _check_parents(self, path: str) -> None:
        parts = path.split("/")
        for length in range(2, len(parts)):
            parent = "/".join(parts[:length])
            if self.observe(parent).kind in {PathKind.FILE, PathKind.LINK, PathKind.OTHER}:
                raise HostError(f"{parent} is not a directory")


class MemoryArtifacts:
    """The port `Artifacts`, in memory: a cache before a store of digests."""

    def __init__(self, faults: Faults) -> None:
        self.stored: set[Digest] = set()
        """What the store has."""
        self._present: set[Digest] = set()
        self._faults = faults

    def present(self) -> frozenset[Digest]:
        return frozenset(self._present)

    async def fetch(self, digest: Digest) -> None:
        self._faults.meet("fetch", digest)
        if digest not in self.stored:
            raise ArtifactMissingError(f"the store has no {digest}")
        self._present.add(digest)

    def remove(self, digest: Digest) -> None:
        self._faults.meet("let go", digest)
        self._present.discard(digest)


class MemoryVolumes:
    """The port `Volumes`, in memory: each volume is one text, and the store a map of texts."""

    def __init__(self, files: MemoryFiles, faults: Faults) -> None:
        self.contents: dict[str, bytes] = {}
        self.stored: dict[Digest, bytes] = {}
        """What the store has."""
        self._files = files
        self._faults = faults
        self._taken: dict[str, tuple[int, str | None]] = {}

    async def save(self, entry: EntryId, path: str, number: int) -> Saved:
        del entry, number
        self._faults.meet("save", path)
        content = self.contents.get(path, b"")
        self.stored[digest_of(content)] = content
        return Saved(digest=digest_of(content), size=len(content))

    async def take(
        self, path: str, digest: Digest | None, number: int, *, mode: str | None, owner: str | None
    ) -> str | None:
        self._faults.meet("take", path)
        if self._taken.get(path, (0, None))[0] == number:
            return self._taken[path][1]
        if digest is not None and digest not in self.stored:
            raise ArtifactMissingError(f"the store has no {digest}")
        before, kept = self.contents.pop(path, b""), None
        if before:
            kept = f"{path}.kept-{number}"
            self.contents[kept] = before
            self._files.nodes[kept] = Node(ObservedPath(kind=PathKind.DIRECTORY))
        if digest is not None:
            self.contents[path] = self.stored[digest]
        seen = ObservedPath(kind=PathKind.DIRECTORY, mode=mode or "0755", owner=owner)
        self._files.nodes[path] = Node(seen)
        self._taken[path] = number, kept
        return kept


@dataclass(slots=True)
class Virtual:
    """One virtual process, or its remains."""

    seen: ObservedProcess
    spec: ProcessSpec
    log: list[str] = field(default_factory=list[str])


class MemoryProcesses:
    """The port `Processes`, in memory."""

    def __init__(self, faults: Faults) -> None:
        self.runs: dict[tuple[EntryId, UnitName, Digest], Virtual] = {}
        self.history: list[tuple[str, EntryId, UnitName, Digest]] = []
        """Every start, stop and reload that was carried out, in order."""
        self.problems: dict[tuple[EntryId, UnitName], str] = {}
        """What a probe of the unit finds wrong."""
        self.log: dict[tuple[EntryId, UnitName], list[str]] = {}
        self.foreign_ports: set[int] = set()
        """On which somebody else listens."""
        self.stubborn: set[tuple[EntryId, UnitName]] = set()
        """Units that ignore TERM."""
        self._ends: list[ObservedProcess] = []
        self._ended = asyncio.Event()
        self._pids = 100
        self._faults = faults

    def observe(self) -> tuple[ObservedProcess, ...]:
        return tuple(self.runs[key].seen for key in sorted(self.runs))

    async def start(self, spec: ProcessSpec) -> ObservedProcess:
        self._faults.meet("start", f"{spec.entry}/{spec.unit}")
        key = (spec.entry, spec.unit, spec.digest)
        if key in self.runs and self.runs[key].seen.running:
            return self.runs[key].seen
        held = [port for port in (*spec.ports, *spec.udp_ports) if port in self.foreign_ports]
        if held:
            raise PortHeldError(f"port {held[0]} is held by pid 7 (somebody else)")
        self._pids += 1
        seen = ObservedProcess(
            entry=spec.entry,
            unit=spec.unit,
            digest=spec.digest,
            running=True,
            pid=self._pids,
            start_ticks=self._pids * 10,
        )
        self.history.append(("start", *key))
        if not spec.command or spec.command[0] == "missing":
            cause = "no such file: " + " ".join(spec.command)
            seen = replace(seen, running=False, pid=None, start_ticks=None, cause=cause)
        self.runs[key] = Virtual(seen, spec)
        if spec.command and spec.command[0] == "exit":
            self.end(spec.entry, spec.unit, digest=spec.digest, code=int(spec.command[1]))
        return seen

    def end(  # noqa: PLR0913  # whom, and how
        self,
        entry: EntryId,
        unit: UnitName,
        *,
        digest: Digest | None = None,
        code: int | None = None,
        signal: int | None = None,
        unseen: bool = False,
    ) -> bool:
        """End what runs of the unit, of that digest; `unseen` if nobody is told.

        False if nothing runs.
        """
        for run in self.runs.values():
            seen = run.seen
            if digest is not None and seen.digest != digest:
                continue
            if (seen.entry, seen.unit, seen.running) == (entry, unit, True):
                run.seen = replace(seen, running=False, exit_code=code, exit_signal=signal)
                if not unseen:
                    self._ends.append(run.seen)
                    self._ended.set()
                return True
        return False

    def ask_to_end(self, entry: EntryId, unit: UnitName) -> None:
        """Somebody else has the shim end it, while no agent runs."""
        for run in self.runs.values():
            if (run.seen.entry, run.seen.unit, run.seen.running) == (entry, unit, True):
                run.seen = replace(run.seen, running=False, exit_signal=15, asked=True)

    def lose(self) -> None:
        """The machine went down and came back."""
        for run in self.runs.values():
            if run.seen.running:
                run.seen = replace(run.seen, running=False, exit_signal=9, lost=True, rebooted=True)
        self._ends.clear()

    def say(self, entry: EntryId, unit: UnitName, *lines: str) -> None:
        self.log.setdefault((entry, unit), []).extend(lines)

    async def stop(
        self, entry: EntryId, unit: UnitName, digest: Digest, *, timeout_ms: int
    ) -> bool:
        self._faults.meet("stop", f"{entry}/{unit}")
        run = self.runs.get((entry, unit, digest))
        if run is not None and run.seen.running:
            self.history.append(("stop", entry, unit, digest))
            run.seen = replace(run.seen, running=False, exit_signal=15, asked=True)
        return (entry, unit) in self.stubborn

    def forget(self, entry: EntryId, unit: UnitName, digest: Digest) -> None:
        self._faults.meet("forget", f"{entry}/{unit}")
        run = self.runs.get((entry, unit, digest))
        if run is not None and run.seen.running:
            raise HostError(f"{entry}/{unit} runs, so it is not forgotten")
        self.runs.pop((entry, unit, digest), None)

    async def reload(
        self, entry: EntryId, unit: UnitName, digest: Digest, how: Reload, spec: ProcessSpec
    ) -> None:
        self._faults.meet("reload", f"{entry}/{unit}")
        run = self.runs.get((entry, unit, digest))
        if run is None or not run.seen.running:
            raise HostBusyError(f"{entry}/{unit} does not run")
        self.history.append(("reload", entry, unit, digest))

    def take_end(self) -> ObservedProcess | None:
        """The next end that was not told yet."""
        if not self._ends:
            return None
        end = self._ends.pop(0)
        if not self._ends:
            self._ended.clear()
        return end

    async def exited(self) -> ObservedProcess:
        while (end := self.take_end()) is None:
            self._ended.clear()
            await self._ended.wait()
        return end

    async def probe(self, health: Health, spec: ProcessSpec) -> str | None:
        run = self.runs.get((spec.entry, spec.unit, spec.digest))
        if run is None or not run.seen.running:
            return "connection refused"
        return self.problems.get((spec.entry, spec.unit))

    def tail(self, entry: EntryId, unit: UnitName, lines: int) -> tuple[str, ...]:
        return tuple(self.log.get((entry, unit), [])[-lines:])

    def read(
        self, entry: EntryId, unit: UnitName, *, since_ms: int, lines: int
    ) -> tuple[LogLine, ...]:
        texts = self.tail(entry, unit, lines)
        return tuple(LogLine(at="1970-01-01T00:00:00.000Z", text=text) for text in texts)

    async def follow(self, entry: EntryId, unit: UnitName, *, lines: int) -> AsyncIterator[LogLine]:
        for line in self.read(entry, unit, since_ms=0, lines=lines):
            yield line
        await asyncio.Event().wait()


class MemoryHost:
    """One machine: what an agent finds again after any crash of its own."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.artifacts = MemoryArtifacts(self.faults)
        self.files = MemoryFiles(self.artifacts, self.faults)
        self.processes = MemoryProcesses(self.faults)
        self.volumes = MemoryVolumes(self.files, self.faults)

    def running(self) -> Mapping[tuple[EntryId, UnitName], list[ObservedProcess]]:
        found: dict[tuple[EntryId, UnitName], list[ObservedProcess]] = {}
        for seen in self.processes.observe():
            if seen.running:
                found.setdefault((seen.entry, seen.unit), []).append(seen)
        return found
