"""The volumes of a machine as one life of its agent has them, and what services write there.

A volume's content is the list of all that was ever written to it, so that it tells what was lost.
"""

import asyncio
from dataclasses import dataclass

from keyplane.model.names import Digest, EntryId
from keyplane.model.volumes import Saved
from keyplane.ports.store import StoreUnavailableError
from keyplane.testing.simulation.host import Ground
from keyplane.testing.simulation.life import Life


@dataclass(frozen=True, slots=True)
class LifeVolumes:
    """The port `Volumes`."""

    ground: Ground
    life: Life

    async def save(self, entry: EntryId, path: str, number: int) -> Saved:
        ground, what = self.ground, f"save {path}"
        self.life.boundary(f"before {what}")
        ground.watch.volumes.saving(ground.name, entry, ground.memory)
        await self._takes_time(what)
        self._reach_store()
        saved = await ground.memory.volumes.save(entry, path, number)
        ground.store.archives[saved.digest] = ground.memory.volumes.stored[saved.digest]
        ground.watch.acted(ground.name, f"{what} as {saved.digest[7:15]}")
        self.life.boundary(f"after {what}")
        return saved

    async def take(
        self, path: str, digest: Digest | None, number: int, *, mode: str | None, owner: str | None
    ) -> str | None:
        ground, what = self.ground, f"take {path}"
        self.life.boundary(f"before {what}")
        await self._takes_time(what)
        self._reach_store()
        if digest is not None and await ground.store.has(digest):
            ground.memory.volumes.stored[digest] = ground.store.archives[digest]
        kept = await ground.memory.volumes.take(path, digest, number, mode=mode, owner=owner)
        ground.watch.acted(ground.name, f"{what} for {number}")
        self.life.boundary(f"after {what}")
        return kept

    async def _takes_time(self, what: str) -> None:
        await asyncio.sleep(self.ground.chance.between(0.005, 0.5))
        self.ground.room()
        self.ground.trip(what)
        self.life.boundary(f"amid {what}")

    def _reach_store(self) -> None:
        if self.ground.store.is_down:
            raise StoreUnavailableError("the store does not answer")
