"""When a deadline is over, as something to be waited for."""

import asyncio

from keyplane.ports.clock import Clock


class Due:
    """The next time at which something is over, though nothing tells of it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at_ms: int | None = None
        self._moved = asyncio.Event()

    def at(self, monotonic_ms: int | None) -> None:
        """It is then, or, with None, never."""
        if monotonic_ms != self._at_ms:
            self._at_ms = monotonic_ms
            self._moved.set()

    async def wait(self, most_s: float) -> None:
        """Until then, or for so long. One that is past is what the last look did not end."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + most_s
        while (left_s := end_s - loop.time()) > 0:
            self._moved.clear()
            due_s = self._left_s()
            try:
                async with asyncio.timeout(min(left_s, due_s) if due_s > 0 else left_s):
                    await self._moved.wait()
            except TimeoutError:
                return

    def _left_s(self) -> float:
        if self._at_ms is None:
            return 0.0
        return (self._at_ms - self._clock.monotonic_ms()) / 1000
