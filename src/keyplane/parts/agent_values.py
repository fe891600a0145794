"""Follows the values that a machine's units read: what the bus has of them, then each as it comes.

Decides nothing about them. What is lost here is asked for again; what nobody says any more is told
as silence, which is no word of the value.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection

from keyplane import wire
from keyplane.converge import events
from keyplane.converge.reaction_state import News
from keyplane.journal import Journal
from keyplane.parts.attention import Attention
from keyplane.ports.bus import ValueBus
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError

log = Journal(__name__.removeprefix("keyplane."))

SPREAD_S = 2.0
"""A bus that comes back is asked by all machines for all values: over two seconds."""
AGAIN_S = 2.0
"""What was refused is asked for again: a machine's rights may come after its declaration."""
REFRESH_S = 60.0
"""A word that was lost on its way costs a minute at most."""
SILENT_MS = 15_000
"""Providers say each value again every five seconds: three that are missed are silence."""
LOOK_S = 1.0
READS_MAX = 32
"""At once: more would wait in the bus, and be late together."""
TIMEOUT_MS = 5_000


class Following:
    """Of one life of an agent."""

    def __init__(
        self,
        *,
        bus: ValueBus,
        clock: Clock,
        spread: Callable[[], float],
        feed: Callable[[events.Event], None],
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._spread = spread
        self._feed = feed
        self._wanted: frozenset[str] = frozenset()
        self._own: frozenset[str] = frozenset()
        self._attention = Attention(clock)
        self._heard_ms: dict[str, int] = {}
        """By the time in which it was listened."""
        self._words: dict[str, tuple[int, str | None]] = {}
        self._silent: set[str] = set()
        self._due = asyncio.Event()
        self._is_back = False
        self._is_cut = False
        bus.on_connected(self._come_back)

    def want(self, exports: Collection[str], own: Collection[str]) -> None:
        """Follow just these; `own` are said on this machine, and need no bus."""
        wanted = frozenset(exports)
        if (wanted, frozenset(own)) == (self._wanted, self._own):
            return
        now = self._attention.now_ms()
        for gone in self._wanted - wanted:
            self._heard_ms.pop(gone, None)
            self._words.pop(gone, None)
            self._silent.discard(gone)
        for export in wanted - self._wanted:
            self._heard_ms[export] = now
        self._wanted, self._own = wanted, frozenset(own)
        self._due.set()

    def hear_own(self, word: wire.Word, *, stored: bool) -> None:
        """What this machine's own agent says."""
        if word.export in self._wanted:
            self._take([word], stored=stored)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._watch())

    def _come_back(self) -> None:
        self._is_back = True
        self._due.set()

    async def _follow(self) -> None:
        wait_s = REFRESH_S
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._due.wait()
            if self._is_back:
                self._is_back = False
                await asyncio.sleep(self._spread() * SPREAD_S)
            self._due.clear()
            wait_s = REFRESH_S if await self._look() else AGAIN_S

    async def _look(self) -> bool:
        """Listen, then read what was said before; False if not all could be had."""
        foreign = self._wanted - self._own
        try:
            heard = await self._bus.listen(sorted(foreign), self._hear)
            read = await self._read(sorted(heard))
        except PortError as error:
            if not self._is_cut:
                self._is_cut = True
                log.warning("no values from the bus", cause=str(error))
            return False
        self._is_cut = False
        self._take(read, stored=True)
        return heard == foreign

    async def _read(self, exports: list[str]) -> list[wire.Word]:
        slots = asyncio.Semaphore(READS_MAX)

        async def one(export: str) -> wire.Word | None:
            async with slots:
                payload = await self._bus.read(export, timeout_ms=TIMEOUT_MS)
            return None if payload is None else _decoded(export, payload)

        words = await asyncio.gather(*(one(export) for export in exports))
        return [word for word in words if word is not None]

    def _hear(self, export: str, payload: bytes) -> None:
        word = _decoded(export, payload)
        if word is None or export not in self._wanted:
            return
        self._heard_ms[export] = self._attention.now_ms()
        self._take([word], stored=False)

    def _take(self, words: Collection[wire.Word], *, stored: bool) -> None:
        """Tell the brain of what it does not know yet."""
        news: list[News] = []
        for word in words:
            known = self._words.get(word.export)
            if known is not None and word.number < known[0]:
                continue
            is_voice = not stored and word.export in self._silent
            if known == (word.number, word.value) and not is_voice:
                continue
            self._words[word.export] = (word.number, word.value)
            if is_voice:
                self._silent.discard(word.export)
            news.append(
                News(export=word.export, value=word.value, number=word.number, stored=stored)
            )
        if news:
            self._feed(events.ValuesTold(at_ms=self._clock.monotonic_ms(), news=tuple(news)))

    async def _watch(self) -> None:
        """Tell when nothing is heard of a provider any more."""
        while True:
            await asyncio.sleep(LOOK_S)
            now = self._attention.now_ms()
            gone = [
                export
                for export in sorted(self._wanted - self._own)
                if export not in self._silent and now - self._heard_ms.get(export, now) > SILENT_MS
            ]
            if gone:
                self._silent.update(gone)
                at_ms = self._clock.monotonic_ms()
                self._feed(events.Silence(at_ms=at_ms, exports=tuple(gone), is_silent=True))


def _decoded(export: str, payload: bytes) -> wire.Word | None:
    word = wire.decode_word(payload, export=export)
    if isinstance(word, wire.Refused):
        log.warning("a value is refused", export=export, reason=word.reason)
        return None
    return word
