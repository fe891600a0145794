"""A line with branches, as few paths that meet in dots. It knows nothing of what it connects."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keyplane.drawing.geometry import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One line, laid out."""

    paths: tuple[tuple[Point, ...], ...]
    """Between ends and branches; corners only, each path right-angled."""
    dots: tuple[Point, ...]
    """Where it branches. Where two lines cross there is none."""


@dataclass(slots=True)
class Drafting:
    """A line that is put together of straight pieces; pieces meet where both name a point."""

    _near: dict[Point, set[Point]] = field(default_factory=dict[Point, set[Point]])

    def level(self, down: int, across: Iterable[int]) -> None:
        """A horizontal piece through all of these."""
        self._join([(x, down) for x in sorted(set(across))])

    def upright(self, across: int, down: Iterable[int]) -> None:
        """A vertical piece through all of these."""
        self._join([(across, y) for y in sorted(set(down))])

    def _join(self, points: Sequence[Point]) -> None:
        for one, other in itertools.pairwise(points):
            self._near.setdefault(one, set()).add(other)
            self._near.setdefault(other, set()).add(one)

    def wire(self) -> Wire:
        knots = [point for point, near in sorted(self._near.items()) if len(near) != 2]
        walked: set[tuple[Point, Point]] = set()
        paths: list[tuple[Point, ...]] = []
        for knot in knots:
            for towards in sorted(self._near[knot]):
                if (knot, towards) in walked:
                    continue
                path = [knot, towards]
                while len(self._near[path[-1]]) == 2:
                    path.append(next(iter(self._near[path[-1]] - {path[-2]})))
                walked.add((path[-1], path[-2]))
                paths.append(_corners(path))
        return Wire(
            paths=tuple(paths),
            dots=tuple(knot for knot in knots if len(self._near[knot]) > 2),
        )


def _corners(path: Sequence[Point]) -> tuple[Point, ...]:
    found = [path[0]]
    for before, point, after in zip(path, path[1:], path[2:], strict=False):
        if not (before[0] == point[0] == after[0] or before[1] == point[1] == after[1]):
            found.append(point)
    return (*found, path[-1])
