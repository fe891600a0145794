"""The machine's clock."""

import time


class SystemClock:
    """`ports.clock.Clock`, for real."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
