"""Parallel lines in one street: each gets a track, and two share one where they never meet."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def pack(spans: Mapping[K, tuple[int, int]], gap: int) -> tuple[dict[K, int], int]:
    """The track of each span, and how many tracks there are.

    Spans on one track are at least `gap` apart. By their beginnings, the longer first, each goes to
    the lowest track that is free: the fewest tracks that there can be.
    """
    ends: list[int] = []
    found: dict[K, int] = {}
    order = sorted(enumerate(spans.items()), key=lambda one: (one[1][1][0], -one[1][1][1], one[0]))
    for _, (key, (start, end)) in order:
        for track, busy in enumerate(ends):
            if busy + gap <= start:
                ends[track] = end
                found[key] = track
                break
        else:
            found[key] = len(ends)
            ends.append(end)
    return found, len(ends)
