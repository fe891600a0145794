"""Columns: a list with one value for each machine of a family."""

from collections.abc import Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
Made = TypeVar("Made")


def all_one(column: Sequence[object]) -> bool:
    """Whether a column is one thing all along, as `[thing] * count` makes it."""
    return len(set(map(id, column))) <= 1


def by_pair(left: Sequence[A], right: Sequence[B], make: Callable[[A, B], Made]) -> list[Made]:
    """What `make` gives for each pair, made once for the same two things."""
    marks = list(zip(map(id, left), map(id, right), strict=True))
    distinct = dict(zip(marks, zip(left, right, strict=True), strict=True))
    made = {mark: make(*pair) for mark, pair in distinct.items()}
    return [made[mark] for mark in marks]
