"""An agent's line to its controller: asks, beats, reports.

It verifies that what comes is the controller's and this machine's, and decides nothing about it.
What is lost here costs a heartbeat at most: everything is asked for again.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import nacl.signing

from keyplane import wire
from keyplane.converge import events
from keyplane.journal import Journal
from keyplane.model.declaration import OfferNumber, Report
from keyplane.model.names import Digest, MachineName
from keyplane.ports.bus import AgentBus
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError

log = Journal(__name__.removeprefix("keyplane."))

BEAT_S = 5.0
"""What a lost hint costs."""
SPREAD_S = 2.0
"""A bus that comes back finds all its machines at once: over two seconds, 5,000 of them ask no
faster than one controller answers."""
TIMEOUT_MS = 10_000
"""An answer may be a declaration of megabytes that is made and read from a busy inventory."""
ASK_AGAIN_S = 30.0
"""A failed ask is made again once the bus is back; so often without a word from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the agent is, and whom it believes."""

    machine: MachineName
    controller_key: nacl.signing.VerifyKey
    """Pinned when the machine joined."""
    boot: str
    """Names this life of the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the agent has."""

    asked_with: OfferNumber
    """Of the declaration at hand; lower than `offer` where its text was lost."""
    generation: Digest | None
    """Of the declaration at hand."""
    offer: OfferNumber
    sequence: int
    """Of the last report that was made."""
    told: int
    """Of the last one that was delivered."""
    facts: str | None = None
    """The digest of what the machine is."""


class Line:
    """Asks on every hint, reconnect and failed ask; beats all the while."""

    def __init__(  # noqa: PLR0913  # the ports that it stands on
        self,
        *,
        identity: Identity,
        bus: AgentBus,
        clock: Clock,
        held: Callable[[], Held],
        heard: Callable[[str | None], None],
        spread: Callable[[], float],
    ) -> None:
        """`heard` is told which facts the controller says that it has; `spread` gives a number in [0, 1) for each wait that is not to coincide with others'."""
        self._identity = identity
        self._bus = bus
        self._clock = clock
        self._held = held
        self._heard = heard
        self._spread = spread
        self._due = asyncio.Event()
        self._is_cut = False
        self._log = log.bind(machine=identity.machine)

    async def run(self, feed: Callable[[events.Event], None]) -> None:
        await self._bus.on_hint(self._due.set)
        self._due.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask_on(feed))
            tasks.create_task(self._beat_on())

    async def send(self, report: Report) -> None:
        await self._bus.report(wire.encode_report(report), timeout_ms=TIMEOUT_MS)

    async def _ask_on(self, feed: Callable[[events.Event], None]) -> None:
        while True:
            try:
                async with asyncio.timeout(ASK_AGAIN_S if self._is_cut else None):
                    await self._due.wait()
            except TimeoutError:
                pass
            if self._is_cut:
                await asyncio.sleep(self._spread() * SPREAD_S)
            self._due.clear()
            try:
                answered = await self._ask()
            except PortError as error:
                self._lose(error)
                continue
            if self._is_cut:
                self._is_cut = False
                self._log.info("the line is back")
                feed(events.Connected(at_ms=self._clock.monotonic_ms()))
            for each in answered:
                feed(each)

    async def _ask(self) -> tuple[events.Event, ...]:
        held = self._held()
        ask = wire.Ask(
            have=held.asked_with,
            wire=wire.WIRE_VERSION,
            boot=self._identity.boot,
            generation=held.generation,
        )
        payload = await self._bus.ask(wire.encode(ask), timeout_ms=TIMEOUT_MS)
        answer = wire.decode_answer(payload)
        if isinstance(answer, wire.Refused):
            return (self._refused(answer, None),)
        self._heard(answer.facts)
        news: list[events.Event] = []
        if answer.heard is not None and answer.heard < self._held().told:
            news.append(events.Connected(at_ms=self._clock.monotonic_ms()))
        if answer.declaration is not None:
            news.append(self._opened(answer.declaration, answer.highest))
        if answer.permits:
            now_ms = self._clock.monotonic_ms()
            news.append(events.Permitted(at_ms=now_ms, permits=answer.permits))
        return tuple(news)

    def _opened(self, signed: bytes, number: OfferNumber) -> events.Event:
        opened = wire.open_declaration(
            signed, key=self._identity.controller_key, machine=self._identity.machine
        )
        if isinstance(opened, wire.Refused):
            return self._refused(opened, number)
        return events.Offered(at_ms=self._clock.monotonic_ms(), declaration=opened)

    def _refused(self, refused: wire.Refused, number: OfferNumber | None) -> events.Event:
        self._log.warning("refused", why=refused.why, reason=refused.reason)
        return events.OfferRefused(
            at_ms=self._clock.monotonic_ms(), cause=refused.reason, offer=number
        )

    async def _beat_on(self) -> None:
        wait_s = self._spread() * BEAT_S
        while True:
            held = self._held()
            beat = wire.Beat(
                offer=held.offer,
                sequence=held.sequence,
                generation=held.generation,
                boot=self._identity.boot,
                facts=held.facts,
            )
            try:
                await self._bus.beat(wire.encode(beat))
            except PortError as error:
                self._lose(error)
            await asyncio.sleep(wait_s)
            wait_s = BEAT_S

    def _lose(self, error: PortError) -> None:
        if not self._is_cut:
            self._is_cut = True
            self._log.warning("the line is cut", cause=str(error))
