"""How long to wait before what failed is tried again."""

FIRST_MS = 200
"""A port or a lock of the one before is free by then, and a loop that dies at once costs five
starts in its first second at most."""

LONGEST_MS = 30_000
"""As often as a full pass: a cause that a person mends is noticed within half a minute."""

FAILED_AFTER = 3
"""So many failures in a row are told as failed: a rollout ends within a second of a unit that
dies at once, and one lost race does not end it."""


def delay_ms(failures: int) -> int:
    """After so many failures in a row."""
    doublings = min(failures - 1, 10)  # 200 ms doubled ten times is past the longest
    return min(FIRST_MS << doublings, LONGEST_MS)
