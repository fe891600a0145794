"""The agent of one machine: the loop around the brain.

Decides nothing (`converge` does). It feeds the brain what happens, saves what must outlive it
before any effect runs, and runs the effects. To end it, cancel `run`: units run on, and the next
life adopts them.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cache

from keyplane import metrics
from keyplane.converge import brain, effects, events, saved, saving
from keyplane.converge.state import State
from keyplane.journal import Journal
from keyplane.model.declaration import NO_OFFER, Report, Stop
from keyplane.model.names import EntryId
from keyplane.parts import agent_facts
from keyplane.parts.agent_dynamic import Dynamic
from keyplane.parts.agent_effects import Performer, plain
from keyplane.parts.agent_line import Held, Identity, Line
from keyplane.ports.bus import AgentBus
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError
from keyplane.ports.facts import MachineFacts
from keyplane.ports.host import Artifacts, Files, Processes, Volumes
from keyplane.ports.sources import Sources

log = Journal(__name__.removeprefix("keyplane."))

SAVE_AGAIN_S = 1.0
"""A full disk is looked at again so often; until then nothing is done that was not saved."""

CLOCK_SET_MS = 2_000
"""A wall clock that is steered moves by less between two looks; nothing but words depends on it."""

_OPEN: AbstractAsyncContextManager[None] = contextlib.nullcontext()
"""The gate of effects that take no time."""

VALUES_SAVED_S = 1.0
"""What is known of dynamic values waits so long for something to be done; then it is saved alone."""

AT_ONCE: Mapping[type[effects.Effect], int] = {
    effects.Fetch: 4,  # more would share one line, and hold more half-read archives
    effects.UnpackArchive: 2,  # one for each core of a small machine
    effects.Probe: 16,
    effects.StartProcess: 8,  # a machine that boots is not brought down by all its services
    effects.StopProcess: 64,  # most of a stop is waiting
}
"""How many effects of a kind run at once; the others take no time worth counting."""


@cache
def _meters(kind: type[effects.Effect]) -> tuple[metrics.Counter, metrics.Histogram]:
    """To find them takes longer than to count."""
    name = kind.__name__
    return metrics.effects.labels(name), metrics.effect_time.labels(name)


WITHOUT_SAVE = (effects.SendReport, effects.WakeAt)
"""They change nothing on the machine; and that nothing can be saved has to be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine, by its ports."""

    files: Files
    artifacts: Artifacts
    processes: Processes
    sources: Sources
    facts: MachineFacts
    volumes: Volumes


class Agent:
    """One life of an agent. `run` it once."""

    def __init__(
        self,
        *,
        identity: Identity,
        host: Host,
        bus: AgentBus,
        clock: Clock,
        spread: Callable[[], float],
    ) -> None:
        """`spread` gives a number in [0, 1) for each wait that is not to coincide with others'."""
        self._host = host
        self._clock = clock
        self._facts = agent_facts.Telling(bus=bus, facts=host.facts, boot=identity.boot)
        self._line = Line(
            identity=identity,
            bus=bus,
            clock=clock,
            held=self._held,
            heard=self._facts.heard,
            spread=spread,
        )
        self._performer = Performer(
            files=host.files,
            artifacts=host.artifacts,
            processes=host.processes,
            volumes=host.volumes,
            send=self._line.send,
            clock=clock,
        )
        self._state, self._kept = self._begin(identity)
        self._inbox: deque[events.Event] = deque()
        self._arrived = asyncio.Event()
        self._held_back: list[effects.Effect] = []
        """Effects whose state is not saved yet."""
        self._unsaved: str | None = None
        """Why not."""
        self._unsaved_since: float | None = None
        """Since when what is known of dynamic values is not saved."""
        self._timer: asyncio.TimerHandle | None = None
        self._save_timer: asyncio.TimerHandle | None = None
        self._gates = {kind: asyncio.Semaphore(count) for kind, count in AT_ONCE.items()}
        self._log = log.bind(machine=identity.machine)
        self._dynamic = Dynamic(
            bus=bus.values,
            files=host.files,
            sources=host.sources,
            clock=clock,
            spread=spread,
            feed=self._feed,
        )

    def _begin(self, identity: Identity) -> tuple[State, saving.Kept]:
        earlier = saved.read(self._host.files.read_state)
        state = brain.begin(
            machine=identity.machine,
            boot=identity.boot,
            earlier=earlier,
            now_ms=self._clock.monotonic_ms(),
            wall_ms=self._clock.now_ms(),
        )
        return state, saving.at_first(earlier, state)

    # What people on the machine ask.

    def report(self) -> Report:
        return brain.report(self._state)

    def stop_entry(self, entry: EntryId, who: str) -> bool:
        """Keep its units stopped until somebody starts it; False if it is not declared here."""
        if entry not in self._state.wanted:
            return False
        stop = Stop(who=who, since_ms=self._clock.now_ms())
        self._feed(events.PersonStopped(at_ms=self._clock.monotonic_ms(), entry=entry, stop=stop))
        return True

    def start_entry(self, entry: EntryId, who: str) -> bool:
        """Let it run again, and try at once what failed; False if it is not declared here."""
        if entry not in self._state.wanted:
            return False
        self._feed(events.PersonStarted(at_ms=self._clock.monotonic_ms(), entry=entry, who=who))
        return True

    # The loop.

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                self._feed(events.Ticked(at_ms=self._clock.monotonic_ms()))
                tasks.create_task(self._line.run(self._feed))
                tasks.create_task(self._hear())
                tasks.create_task(self._facts.run())
                tasks.create_task(self._dynamic.run())
                while True:
                    await self._arrived.wait()
                    self._arrived.clear()
                    self._turn(tasks)
        finally:
            for timer in (self._timer, self._save_timer):
                if timer is not None:
                    timer.cancel()

    def _feed(self, event: events.Event) -> None:
        self._inbox.append(event)
        self._arrived.set()

    def _turn(self, tasks: asyncio.TaskGroup) -> None:
        """Take in everything that came, save once, then run what is to be done."""
        began = self._clock.monotonic_ms()
        self._look_at_clock()
        while self._inbox:
            self._state, issued = brain.step(self._state, self._inbox.popleft())
            self._held_back.extend(issued)
        cause = self._save()
        if cause != self._unsaved:
            self._tell_unsaved(cause)
        if cause is not None:
            self._run(tasks, [each for each in self._held_back if isinstance(each, WITHOUT_SAVE)])
            self._held_back = [e for e in self._held_back if not isinstance(e, WITHOUT_SAVE)]
            if self._save_timer is not None:
                self._save_timer.cancel()
            loop = asyncio.get_running_loop()
            self._save_timer = loop.call_later(SAVE_AGAIN_S, self._arrived.set)
            return
        metrics.reconcile.observe((self._clock.monotonic_ms() - began) / 1000)
        issued, self._held_back = self._held_back, []
        self._dynamic.follow(self._state)
        self._run(tasks, issued)

    def _run(self, tasks: asyncio.TaskGroup, issued: Sequence[effects.Effect]) -> None:
        for effect in issued:
            if isinstance(effect, effects.WakeAt):
                self._wake_at(effect.at_ms)
            else:
                tasks.create_task(self._perform(effect))

    def _look_at_clock(self) -> None:
        now = self._clock.monotonic_ms()
        wall_ms = self._clock.now_ms() - now
        if abs(wall_ms - self._state.wall_ms) > CLOCK_SET_MS:
            self._log.warning("the wall clock was set", by_ms=wall_ms - self._state.wall_ms)
            self._inbox.append(events.ClockSet(at_ms=now, wall_ms=wall_ms))

    def _tell_unsaved(self, cause: str | None) -> None:
        """Once for each change, however often it is tried."""
        if cause is None:
            self._log.info("the state can be saved again")
        else:
            self._log.error("waits", cause=cause)
        self._unsaved = cause
        at_ms, offer = self._clock.monotonic_ms(), self._kept.ledger.offer
        self._feed(events.SaveTried(at_ms=at_ms, cause=cause, offer=offer))

    def _save(self) -> str | None:
        """Save what must outlive this life; why that cannot be done."""
        before, is_late = self._kept, self._is_late()
        kept, contents = saving.due(before, self._state, self._held_back, is_late=is_late)
        if not contents:
            return None
        try:
            self._host.files.write_state(contents)
        except PortError as error:
            return plain(f"its state cannot be saved, so it does nothing: {error}")
        self._kept = kept
        if saved.REACTIONS in contents:
            self._unsaved_since = None
        for each in kept.history.kept if saved.HISTORY in contents else ():
            if each.number > before.history.last:
                metrics.occurrences.labels(each.act.value, each.cause.value).inc()
        return None

    def _is_late(self) -> bool:
        """Whether what is known of dynamic values has waited for long enough to be saved alone."""
        if self._kept.reactions is self._state.reactions:
            return False
        loop = asyncio.get_running_loop()
        if self._unsaved_since is None:
            self._unsaved_since = loop.time()
            loop.call_later(VALUES_SAVED_S, self._arrived.set)
        return loop.time() - self._unsaved_since >= 0.99 * VALUES_SAVED_S

    def _wake_at(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_s = max(0, at_ms - self._clock.monotonic_ms()) / 1_000
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._tick)

    def _tick(self) -> None:
        self._feed(events.Ticked(at_ms=self._clock.monotonic_ms()))

    async def _perform(self, effect: effects.Effect) -> None:
        gate = self._gates.get(type(effect), _OPEN)
        async with gate:
            began = self._clock.monotonic_ms()
            event = await self._performer.perform(effect)
        self._count(effect, event, self._clock.monotonic_ms() - began)
        self._tell(effect, event)
        self._feed(event)

    @staticmethod
    def _count(effect: effects.Effect, event: events.Event, took_ms: int) -> None:
        kind = type(effect)
        made, taken = _meters(kind)
        made.inc()
        taken.observe(took_ms / 1000)
        if isinstance(event, events.EffectFailed):
            metrics.effects_failed.labels(kind.__name__).inc()

    async def measure(self) -> None:
        """Set the metrics that are read off the agent's state."""
        metrics.entries.clear()
        for entry in self.report().entries.values():
            metrics.entries.labels(entry.state.value).inc()

    async def _hear(self) -> None:
        processes = self._host.processes
        while True:
            process = await processes.exited()
            tail = self._performer.tail(process.entry, process.unit)
            self._log.warning(
                "ended",
                entry=process.entry,
                unit=process.unit,
                exit_code=process.exit_code,
                exit_signal=process.exit_signal,
            )
            at_ms = self._clock.monotonic_ms()
            self._feed(events.Exited(at_ms=at_ms, process=process, tail=tail))

    def _tell(self, effect: effects.Effect, event: events.Event) -> None:
        """What was done to the machine, in the agent's own log."""
        if isinstance(event, events.EffectFailed):
            self._log.warning("failed", effect=event.resource, cause=plain(event.cause))
        match effect:
            case effects.StartProcess(spec=spec) | effects.ReloadProcess(spec=spec):
                self._log.info(type(effect).__name__, entry=spec.entry, unit=spec.unit)
            case effects.StopProcess():
                self._log.info("StopProcess", entry=effect.entry, unit=effect.unit)
            case effects.LetGo(digest=digest):
                self._log.info("LetGo", archive=digest)
            case effects.RemovePath() | effects.SaveVolume() | effects.TakeVolume():
                kind = type(effect).__name__
                self._log.info(kind, entry=effect.entry, path=effect.path)
            case _:
                pass

    def _held(self) -> Held:
        declaration, sent = self._state.declaration, self._state.reporting.sent
        return Held(
            asked_with=NO_OFFER if declaration is None else declaration.offer,
            generation=None if declaration is None else declaration.generation,
            offer=self._state.ledger.offer,
            sequence=self._state.reporting.sequence,
            told=0 if sent is None else sent.sequence,
            facts=self._facts.digest,
        )
