"""Wall clocks that jump."""

import asyncio

from keyplane.testing.clock import EPOCH_MS


class SkewedClock:
    """The port `Clock` of one computer."""

    def __init__(self) -> None:
        self.skew_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + self.monotonic_ms() + self.skew_ms

    def monotonic_ms(self) -> int:
        return 1_000 + round(asyncio.get_running_loop().time() * 1_000)
