"""Facts of a machine in memory: what a test says."""

from collections.abc import Mapping
from typing import Any

Json = Any


class MemoryFacts:
    """The port `MachineFacts`."""

    def __init__(self, facts: Mapping[str, Json] | None = None) -> None:
        self.now: Mapping[str, Json] = facts or {}

    async def gather(self) -> Mapping[str, Json]:
        return dict(self.now)
