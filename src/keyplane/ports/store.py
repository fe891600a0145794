"""The artifact store: OCI, by digest."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from keyplane.model.names import Digest
from keyplane.ports.errors import PermanentError, TransientError


class StoreUnavailableError(TransientError):
    """The store did not answer."""


class ArtifactMissingError(PermanentError):
    """The store has no such artifact."""


class ArtifactCorruptError(TransientError):
    """What the store gave is not what the digest says."""


Pack = Callable[[Callable[[bytes], object]], None]
"""Sends an uncompressed tar, piece by piece, to what it is given. Blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One archive that a store has."""

    digest: Digest
    size: int
    """Bytes of it as it is kept."""
    made_ms: int | None
    """When Keyplane packed it here; None: that is not recorded, so it is never let go."""


class ArtifactStore(Protocol):
    """Keeps archives under the digest of their uncompressed tar."""

    async def has(self, digest: Digest) -> bool: ...

    def read(self, digest: Digest) -> AsyncIterator[bytes]:
        """The compressed tar, in chunks; its content is yet to be verified by the reader."""
        ...


class ArtifactIntake(Protocol):
    """The side of a store that takes archives in."""

    async def has(self, digest: Digest) -> bool: ...

    async def put(self, digest: Digest, send: Pack) -> None:
        """Keep the tar that is sent; ArtifactCorruptError if it is not what the digest says.

        `send` is called in a thread. Nothing is kept unless all of it was. One that is there
        already is left as it is.
        """
        ...


class ArtifactShelf(Protocol):
    """The side of a store from which archives are let go. Calls block."""

    @property
    def automatic(self) -> bool:
        """Whether what nothing names goes after each apply."""
        ...

    def set_automatic(self, *, automatic: bool) -> None: ...

    def holdings(self) -> list[Holding]:
        """All archives, by digest."""
        ...

    def remove(self, digest: Digest) -> bool:
        """Let one go, its manifest first; False for one that Keyplane did not record making."""
        ...
