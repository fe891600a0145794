"""Where an agent has from what its machine's services export while they run."""

from collections.abc import Callable
from typing import Protocol

from keyplane.model.host import ProcessSpec
from keyplane.model.names import EntryId
from keyplane.ports.errors import PermanentError


class SourceError(PermanentError):
    """What the source gives cannot be had: it is no answer that it is gone."""


class UnsettledError(SourceError):
    """What is there was another when it was looked at last: it may be half of what is to be."""


class Sources(Protocol):
    """Files, commands, and what services say themselves."""

    def read(self, path: str) -> bytes | None:
        """The content of a declared file; None if nothing is there.

        UnsettledError until a second look finds what the first one did: a file may be rewritten
        where it is. SourceError if it is no file, is too large, or cannot be read.
        """
        ...

    async def run(
        self, spec: ProcessSpec, command: tuple[str, ...], *, timeout_ms: int
    ) -> bytes | None:
        """What a command prints that is run as the unit would; None if it ends other than by 0.

        SourceError if it could not be run, or does not end in time.
        """
        ...

    async def serve(
        self, entry: EntryId, path: str, say: Callable[[str, str | None], str | None]
    ) -> None:
        """Until cancelled, take what the entry's own units say at the socket of that path.

        `say(name, value)` is called with each, None for one that is withdrawn; it answers what is
        wrong with it, or None.
        """
        ...
