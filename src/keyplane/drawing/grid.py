"""Where each machine stands: rows of boxes, with a street below each row and between columns.

A box that is wider than the columns are takes several of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SIDES = 1.5
"""The wished width for a height of one: that of most screens."""
CLIMB_MAX = 90
"""Machines up to which places are exchanged for shorter lines; pairs times passes grow with the
square, and with more machines the order of names is worth more than a short line."""
PASSES_MAX = 8
GAIN = 0.75
"""The lines are to be so much shorter, or the names stay in order."""
BENT = 0.4
"""How much the sides count against the area: a smaller picture is worth being a little too wide."""
SHUT = 0.5
"""How much worse a picture of many rows is in which no line gets down between the columns."""
SLACK = 7
"""A box that is wider than a column by less than a seventh takes no second one: the column grows."""
NEAR = 3
"""Numbers of columns that are tried on both sides of the one that areas alone would give."""

Size = tuple[int, int]
"""Width and height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The place of one block."""

    row: int
    column: int
    span: int


def shape(sizes: Sequence[Size], wide: int, street: int) -> tuple[float, int, list[Cell]]:
    """The best number of columns of this width: how bad it is, the number, and all cells."""
    best: tuple[float, int, list[Cell]] | None = None
    spans = [span(width, wide, street) for width, _ in sizes]
    least = max(spans)
    area = sum(one * (height + street) for one, (_, height) in zip(spans, sizes, strict=True))
    ideal = round((area * SIDES / (wide + street)) ** 0.5)
    for columns in range(max(least, ideal - NEAR), max(least, ideal + NEAR) + 1):
        cells = _filled(spans, columns)
        heights: dict[int, int] = {}
        for (_, height), cell in zip(sizes, cells, strict=True):
            heights[cell.row] = max(heights.get(cell.row, 0), height)
        down = sum(heights.values()) + len(heights) * street
        sides = columns * (wide + street) / down / SIDES
        score = max(sides, 1 / sides) ** BENT * columns * (wide + street) * down
        shut = sum(each - 1 for each in spans) / max(1, (columns - 1) * len(heights))
        score *= 1 + SHUT * shut * min(1, (len(heights) - 1) / 8)
        if best is None or score < best[0]:
            best = (score, columns, cells)
    assert best is not None
    return best


def span(width: int, wide: int, street: int) -> int:
    """How many columns a box takes."""
    return max(1, -(-(width - wide // SLACK + street) // (wide + street)))


def _filled(spans: Sequence[int], columns: int) -> list[Cell]:
    """The boxes row by row."""
    cells: list[Cell] = []
    row = column = 0
    for each in spans:
        if column + each > columns:
            row, column = row + 1, 0
        cells.append(Cell(row=row, column=column, span=each))
        column += each
    return cells


def order(count: int, weights: Mapping[tuple[int, int], int], columns: int) -> list[int]:
    """The order of boxes in which lines are short; as they are where that is no great matter.

    `weights` says how many lines run between two boxes, by their numbers.
    """
    found = list(range(count))
    if count > CLIMB_MAX or count < 3:
        return found
    near: list[dict[int, int]] = [{} for _ in range(count)]
    for (one, other), weight in weights.items():
        near[one][other] = near[one].get(other, 0) + weight
        near[other][one] = near[other].get(one, 0) + weight
    places = [divmod(index, columns) for index in range(count)]
    at = list(places)

    def cost(machine: int) -> int:
        row, column = at[machine]
        return sum(
            weight * (abs(at[other][0] - row) + abs(at[other][1] - column))
            for other, weight in near[machine].items()
        )

    whole = sum(cost(one) for one in range(count))
    for _ in range(PASSES_MAX):
        moved = False
        for one in range(count):
            for other in range(one + 1, count):
                before = cost(one) + cost(other)
                at[one], at[other] = at[other], at[one]
                if cost(one) + cost(other) < before:
                    moved = True
                else:
                    at[one], at[other] = at[other], at[one]
        if not moved:
            break
    if sum(cost(one) for one in range(count)) > GAIN * whole:
        return found
    return _named(at, near)


def _named(at: Sequence[tuple[int, int]], near: Sequence[Mapping[int, int]]) -> list[int]:
    """The order of places, where machines with the same neighbours stand by name."""
    alike: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for machine, neighbours in enumerate(near):
        alike.setdefault(tuple(sorted(neighbours.items())), []).append(machine)
    settled = {
        place: machine
        for several in alike.values()
        for place, machine in zip(sorted(at[one] for one in several), several, strict=True)
    }
    return [settled[place] for place in sorted(settled)]
