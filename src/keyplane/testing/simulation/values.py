"""Dynamic values in a simulated fleet, whose services change them while they run.

The bus may lose its store with itself; words are lost, late, twice and out of order.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from keyplane.model.host import ProcessSpec
from keyplane.model.names import EntryId
from keyplane.ports.bus import BusUnavailableError
from keyplane.ports.sources import SourceError
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.host import Ground
from keyplane.testing.simulation.life import Life
from keyplane.testing.simulation.network import Network

Say = Callable[[str, str | None], str | None]


class Words:
    """What the bus has of each export, and who listens. Of a whole fleet."""

    def __init__(self, network: Network, chance: Chance) -> None:
        self.network = network
        self.chance = chance
        network.on_crash.append(self.lose)
        network.on_restart.append(self.back)
        self.stored: dict[str, tuple[int, bytes]] = {}
        self.count = 0
        self.ends: list[ValuesEnd] = []

    def join(self, end: "ValuesEnd") -> None:
        self.ends = [each for each in self.ends if not each.life.is_dead]
        self.ends.append(end)

    def lose(self) -> None:
        """The bus ended, with all that it stored; or with its connections alone."""
        if self.chance.happens(0.5):
            self.stored.clear()
        for end in self.ends:
            end.takes.clear()

    def back(self) -> None:
        for end in self.ends:
            end.woken()

    def spread(self, export: str, payload: bytes) -> None:
        loop = asyncio.get_running_loop()
        odds = self.network.odds
        for end in self.ends:
            if export not in end.takes or self.chance.happens(odds.lost):
                continue
            for _ in range(1 + self.chance.happens(odds.twice)):
                late = self.chance.between(0.001, 9.0 if self.chance.happens(odds.late) else 0.05)
                loop.call_later(late, end.hear, export, payload)


class ValuesEnd:
    """The port `ValueBus` of one life of an agent."""

    def __init__(self, words: Words, life: Life) -> None:
        self.life = life
        self.takes: dict[str, Callable[[str, bytes], None]] = {}
        self._words = words
        self._wakes: list[Callable[[], None]] = []

    def on_connected(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)
        if self._words.network.is_up:
            wake()

    def woken(self) -> None:
        if not self.life.is_dead:
            for wake in self._wakes:
                wake()

    def hear(self, export: str, payload: bytes) -> None:
        take = self.takes.get(export)
        if take is not None and not self.life.is_dead:
            take(export, payload)

    async def say(self, export: str, payload: bytes, *, only_if_none: bool, timeout_ms: int) -> int:
        self.life.boundary(f"before it says {export}")
        await self._way()
        words = self._words
        if export not in words.stored or not only_if_none:
            words.count += 1
            words.stored[export] = (words.count, payload)
        words.spread(export, payload)
        self.life.boundary(f"after it said {export}")
        return words.stored[export][0]

    async def read(self, export: str, *, timeout_ms: int) -> bytes | None:
        await self._way()
        found = self._words.stored.get(export)
        return None if found is None else found[1]

    async def listen(
        self, exports: Collection[str], take: Callable[[str, bytes], None]
    ) -> frozenset[str]:
        await self._way()
        self.takes = dict.fromkeys(exports, take)
        return frozenset(exports)

    async def _way(self) -> None:
        self.life.alive()
        await asyncio.sleep(self._words.chance.between(0.001, 0.05))
        self.life.alive()
        if not self._words.network.is_up or self._words.chance.happens(
            self._words.network.odds.lost
        ):
            raise BusUnavailableError("no answer")


@dataclass(frozen=True, slots=True)
class LifeSources:
    """The port `Sources`: the files of a machine's services."""

    ground: Ground
    life: Life

    def read(self, path: str) -> bytes | None:
        self.life.alive()
        return self.ground.exported.get(path)

    async def run(
        self, spec: ProcessSpec, command: tuple[str, ...], *, timeout_ms: int
    ) -> bytes | None:
        raise SourceError("no commands here")

    async def serve(self, entry: EntryId, path: str, say: Say) -> None:
        await asyncio.Event().wait()
