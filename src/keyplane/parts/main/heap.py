"""How often a part that holds a whole fleet looks for cycles in its memory."""

import gc

FIRST, SECOND, THIRD = 100_000, 50, 100
"""Decoding makes many objects and no cycles, and Python would look through them after every 700:
half of the time in which the reports of 5,000 machines are taken in. What waits for the look that
comes later is some twenty megabytes at most."""


def look_seldom() -> None:
    gc.set_threshold(FIRST, SECOND, THIRD)
