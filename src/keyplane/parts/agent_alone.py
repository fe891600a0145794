"""The brain over a machine whose agent does not run: looks, and heeds what a person says.

Stops what it is told to stop, and does nothing else: the agent does the rest when it is back.
The caller holds the agent's lock where anything is to be changed.
"""

from collections import deque

from keyplane.converge import brain, effects, events, saved
from keyplane.model.declaration import Report, Stop
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.volumes import Saved
from keyplane.parts.agent_effects import Performer
from keyplane.ports.clock import Clock
from keyplane.ports.host import Artifacts, Files, Processes


class Alone:
    """One look at one machine. `look` first."""

    def __init__(
        self,
        *,
        machine: MachineName,
        files: Files,
        artifacts: Artifacts,
        processes: Processes,
        clock: Clock,
    ) -> None:
        self._files = files
        self._clock = clock
        self._performer = Performer(
            files=files,
            artifacts=artifacts,
            processes=processes,
            volumes=_NoVolumes(),
            send=_tell_nobody,
            clock=clock,
        )
        self._state = brain.begin(
            machine=machine,
            boot="",
            earlier=saved.read(files.read_state),
            now_ms=clock.monotonic_ms(),
            wall_ms=clock.now_ms(),
        )

    async def look(self) -> Report:
        """What its saved state and the machine itself tell. Changes nothing."""
        await self._feed(events.Ticked(at_ms=self._clock.monotonic_ms()), keep=False)
        return brain.report(self._state)

    async def stop(self, entry: EntryId, who: str) -> bool:
        """Stop it and keep that; False if it is not declared here."""
        if entry not in self._state.wanted:
            return False
        now = self._clock.monotonic_ms()
        stop = Stop(who=who, since_ms=self._clock.now_ms())
        await self._feed(events.PersonStopped(at_ms=now, entry=entry, stop=stop), keep=True)
        return True

    async def start(self, entry: EntryId, who: str) -> bool:
        """Keep that it may run: its agent starts it. False if it is not declared here."""
        if entry not in self._state.wanted:
            return False
        now = self._clock.monotonic_ms()
        await self._feed(events.PersonStarted(at_ms=now, entry=entry, who=who), keep=True)
        return True

    async def _feed(self, event: events.Event, *, keep: bool) -> None:
        """Fold in what follows from it; what was asked and is not done here is never begun."""
        inbox: deque[events.Event] = deque([event])
        while inbox:
            self._state, issued = brain.step(self._state, inbox.popleft())
            if keep:
                history = saved.encode_history(self._state.history)
                ledger = saved.encode_ledger(self._state.ledger)
                self._files.write_state({saved.HISTORY: history, saved.LEDGER: ledger})
            for effect in issued:
                if isinstance(effect, effects.Observe) or (
                    keep and isinstance(effect, effects.StopProcess | effects.ForgetProcess)
                ):
                    inbox.append(await self._performer.perform(effect))


class _NoVolumes:
    """Orders on volumes wait for the agent."""

    async def save(self, entry: EntryId, path: str, number: int) -> Saved:
        raise AssertionError(f"{entry} is not saved here ({path}, {number})")

    async def take(
        self, path: str, digest: Digest | None, number: int, *, mode: str | None, owner: str | None
    ) -> str | None:
        raise AssertionError(f"{path} takes nothing here ({digest}, {number}, {mode}, {owner})")


async def _tell_nobody(report: Report) -> None:
    raise AssertionError(f"{report.machine} has no line")
