"""What can be found out about the machine on which an agent runs."""

from collections.abc import Mapping
from typing import Any, Protocol

Json = Any


class MachineFacts(Protocol):
    """Of one machine."""

    async def gather(self) -> Mapping[str, Json]:
        """All of it, by name, as it is now: texts, numbers, true and false, lists of texts.

        What cannot be found out is left out; this never raises. Nobody changes what it gave.
        """
        ...
