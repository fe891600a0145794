"""Time in which somebody listened: who stood still himself takes nobody for silent by that."""

from keyplane.ports.clock import Clock

STEP_MS = 5_000
"""Whoever listens looks every second, and a busy machine makes it a few. One that does not look for
longer was stopped, or its machine was: what was said meanwhile it hears only after that."""


class Attention:
    """A clock that goes on by a step at most between two looks at it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked_ms = clock.monotonic_ms()
        self._passed_ms = 0

    def now_ms(self) -> int:
        now = self._clock.monotonic_ms()
        self._passed_ms += min(now - self._looked_ms, STEP_MS)
        self._looked_ms = now
        return self._passed_ms
