"""The ports of a machine as one life of its agent has them: slow, fallible, and cut off by death.

What was begun on the machine goes on without the agent: a process that was told to end ends.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from keyplane.model.declaration import Declaration, Health, Reload
from keyplane.model.host import LogLine, ObservedPath, ObservedProcess, ProcessSpec
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.ports.host import HostBusyError, PortHeldError
from keyplane.ports.store import StoreUnavailableError
from keyplane.testing.host import MemoryHost
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.life import Life
from keyplane.testing.simulation.readings import path_of
from keyplane.testing.simulation.watch_sets import JOB, SetWatch
from keyplane.testing.simulation.watch_volumes import VolumeWatch
from keyplane.testing.store import MemoryStore

Json = Any
ProcessKey = tuple[EntryId, UnitName, Digest]


class Watching(Protocol):
    """Who is told of everything that an agent does to a machine, before it is done."""

    sets: SetWatch

    def writing(self, machine: MachineName, path: str) -> None: ...
    def removing(self, machine: MachineName, path: str) -> None: ...
    def saved(self, machine: MachineName, name: str, content: bytes) -> None: ...
    def letting_go(self, machine: MachineName, digest: Digest) -> None: ...
    def starting(self, machine: MachineName, spec: ProcessSpec) -> None: ...
    def port_held(self, machine: MachineName, spec: ProcessSpec, why: str) -> None: ...
    def started(self, machine: MachineName) -> None: ...
    def stopping(self, machine: MachineName, key: ProcessKey) -> None: ...
    def declaration(self, machine: MachineName) -> Declaration | None: ...
    def ended(self, machine: MachineName, process: ObservedProcess, *, unseen: bool) -> None: ...
    def acted(self, machine: MachineName, what: str) -> None: ...
    @property
    def volumes(self) -> VolumeWatch: ...


@dataclass(slots=True, kw_only=True)
class Ground:
    """A machine itself, which outlives its agent."""

    name: MachineName
    memory: MemoryHost
    chance: Chance
    store: MemoryStore
    watch: Watching
    is_full: bool = False
    """No space is left on its disk."""
    busy: float = 0.0
    """How often something fails for now."""
    stubborn: float = 0.0
    """How often a process ignores TERM."""
    facts: dict[str, Json] = field(default_factory=dict[str, Json])
    """What it is, by name."""
    exported: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By path: what its services export while they run."""
    dying: dict[ProcessKey, float] = field(default_factory=dict[ProcessKey, float])
    """Processes that were told to end, and when each will."""

    def room(self) -> None:
        if self.is_full:
            raise HostBusyError("no space left on the device")

    def trip(self, what: str) -> None:
        if self.chance.happens(self.busy):
            raise HostBusyError(f"{what}: not now")

    def terminate(self, key: ProcessKey) -> float:
        """Tell a process to end, as often as one likes; how long it will take from now."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if key not in self.dying:
            takes_s = self.chance.between(0.0, 0.4)
            if self.chance.happens(self.stubborn):
                takes_s = 1e9
            self.dying[key] = now + takes_s
            run = self.memory.processes.runs[key]
            if takes_s < 1e9:
                loop.call_later(takes_s, self._terminated, key, run.seen.pid)
        return self.dying[key] - now

    def _terminated(self, key: ProcessKey, pid: int | None) -> None:
        run = self.memory.processes.runs.get(key)
        if run is not None and run.seen.running and run.seen.pid == pid:
            self.end(key[0], key[1], digest=key[2], signal=15)

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
        """A process ends by itself, or by somebody else's hand."""
        running = [
            each
            for each in self.memory.processes.observe()
            if each.running and digest in (None, each.digest)
        ]
        found = next((each for each in running if (each.entry, each.unit) == (entry, unit)), None)
        if found is None:
            return False
        self.memory.processes.end(
            entry, unit, digest=found.digest, code=code, signal=signal, unseen=unseen
        )
        self.dying.pop((entry, unit, found.digest), None)
        self.watch.ended(self.name, found, unseen=unseen)
        self.watch.sets.ended(entry, unit)
        return True


class LifeFacts:
    """The port `MachineFacts`."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def gather(self) -> Mapping[str, Json]:
        return dict(self._ground.facts)


@dataclass(frozen=True, slots=True)
class LifeFiles:
    """The port `Files`."""

    ground: Ground
    life: Life

    def observe(self, path: str) -> ObservedPath:
        self.life.alive()
        return self.ground.memory.files.observe(path)

    def write(
        self, path: str, content: bytes, *, mode: str, owner: str | None, group: str | None
    ) -> None:
        self._before("write", path)
        self.ground.room()
        self.ground.watch.writing(self.ground.name, path)
        self.ground.memory.files.write(path, content, mode=mode, owner=owner, group=group)
        self._after("write", path)

    def make_directory(self, path: str, *, mode: str, owner: str | None, group: str | None) -> None:
        self._before("make", path)
        self.ground.room()
        self.ground.watch.writing(self.ground.name, path)
        self.ground.memory.files.make_directory(path, mode=mode, owner=owner, group=group)
        self._after("make", path)

    def unpack(self, digest: Digest, path: str) -> None:
        self._before("unpack", path)
        self.ground.room()
        self.ground.watch.writing(self.ground.name, path)
        self.ground.memory.files.unpack(digest, path)
        self._after("unpack", path)

    def remove(self, path: str) -> None:
        self._before("remove", path)
        self.ground.watch.removing(self.ground.name, path)
        self.ground.memory.files.remove(path)
        self._after("remove", path)

    def read_state(self, name: str) -> bytes | None:
        self.life.alive()
        return self.ground.memory.files.read_state(name)

    def write_state(self, contents: Mapping[str, bytes]) -> None:
        for name, content in contents.items():
            self.life.boundary(f"before it saves its {name}")
            self.ground.room()
            self.ground.memory.files.write_state({name: content})
            self.ground.watch.saved(self.ground.name, name, content)
            self.life.boundary(f"after it saved its {name}")

    def _before(self, what: str, path: str) -> None:
        self.life.boundary(f"before {what} {path}")
        self.ground.trip(what)

    def _after(self, what: str, path: str) -> None:
        self.ground.watch.acted(self.ground.name, f"{what} {path}")
        self.life.boundary(f"after {what} {path}")


@dataclass(frozen=True, slots=True)
class LifeArtifacts:
    """The port `Artifacts`."""

    ground: Ground
    life: Life

    def present(self) -> frozenset[Digest]:
        self.life.alive()
        return self.ground.memory.artifacts.present()

    async def fetch(self, digest: Digest) -> None:
        ground = self.ground
        self.life.boundary("before a fetch")
        await asyncio.sleep(ground.chance.between(0.005, 0.5))
        ground.room()
        ground.trip("fetch")
        if ground.store.is_down:
            raise StoreUnavailableError("the store does not answer")
        if await ground.store.has(digest):
            ground.memory.artifacts.stored.add(digest)
        await ground.memory.artifacts.fetch(digest)
        ground.watch.acted(ground.name, f"fetch {digest[:15]}")
        self.life.boundary("after a fetch")

    def remove(self, digest: Digest) -> None:
        ground = self.ground
        self.life.boundary("before an archive is let go")
        ground.trip("let go")
        ground.watch.letting_go(ground.name, digest)
        ground.memory.artifacts.remove(digest)
        ground.watch.acted(ground.name, f"lets go of {digest[:15]}")
        self.life.boundary("after an archive is let go")


@dataclass(frozen=True, slots=True)
class LifeProcesses:
    """The port `Processes`."""

    ground: Ground
    life: Life

    def observe(self) -> tuple[ObservedProcess, ...]:
        self.life.alive()
        return self.ground.memory.processes.observe()

    async def start(self, spec: ProcessSpec) -> ObservedProcess:
        ground, what = self.ground, f"start {spec.entry}/{spec.unit}"
        self.life.boundary(f"before {what}")
        ground.watch.starting(ground.name, spec)
        ground.watch.sets.started(spec.entry, spec.unit)
        await asyncio.sleep(ground.chance.between(0.005, 0.2))
        ground.trip(what)
        self.life.boundary(f"amid {what}")
        try:
            started = await ground.memory.processes.start(spec)
        except PortHeldError as error:
            ground.watch.port_held(ground.name, spec, str(error))
            raise
        ground.exported.setdefault(path_of(spec.entry.partition(":")[0]), b"first")
        ground.watch.started(ground.name)
        ground.watch.acted(ground.name, f"{what} {spec.digest[7:15]} as {started.pid}")
        seen = ground.memory.processes.runs[spec.entry, spec.unit, spec.digest].seen
        if seen.running:
            ground.watch.volumes.writes(ground.name, spec.entry, ground.memory)
        if not seen.running:
            ground.watch.ended(ground.name, started, unseen=False)
        self.life.boundary(f"after {what}")
        return started

    async def stop(
        self, entry: EntryId, unit: UnitName, digest: Digest, *, timeout_ms: int
    ) -> bool:
        killed = False
        ground, key, what = self.ground, (entry, unit, digest), f"stop {entry}/{unit}"
        self.life.boundary(f"before {what}")
        ground.trip(what)
        ground.watch.stopping(ground.name, key)
        run = ground.memory.processes.runs.get(key)
        if run is not None and run.seen.running:
            running = ground.memory.running().items()
            served = sum(len(each) for (e, u), each in running if e == entry and u != JOB)
            declared = ground.watch.declaration(ground.name)
            is_member = declared is not None and entry in declared.entries
            if served == 1 and is_member:  # else another one serves, or nobody is to
                ground.watch.sets.stopping(entry, unit)
            pid = run.seen.pid
            ground.watch.volumes.writes(ground.name, entry, ground.memory)
            takes_s = ground.terminate(key)
            self.life.boundary(f"amid {what}")
            # Just before it would end by itself: then its end is told by this call alone.
            await asyncio.sleep(max(0.0, min(takes_s - 0.001, timeout_ms / 1000)))
            run = ground.memory.processes.runs.get(key)
            if run is not None and run.seen.running and run.seen.pid == pid:
                ground.dying.pop(key, None)
                seen, killed = run.seen, takes_s > timeout_ms / 1000
                await ground.memory.processes.stop(entry, unit, digest, timeout_ms=timeout_ms)
                ground.watch.ended(ground.name, seen, unseen=False)
        ground.watch.acted(ground.name, f"{what} {digest[7:15]}")
        self.life.boundary(f"after {what}")
        return killed

    def forget(self, entry: EntryId, unit: UnitName, digest: Digest) -> None:
        self.life.boundary(f"before it forgets {entry}/{unit}")
        self.ground.memory.processes.forget(entry, unit, digest)
        self.ground.watch.acted(self.ground.name, f"forget {entry}/{unit} {digest[7:15]}")
        self.life.boundary(f"after it forgot {entry}/{unit}")

    async def reload(
        self, entry: EntryId, unit: UnitName, digest: Digest, how: Reload, spec: ProcessSpec
    ) -> None:
        what = f"reload {entry}/{unit}"
        self.life.boundary(f"before {what}")
        self.ground.trip(what)
        await self.ground.memory.processes.reload(entry, unit, digest, how, spec)
        self.ground.watch.acted(self.ground.name, what)
        self.life.boundary(f"after {what}")

    async def exited(self) -> ObservedProcess:
        self.life.alive()
        ended = await self.ground.memory.processes.exited()
        self.life.boundary("before it hears of an end")
        return ended

    async def probe(self, health: Health, spec: ProcessSpec) -> str | None:
        await asyncio.sleep(self.ground.chance.between(0.001, 0.05))
        return await self.ground.memory.processes.probe(health, spec)

    def tail(self, entry: EntryId, unit: UnitName, lines: int) -> tuple[str, ...]:
        return self.ground.memory.processes.tail(entry, unit, lines)

    def read(
        self, entry: EntryId, unit: UnitName, *, since_ms: int, lines: int
    ) -> tuple[LogLine, ...]:
        return self.ground.memory.processes.read(entry, unit, since_ms=since_ms, lines=lines)

    def follow(self, entry: EntryId, unit: UnitName, *, lines: int) -> AsyncIterator[LogLine]:
        return self.ground.memory.processes.follow(entry, unit, lines=lines)
