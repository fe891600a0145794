"""An artifact store in memory: what it is given, by digest."""

import hashlib
from collections.abc import AsyncIterator

from keyplane.model.names import Digest
from keyplane.ports.store import (
    ArtifactCorruptError,
    ArtifactMissingError,
    Holding,
    Pack,
    StoreUnavailableError,
)

_CHUNK = 64 * 1024


class MemoryStore:
    """The ports `ArtifactStore`, `ArtifactIntake` and `ArtifactShelf`, in memory, uncompressed."""

    def __init__(self) -> None:
        self.archives: dict[Digest, bytes] = {}
        self.made: dict[Digest, int] = {}
        """When each was put; what is missing here was put by somebody else."""
        self.automatic = False
        self.is_down = False

    async def has(self, digest: Digest) -> bool:
        self._reach()
        return digest in self.archives

    async def put(self, digest: Digest, send: Pack) -> None:
        self._reach()
        if digest in self.archives:
            return
        chunks: list[bytes] = []
        send(chunks.append)
        content = b"".join(chunks)
        if f"sha256-{hashlib.sha256(content).hexdigest()}" != digest:
            raise ArtifactCorruptError(f"what was given is not {digest}")
        self.archives[digest] = content
        self.made[digest] = len(self.made)

    def set_automatic(self, *, automatic: bool) -> None:
        self.automatic = automatic

    def holdings(self) -> list[Holding]:
        self._reach()
        return [
            Holding(digest=digest, size=len(content), made_ms=self.made.get(digest))
            for digest, content in sorted(self.archives.items())
        ]

    def remove(self, digest: Digest) -> bool:
        self._reach()
        if digest not in self.made:
            return False
        del self.archives[digest], self.made[digest]
        return True

    async def read(self, digest: Digest) -> AsyncIterator[bytes]:
        self._reach()
        if digest not in self.archives:
            raise ArtifactMissingError(f"the store has no {digest}")
        content = self.archives[digest]
        for start in range(0, len(content), _CHUNK):
            yield content[start : start + _CHUNK]

    def _reach(self) -> None:
        if self.is_down:
            raise StoreUnavailableError("the store does not answer")
