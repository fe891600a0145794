"""How the boxes stand before there are lines: the arrangement in each, and the grid of all.

Both are chosen together, from a few dozen tries, for the picture that fills a screen best.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from keyplane.drawing import cards, grid, packing, streets
from keyplane.drawing.cards import Card, Level, Port
from keyplane.drawing.packing import Block
from keyplane.drawing.sketch import Sketch, natural

# Heights of a column that are tried, in cards of the least height.
TALL = (1, 2, 3, 4, 5, 6, 8, 10, 13, 18, 26, 40)
PACKED = 1.35
"""So much smaller a picture has to be before readers stand in the column of their provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """All boxes in their cells, before there are lines."""

    blocks: Sequence[Block]
    cells: Sequence[grid.Cell]
    columns: int


def ground(level: Level, sketch: Sketch) -> Ground:
    """Choose how each machine is arranged and where it stands."""
    use = cards.OF[level]
    made = sorted(_cards(level, sketch), key=lambda card: natural(card.node.id))
    reads: dict[str, list[str]] = {}
    for link in sketch.links:
        reads.setdefault(link.consumer, []).append(link.provider)
    of_machine: dict[str | None, list[Card]] = {name: [] for name, _ in sketch.machines}
    for card in made:
        of_machine.setdefault(card.node.machine, []).append(card)
    outside = of_machine.pop(None, [])
    blocks, columns, cells = _best(sketch, of_machine, reads, use)
    if outside:
        cells = [grid.Cell(row=one.row + 1, column=one.column, span=one.span) for one in cells]
        cells.insert(0, grid.Cell(row=0, column=0, span=columns))
        blocks.insert(0, _band(outside, blocks, columns, use))
    return Ground(blocks=blocks, cells=cells, columns=columns)


def _best(
    sketch: Sketch,
    of_machine: Mapping[str | None, Sequence[Card]],
    reads: Mapping[str, Sequence[str]],
    use: cards.Measures,
) -> tuple[list[Block], int, list[grid.Cell]]:
    """The machines arranged and placed in the manner that fills a screen best."""
    if not sketch.machines:
        return [], 1, []
    ways = [
        list(_ways(packing.inside(machine, of_machine[machine[0]], reads), use))
        for machine in sketch.machines
    ]
    sizes = sorted(size for several in ways for size, _ in several)
    highs = sorted(height for _, height in sizes)
    best: tuple[float, list[Block], int, list[grid.Cell]] | None = None
    for wide, high in itertools.product(_some([width for width, _ in sizes]), _some(highs)):

        def cost(way: tuple[grid.Size, Block], wide: int = wide, high: int = high) -> float:
            (width, height), block = way
            # A box fills its cells; beyond that, a low one leaves its row lower.
            cells = grid.span(width, wide, streets.STREET) * max(height, high)
            return (cells + height / 100) * (1 if block.layered else PACKED)

        chosen = [several[0] if len(several) == 1 else min(several, key=cost) for several in ways]
        score, columns, cells = grid.shape([size for size, _ in chosen], wide, streets.STREET)
        score *= PACKED ** (sum(not block.layered for _, block in chosen) / len(chosen))
        if best is None or score < best[0]:
            best = (score, [block for _, block in chosen], columns, cells)
    assert best is not None
    _, blocks, columns, cells = best
    blocks, cells = _ordered(blocks, columns, cells, sketch)
    return blocks, columns, cells


def _ways(inner: packing.Inside, use: cards.Measures) -> Iterator[tuple[grid.Size, Block]]:
    """Each manner to arrange a machine, with its size."""
    seen: set[grid.Size] = set()
    for layered, many in itertools.product((True, False), TALL):
        manner = packing.Manner(tall=many * (use.head + use.gap), layered=layered)
        block = packing.arrange(inner, use, manner)
        size = streets.rough_size(block, use)
        if size not in seen:
            seen.add(size)
            yield size, block
        if len(block.columns) <= 1:
            break


def _some(numbers: Sequence[int]) -> list[int]:
    """The numbers, or, of many, a few that are spread over all."""
    found = sorted(set(numbers))
    if len(found) <= 12:
        return found
    return sorted({numbers[len(numbers) * share // 24] for share in range(1, 24, 3)})


def _band(
    outside: Sequence[Card], blocks: Sequence[Block], columns: int, use: cards.Measures
) -> Block:
    """The externals, above all machines."""
    room = sum(streets.rough_size(block, use)[0] for block in blocks[:columns]) or 900
    each = max(card.width for card in outside) + 3 * use.gutter
    stack = -(-len(outside) // max(1, room // each))
    tall = stack * (max(card.height for card in outside) + use.gap)
    return packing.arrange(
        packing.inside(None, outside, {}), use, packing.Manner(tall=tall, layered=True)
    )


def _cards(level: Level, sketch: Sketch) -> list[Card]:
    inputs: dict[str, dict[Port, None]] = {}
    outputs: dict[str, dict[Port, None]] = {}
    for link in sketch.links:
        inputs.setdefault(link.consumer, {})[cards.port_in(level, link)] = None
        outputs.setdefault(link.provider, {})[cards.port_out(level, link)] = None
    return [
        cards.card(level, node, inputs.get(node.id, ()), outputs.get(node.id, ()))
        for node in sketch.nodes
    ]


def _ordered(
    blocks: Sequence[Block],
    columns: int,
    cells: Sequence[grid.Cell],
    sketch: Sketch,
) -> tuple[list[Block], list[grid.Cell]]:
    """The blocks in the order that keeps lines short, and their cells anew."""
    home = {
        spot.card.node.id: number for number, block in enumerate(blocks) for spot in block.spots
    }
    weights: dict[tuple[int, int], int] = {}
    for link in sketch.links:
        one, other = home.get(link.consumer), home.get(link.provider)
        if one is not None and other is not None and one != other:
            pair = (min(one, other), max(one, other))
            weights[pair] = weights.get(pair, 0) + 1
    order = grid.order(len(blocks), weights, columns)
    spans = [cell.span for cell in cells]
    found: list[grid.Cell] = []
    row = column = 0
    for number in order:
        if column + spans[number] > columns:
            row, column = row + 1, 0
        found.append(grid.Cell(row=row, column=column, span=spans[number]))
        column += spans[number]
    return [blocks[number] for number in order], found
