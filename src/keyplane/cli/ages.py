"""When something was, and how long ago that is, as people are told it."""

from datetime import UTC, datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def ago(milliseconds: int) -> str:
    """`12 s ago`, in the largest unit that leaves a whole number; `just now` within a second."""
    seconds = milliseconds // 1000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"


def at(at_ms: int) -> str:
    """To the second, in UTC and said so: as the logs and events of every machine have it."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
