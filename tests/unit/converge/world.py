"""A machine in memory with the brain on it, driven step by step: no loop, no sleep.

Effects are carried out by the agent's own performer against the fakes. Everything is saved
before effects run, as the shell does it.
"""

import asyncio
import atexit
import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keyplane.converge import brain, effects, events, resting, saved, saving
from keyplane.model.declaration import (
    ConfigFile,
    Declaration,
    DeclaredArchive,
    DeclaredDirectory,
    DeclaredEntry,
    DeclaredFile,
    DeclaredUnit,
    EntryReport,
    OfferNumber,
    Report,
    Stop,
    Word,
)
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.parts.agent_effects import Performer
from keyplane.ports.bus import BusUnavailableError
from keyplane.testing.clock import ManualClock
from keyplane.testing.host import MemoryHost

_RUNNER = asyncio.Runner()  # one loop for all steps: a loop for each would take most of the time
atexit.register(_RUNNER.close)

ALPHA = MachineName("alpha")
WEB = EntryId("web:main@alpha")
DB = EntryId("db:main@alpha")
SERVER = UnitName("server")
BY_ANA = Stop(who="ana", since_ms=1)


def digest(text: str) -> Digest:
    return Digest(f"sha256-{hashlib.sha256(text.encode()).hexdigest()}")


def unit(version: str = "1", *command: str, config: Mapping[str, str] | None = None, **fields: Any):
    """A unit whose digest is named by the version and whose configData has these contents."""
    return DeclaredUnit(
        digest=digest(f"unit {version}"),
        kind="job" if fields.get("run_once") else "process",
        command=command or ("run",),
        config={path: ConfigFile(digest=digest(text)) for path, text in (config or {}).items()},
        **fields,
    )


def entry(
    *,
    key: str = "k",
    units: Mapping[str, DeclaredUnit] | None = None,
    files: Mapping[str, str] | None = None,
    directories: Mapping[str, DeclaredDirectory] | None = None,
    archives: Mapping[str, str] | None = None,
    adopt: bool = False,
    listens: Mapping[str, int] | None = None,
    udp: tuple[str, ...] = (),
    word: Word | None = None,
) -> DeclaredEntry:
    return DeclaredEntry(
        key=digest(key),
        module="m",
        version="1",
        units={UnitName(name): each for name, each in (units or {}).items()},
        files={
            path: DeclaredFile(digest=digest(text), adopt=adopt)
            for path, text in (files or {}).items()
        },
        directories=directories or {},
        archives={
            path: DeclaredArchive(digest=digest(text)) for path, text in (archives or {}).items()
        },
        listens=listens or {},
        udp=udp,
        word=word,
    )


class World:
    """One machine, one brain, and a controller that takes reports."""

    def __init__(self, *texts: str) -> None:
        self.host = MemoryHost()
        self.clock = ManualClock()
        self.reports: list[Report] = []
        self.texts = {digest(text): text.encode() for text in texts}
        self.counter = 0
        self.effects: list[effects.Effect] = []
        """Everything that was asked, since `forget`."""
        self.writes: list[tuple[str, ...]] = []
        """What was written of its state, each time."""
        self.inbox: deque[events.Event] = deque()
        self.wake_ms: int | None = None
        self.is_cut = False
        self.is_unanswered = False
        """A report comes, and its answer is lost."""
        self.life = 0
        self.performer = Performer(
            files=self.host.files,
            artifacts=self.host.artifacts,
            processes=self.host.processes,
            volumes=self.host.volumes,
            send=self._send,
            clock=self.clock,
        )
        self.boot()

    # The agent's life.

    def boot(self) -> None:
        """A new life of the agent, from what the last one saved."""
        self.life += 1
        self.inbox.clear()
        self.wake_ms = None
        earlier = saved.read(self.host.files.read_state)
        self.state = brain.begin(
            machine=ALPHA,
            boot=f"life-{self.life}",
            earlier=earlier,
            now_ms=self.now,
            wall_ms=self.clock.now_ms(),
        )
        self.kept = saving.at_first(earlier, self.state)
        self.inbox.append(events.Ticked(at_ms=self.now))

    @property
    def now(self) -> int:
        return self.clock.monotonic_ms()

    def step(self, event: events.Event) -> tuple[effects.Effect, ...]:
        """One step, saved; what it asks is not carried out yet."""
        before = self.state
        self.state, issued = brain.step(before, event)
        if resting.step(before, event) is not None:
            # What is not decided on anew is as if it were.
            in_full, asked = brain.decide(before, event)
            assert replace(self.state, rests={}) == replace(in_full, rests={})
            assert issued == asked
        self.kept, contents = saving.due(self.kept, self.state, issued, is_late=True)
        self.host.files.write_state(contents)
        if contents:
            self.writes.append(tuple(contents))
        self.effects.extend(each for each in issued if not isinstance(each, effects.WakeAt))
        for each in issued:
            if isinstance(each, effects.WakeAt):
                self.wake_ms = each.at_ms
        return tuple(each for each in issued if not isinstance(each, effects.WakeAt))

    def perform(self, effect: effects.Effect) -> None:
        self.inbox.append(_RUNNER.run(self.performer.perform(effect)))

    def hear(self) -> None:
        """The ends of processes that were not told yet."""
        while (end := self.host.processes.take_end()) is not None:
            tail = self.performer.tail(end.entry, end.unit)
            self.inbox.append(events.Exited(at_ms=self.now, process=end, tail=tail))

    def run(self, for_ms: int = 0) -> None:
        """Do what there is to do, for so long."""
        until = self.now + for_ms
        for _ in range(20_000):
            self.hear()
            if self.inbox:
                for effect in self.step(self.inbox.popleft()):
                    self.perform(effect)
            elif self.wake_ms is not None and self.wake_ms <= until:
                self.clock.advance(max(0, self.wake_ms - self.now))
                self.wake_ms = None
                self.inbox.append(events.Ticked(at_ms=self.now))
            else:
                self.clock.advance(until - self.now)
                return
        raise AssertionError("it never comes to rest")

    async def _send(self, report: Report) -> None:
        if self.is_cut:
            raise BusUnavailableError("not connected")
        self.reports.append(report)
        if self.is_unanswered:
            raise BusUnavailableError("nobody answered in time")

    # The controller and people.

    def declaration(self, entries: Mapping[EntryId, DeclaredEntry], counter: int) -> Declaration:
        return Declaration(
            machine=ALPHA,
            offer=OfferNumber(1, counter),
            generation=digest(f"generation {counter}"),
            entries=entries,
            contents=self.texts,
        )

    def offer(
        self, entries: Mapping[EntryId, DeclaredEntry], *, run_ms: int = 2_000, **fields: Any
    ) -> None:
        self.counter += 1
        offered = replace(self.declaration(entries, self.counter), **fields)
        self.inbox.append(events.Offered(at_ms=self.now, declaration=offered))
        self.run(run_ms)

    def tell(self, event: events.Event, *, run_ms: int = 100) -> None:
        self.inbox.append(event)
        self.run(run_ms)

    def forget(self) -> None:
        """Look only at what comes from here on."""
        self.effects.clear()
        self.writes.clear()
        self.host.processes.history.clear()
        self.host.files.removed.clear()

    # What a test looks at.

    @property
    def acts(self) -> list[tuple[str, str]]:
        """What was done to processes: (`start`, `ENTRY/UNIT`), …"""
        return [(act, f"{e}/{u}") for act, e, u, _ in self.host.processes.history]

    @property
    def asked(self) -> list[str]:
        """The kinds of effects that change something or tell something."""
        quiet = (effects.Observe, effects.Probe)
        return [type(each).__name__ for each in self.effects if not isinstance(each, quiet)]

    def report(self, of: EntryId = WEB) -> EntryReport:
        return self.reports[-1].entries[of]

    def pid(self, of: EntryId = WEB, name: str = "server") -> int | None:
        runs = self.host.running().get((of, UnitName(name)), [])
        assert len(runs) < 2
        return runs[0].pid if runs else None
