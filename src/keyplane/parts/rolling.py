"""Drives the one open rollout: saves each state before its effects run, and tells who listens.

What to do next is `rollout`'s to decide. An effect that fails is tried again at the next tick; the
rollout's own deadlines end it if it never succeeds.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

from keyplane import metrics
from keyplane.journal import Journal
from keyplane.model.declaration import Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.volumes import OrderChange
from keyplane.parts import control_messages as messages
from keyplane.parts import freezing, held, mixing, rolling_state, telling
from keyplane.parts.declared import Declared
from keyplane.parts.due import Due
from keyplane.parts.offering import Offering, UnofferableError
from keyplane.parts.planning import Base
from keyplane.parts.recording import Recording
from keyplane.parts.sending import Sending
from keyplane.parts.together import Together
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError
from keyplane.ports.inventory import (
    Change,
    Inventory,
    PlannedEntry,
    RevisionMovedError,
    StoredPlan,
    StoredRollout,
    TargetMovedError,
)
from keyplane.rollout import deadlines, machine, reckoning, returning
from keyplane.rollout import state as rollout_state
from keyplane.rollout.outcome import Outcome
from keyplane.rollout.policies import Terms
from keyplane.rollout.saving import Saving
from keyplane.rollout.state import (
    Effect,
    Event,
    Finish,
    Missed,
    Offer,
    Offered,
    Paused,
    Reported,
    Resumed,
    Started,
    State,
    Superseded,
    Ticked,
)

log = Journal(__name__.removeprefix("keyplane."))


class Rolling:
    """The rollout that is open, if one is; nothing of it is remembered here alone."""

    def __init__(self, *, inventory: Inventory, offering: Offering, clock: Clock) -> None:
        self._inventory = inventory
        self._offering = offering
        self._clock = clock
        self._began_ms = clock.now_ms() - clock.monotonic_ms()
        self._sending = Sending(inventory=inventory, offering=offering, clock=clock)
        self._lock = asyncio.Lock()
        self._number: int | None = None
        self._state: State | None = None
        self.latest: State | None = None
        """Of the one that is open, or the last that was, as far as this life knows it."""
        self._saved: State | None = None
        """What is written of it: reports alone move it further, and stand in the inventory."""
        self._saving = Saving()
        self._base: Mapping[EntryId, PlannedEntry] = {}
        self._target: StoredPlan | None = None
        self._resumed = False
        self._pending: deque[Offer] = deque()
        self._problem = ""
        self.declared = Declared(inventory, offering)
        self.recording = Recording(inventory=inventory, clock=clock)
        self.refused: Callable[[], Mapping[EntryId, str]] = dict
        """Says which entries have to wait for a permit, and why."""
        self._taking_in = Together(self._take_in)
        self._telling = telling.Telling()
        self.due = Due(clock)

    @property
    def is_open(self) -> bool:
        return self._state is not None

    async def status(self, target: StoredPlan | None) -> messages.RolloutStatus | None:
        return rolling_state.status(await self._inventory.rollout(), self._problem, target)

    async def begin(  # noqa: PLR0913  # one commit writes all of it
        self,
        stored: StoredPlan,
        base: Base,
        *,
        parent: Digest | None,
        before: StoredPlan | None,
        who: str,
        terms: Terms,
        change: Change | None = None,
        volumes: OrderChange | None = None,
        request: str = "",
    ) -> AsyncIterator[messages.Event]:
        """Commit the target and start towards it; one that is open ends as superseded.

        What happens is told from the start on.
        """
        async with self._taken_up():
            if base.seen != await rolling_state.now_sent(self._inventory):
                raise mixing.BaseMovedError(
                    "the rollout that is open went on since this difference was shown: look again"
                )
            # Read here, as a report that comes meanwhile would reach the rollout before alone.
            reports = await self._reports()
            terms = await rolling_state.terms(self._inventory, terms, stored)
            state = rolling_state.first_state(stored, base, before, reports, terms)
            if state.steps:
                # Entries of later steps stay as they are: what they say is kept with the target.
                kept = {**(before.contents if before else {}), **base.contents, **stored.contents}
                stored = replace(stored, contents=kept)
            try:
                row = await self._inventory.commit(
                    stored,
                    parent=parent,
                    rollout=rollout_state.encode(state),
                    base=base.entries,
                    who=who,
                    at_ms=self._clock.now_ms(),
                    change=change,
                    volumes=volumes,
                    request=request,
                )
                await self._close_superseded(row, "" if change is None else change.verb)
                self._take_up(row, state, stored)
                self._telling.begin(reports)
                events = self._listen()
                await self._feed(Started(now_ms=self._now_ms()))
                await self.declared.begun(base, stored, state.guards)
            except (TargetMovedError, RevisionMovedError):
                raise
            except (PortError, asyncio.CancelledError):
                self._forget()
                raise
        return events

    async def reported(self, report: Report) -> None:
        """Record a report, and see what follows from it. Returns once it is recorded."""
        await self.recording.record(report)
        await self._taking_in(report)

    async def _take_in(self, reports: Sequence[Report]) -> list[None]:
        async with self._taken_up():
            if self._state is not None:
                for each in reports:
                    self._telling.tell(each, self._state)
                now_ms = self._now_ms()
                await self._feed(*(Reported(report=each, now_ms=now_ms) for each in reports))
        return [None] * len(reports)

    async def known(self) -> frozenset[MachineName]:
        """Machines that ever reported, and those that are lost in the midst of a rollout."""
        lost = frozenset[MachineName]() if self._state is None else self._state.lost
        return lost.union(await self.recording.known())

    async def offer_again(self, machines: Sequence[MachineName]) -> None:
        """Offer machines what is declared for them, with what people have said meanwhile."""
        async with self._taken_up():
            self.declared.owe(machines)
            await self.declared.pay()

    async def tick(self, absent: frozenset[MachineName]) -> None:
        """Keep time; `absent` are machines that were not heard for a while."""
        try:
            async with self._taken_up():
                try:
                    await self._feed(*await self._offered())
                    await self.declared.pay()
                except PortError as error:
                    self._note(error)  # its deadline comes all the same
                if self._state is not None and self._state.absent != absent:
                    await self._feed(Missed(absent=absent, now_ms=self._now_ms()))
                await self._feed(Ticked(now_ms=self._now_ms(), refused=self.refused()))
                if self._state is not None and self._state is not self._saved:
                    await self._save(self._state)
        except PortError as error:
            self._note(error)

    async def tell(self, number: int, event: Event) -> bool:
        """Have the open rollout hear a person's word; False if that one is not open."""
        async with self._taken_up():
            if self._state is None or self._number != number:
                return False
            await self._feed(replace(event, now_ms=self._now_ms()))
        return True

    async def freeze(self, why: str) -> None:
        """From now on no rollout sends anything further and no machine reacts to a value.

        With no reason, they do again.
        """
        async with self._taken_up():
            await self._inventory.freeze(why)
            try:
                await self._heed_freeze()
                await self.declared.owe_reacting()
                await self.declared.pay()
            except PortError:
                self._forget()  # it holds: what is left of it is done when it is read anew
                raise

    async def follow(self) -> AsyncIterator[messages.Event]:
        """Yield what happens to the end, or that of the last one at once; first, of which it is."""
        async with self._taken_up():
            if self._state is not None:
                return self._listen()
        latest, target = await self._inventory.rollout(), await self._inventory.target()
        return telling.only(*rolling_state.last_end(latest, target))

    async def taken(self, request: str) -> AsyncIterator[messages.Event] | None:
        """What `follow` yields of what this request began, or how that was overtaken; if it did."""
        async with self._taken_up():  # of an earlier life it is written down how it ended
            found = await rolling_state.requested(self._inventory, request)
        if len(found) > 1:
            return telling.only(*rolling_state.overtaken(*found))
        return await self.follow() if found else None

    def _listen(self) -> AsyncIterator[messages.Event]:
        assert self._state is not None
        size = sum(map(rolling_state.size, self._state.steps))
        revision = self._target.revision if self._target is not None else None
        return self._telling.listen(
            messages.Begun(rollout=self._number or 0, entries=size, revision=revision)
        )

    # Inside the lock.

    @contextlib.asynccontextmanager
    async def _taken_up(self) -> AsyncGenerator[None]:
        """Hold the lock, having gone on with what another life of this controller left open."""
        async with self._lock:
            if not self._resumed:
                await self._resume()
                self._resumed = True
            yield

    async def _resume(self) -> None:
        reports = await self._reports()
        for name, report in reports.items():
            # An older backup knows lower numbers than what machines have told it since.
            self._offering.heard(name, report.offer)
        row = await self._inventory.rollout()
        target = await self._inventory.target()
        if row is None or target is None:
            return
        await rolling_state.end_overtaken(self._inventory, row.number, self._now_ms())
        # Who was offered what is in no step before the end of the last life is not known.
        await self.declared.owe_unsure()
        state = rollout_state.decode(row.state)
        if not row.open:
            self.latest = state
            if state is not None and row.number == self._number:
                self._finish(reckoning.outcome(state))  # it was saved as ended, and not told
            return
        if state is None:
            log.error("a rollout of another release cannot be resumed", rollout=row.number)
            await self._inventory.save_rollout(row.number, state=row.state, is_open=False)
            return
        self._take_up(row, state, target)
        await self._feed(Started(now_ms=self._now_ms()))
        for report in reports.values():
            # Its controller may have been killed once it was recorded: its agent says it no more.
            await self._feed(Reported(report=report, now_ms=self._now_ms()))
        await self._heed_freeze()

    async def _heed_freeze(self) -> None:
        """Hold the open rollout for as long as the fleet is frozen; a person's pause stays."""
        if self._state is None:
            return
        why = freezing.pause(await self._inventory.frozen())
        paused, now = self._state.paused, self._now_ms()
        if why and (not paused or freezing.is_pause(paused)):
            await self._feed(Paused(why=why, now_ms=now))
        elif not why and freezing.is_pause(paused):
            await self._feed(Resumed(now_ms=now))

    def _now_ms(self) -> int:
        """As the wall clock would go if nobody had set it since: deadlines know no jumps."""
        return self._began_ms + self._clock.monotonic_ms()

    def _forget(self) -> None:
        """An answer was lost, and the inventory knows better what came of it: read it anew."""
        self._state = None
        self._resumed = False
        self.declared.changed(None)

    def _take_up(self, row: StoredRollout, state: State, target: StoredPlan) -> None:
        self._number, self._base, self._target = row.number, row.base, target
        self._state = self._saved = self.latest = state
        self._saving = Saving()
        self._pending.clear()
        self._problem = ""
        self.declared.changed(state.guards)

    async def _close_superseded(self, by: StoredRollout, verb: str) -> None:
        if self._state is None:
            return
        state, effects = machine.step(self._state, Superseded(now_ms=self._now_ms()))
        assert self._number is not None
        await self._inventory.save_rollout(
            self._number, state=rollout_state.encode(state), is_open=False
        )
        for effect in effects:
            if isinstance(effect, Finish):
                self._finish(effect.outcome, telling.taken_over(by.number, by.who, verb))

    async def _feed(self, *happened: Event) -> None:
        events = deque(happened)
        while events and self._state is not None:
            before = state = self._state
            taken, effects = list[Event](), tuple[Effect, ...]()
            while events and not effects:
                taken.append(events.popleft())
                state, effects = machine.step(state, taken[-1])
            if rolling_state.is_recorded(before, state, taken) and not effects:
                self._stands(state)
            elif state is not before:
                await self._save(state)
                if (said := telling.progressed(before, state, taken)) is not None:
                    self._telling.say(said)
            for effect in effects:
                if isinstance(effect, Finish):
                    self._finish(effect.outcome)
                else:
                    self._pending.append(effect)
            try:
                events.extend(await self._offered())
            except PortError as error:
                self._note(error)

    async def _save(self, state: State) -> None:
        assert self._number is not None
        try:
            saved, is_open = self._saving.encode(state), state.phase.is_open
            await self._inventory.save_rollout(self._number, state=saved, is_open=is_open)
        except PortError:
            self._forget()  # what was offered by then is asked for again
            raise
        self._saved = state
        self._stands(state)

    def _stands(self, state: State) -> None:
        self._state = self.latest = state
        due_ms = deadlines.due_ms(state)
        self.due.at(None if due_ms is None else due_ms - self._began_ms)

    async def _offered(self) -> list[Event]:
        """Carry out the offers that are asked; each is dropped once it is done."""
        events: list[Event] = []
        while self._pending and self._state is not None and self._target is not None:
            effect = self._pending[0]
            try:
                numbers = await self._sending.send(self._state, effect, self._base, self._target)
            except (mixing.UnsoundError, UnofferableError) as error:
                self._pending.popleft()
                log.warning("the step cannot be sent", rollout=self._number, problem=str(error))
                now, fled = self._now_ms(), returning.without(self._state) is not None
                return [*events, mixing.unsendable(error, effect.machines, now, fled=fled)]
            self._pending.popleft()
            self._problem = ""
            now = self._now_ms()
            events += [
                Offered(step=effect.step, machine=name, offer=number, now_ms=now, back=effect.back)
                for name, number in numbers.items()
            ]
        return events

    def _note(self, error: PortError) -> None:
        self._problem = str(error)
        log.warning("the rollout waits", rollout=self._number, problem=self._problem)

    def _finish(self, outcome: Outcome, successor: str = "") -> None:
        state, self._state = self._state, None
        rows = [] if state is None else held.rows(state, self._base, self._target)
        self._pending.clear()
        ended = telling.ended(outcome, self._problem, successor, rows)
        metrics.rollouts.labels(ended.outcome).inc()
        log.info("rollout ended", rollout=self._number, outcome=ended.outcome)
        self._telling.say(ended)

    async def _reports(self) -> dict[MachineName, Report]:
        stored = await self._inventory.reports()
        return {name: each.report for name, each in stored.items()}
