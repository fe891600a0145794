"""Time, as shells have it."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some point; never goes back."""
        ...
