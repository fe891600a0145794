"""Sources in memory (`ports.sources.Sources`): what a test says that services say."""

import asyncio
from collections.abc import Callable

from keyplane.model.host import ProcessSpec
from keyplane.model.names import EntryId
from keyplane.ports.sources import SourceError

Say = Callable[[str, str | None], str | None]


class MemorySources:
    """Files and outputs by path and by first word; sockets by entry."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.outputs: dict[str, bytes | SourceError | None] = {}
        self.served: dict[EntryId, Say] = {}

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    async def run(
        self, spec: ProcessSpec, command: tuple[str, ...], *, timeout_ms: int
    ) -> bytes | None:
        output = self.outputs.get(command[0])
        if isinstance(output, SourceError):
            raise output
        return output

    async def serve(self, entry: EntryId, path: str, say: Say) -> None:
        self.served[entry] = say
        try:
            await asyncio.Event().wait()
        finally:
            self.served.pop(entry, None)
