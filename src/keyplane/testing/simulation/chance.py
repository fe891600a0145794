"""All that is left to chance, from one seed."""

from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251 - the seed is data, and nothing else is random here
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """Draws, in the order in which they are asked for."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - to be repeated, not to be secret

    def share(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def happens(self, odds: float) -> bool:
        return odds > 0 and self._random.random() < odds

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()

    def count(self, low: int, high: int) -> int:
        """A whole number from low to high, both among them."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, of: Sequence[T]) -> T:
        return of[self.count(0, len(of) - 1)]

    def some(self, of: Sequence[T], odds: float) -> list[T]:
        return [each for each in of if self.happens(odds)]

    def weighed(self, weights: Mapping[T, int]) -> T:
        left = self.count(1, sum(weights.values()))
        for each, weight in weights.items():
            left -= weight
            if left <= 0:
                return each
        raise AssertionError("weights that sum up to what was drawn from")
