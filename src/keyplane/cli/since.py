"""`--since`: from when on somebody wants to see something."""

from datetime import UTC, datetime

from keyplane.cli import faults
from keyplane.model import duration

HELP = "Begin so long ago (10m), or at a time (2026-03-01T10:00)."

LAST_MS = 253_402_300_799_000
"""The end of the year 9999, in UTC: no calendar goes on."""


def since_ms(said: str | None) -> int:
    """Milliseconds of the Unix epoch, not below 0; 0 if nothing is said."""
    if said is None:
        return 0
    span = duration.parse(said)
    if span is not None:
        now_ms = int(datetime.now(UTC).timestamp() * 1000)  # of who asks
        return max(0, now_ms - span.milliseconds)
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        raise faults.UnusableError(
            f"--since {said} is neither a duration (30s, 10m, 2h) nor a time "
            "(2026-03-01T10:00, in UTC if it names no zone)"
        ) from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return max(0, min(LAST_MS, int(at.timestamp() * 1000)))
