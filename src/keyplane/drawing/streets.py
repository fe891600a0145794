"""The way of each line: gutters in machines, streets below each row, trunks between columns.

A line that stays between two columns runs in their gutter. One that stays in a machine runs along
its foot. Any other goes down into the street below its machine, and, if it has ends in several
rows, through one trunk between the columns of the grid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keyplane.drawing import tracks
from keyplane.drawing.cards import Measures
from keyplane.drawing.grid import Cell
from keyplane.drawing.nets import Gutter, Net
from keyplane.drawing.packing import Block
from keyplane.drawing.wires import Drafting, Wire

STREET = 28
"""The least width between boxes."""
FOOT = 12
"""Below the lowest card of a machine."""
SIDE = 12
"""Between the side of a box and its cards, where no line runs."""
SPREAD = 60
"""As much wider than it has to be a gutter may get: columns far apart are no longer one machine."""
FAR = 1 << 30
"""Below everything: where it is not known yet how deep."""


def rough_size(block: Block, use: Measures) -> tuple[int, int]:
    """About how large a block gets, before its lines are known."""
    gutters = 2 * SIDE + len(block.columns) * 2 * use.gutter
    return max(
        sum(block.columns) + gutters, block.least
    ), block.height + 2 * FOOT + block.foot * use.pitch


@dataclass(slots=True, kw_only=True)
class Streets:
    """All lines on their tracks."""

    blocks: Sequence[Block]
    cells: Sequence[Cell]
    columns: int
    nets: Sequence[Net]
    use: Measures
    busiest: int = 0
    size: tuple[int, int] = (0, 0)
    _gutters: dict[Gutter, dict[int, int]] = field(default_factory=dict[Gutter, dict[int, int]])
    """The track of each net."""
    _offsets: dict[Gutter, int] = field(default_factory=dict[Gutter, int])
    """Where each gutter begins, from the left of its block."""
    _lefts: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """Where each column begins, from the left of its block."""
    _trunks: dict[int, int] = field(default_factory=dict[int, int])
    """The vertical street of each net that runs through several rows."""
    _trunk_x: dict[int, int] = field(default_factory=dict[int, int])
    _x: list[int] = field(default_factory=list[int])
    _y: list[int] = field(default_factory=list[int])
    _widths: list[int] = field(default_factory=list[int])
    _heights: list[int] = field(default_factory=list[int])
    _feet: dict[int, int] = field(default_factory=dict[int, int])
    """The height, from the top of its block, of each net that runs along a foot."""
    _street_y: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """By row and net."""

    def box(self, number: int) -> tuple[int, int, int, int]:
        return self._x[number], self._y[number], self._widths[number], self._heights[number]

    def column_x(self, number: int, column: int) -> int:
        return self._x[number] + self._lefts[(number, column)]

    def gutter_x(self, net: int, gutter: Gutter) -> int:
        track = self._gutters[gutter][net]
        first = self._x[gutter[0]] + self._offsets[gutter] + self.use.gutter
        return first + track * self.use.pitch

    def wire(self, index: int, edges: Mapping[str, tuple[int, int]]) -> Wire:
        """The line of a net. `edges` are the left and right side of each card."""
        net = self.nets[index]
        draft = Drafting()
        downs: dict[Gutter, list[int]] = {}
        for end in net.ends:
            down = self._y[end.gutter[0]] + end.down
            downs.setdefault(end.gutter, []).append(down)
            edge = edges[end.card][1 if end.outgoing else 0]
            draft.level(down, (edge, self.gutter_x(index, end.gutter)))
        across: dict[int, list[int]] = {}
        for gutter, several in downs.items():
            x = self.gutter_x(index, gutter)
            if index in self._feet:
                several.append(self._y[gutter[0]] + self._feet[index])
                across.setdefault(several[-1], []).append(x)
            elif len(net.blocks) > 1:
                several.append(self._street_y[(self.cells[gutter[0]].row, index)])
                across.setdefault(several[-1], []).append(x)
            draft.upright(x, several)
        if index in self._trunk_x:
            draft.upright(self._trunk_x[index], across)
            for each in across.values():
                each.append(self._trunk_x[index])
        for down, several in across.items():
            draft.level(down, several)
        return draft.wire()

    def rows_of(self, net: Net) -> list[int]:
        return sorted({self.cells[block].row for block in net.blocks})

    def go(self) -> None:
        self._pack_gutters()
        self._choose_trunks()
        self._set_across()
        self._set_down()

    def _pack_gutters(self) -> None:
        spans: dict[Gutter, dict[int, tuple[int, int]]] = {}
        for index, net in enumerate(self.nets):
            deep = len(net.gutters) > 1
            for end in net.ends:
                first, last = spans.setdefault(end.gutter, {}).get(index, (end.down, end.down))
                last = FAR if deep else max(last, end.down)
                spans[end.gutter][index] = (min(first, end.down), last)
        for number, block in enumerate(self.blocks):
            offset = 0
            for column in range(len(block.columns) + 1):
                gutter = (number, column)
                found, count = tracks.pack(spans.get(gutter, {}), self.use.lattice)
                self._gutters[gutter] = found
                self._offsets[gutter] = offset
                outer = column in (0, len(block.columns))
                offset += self._gutter_width(count, outer=outer)
                if column < len(block.columns):
                    self._lefts[gutter] = offset
                    offset += block.columns[column]
            self._widths.append(max(offset, block.least))

    def _gutter_width(self, count: int, *, outer: bool) -> int:
        if not count:
            return SIDE if outer else self.use.gutter
        return 2 * self.use.gutter + (count - 1) * self.use.pitch

    def _choose_trunks(self) -> None:
        """For each line the trunk that makes it shortest, and of such the emptiest."""
        shut = {
            (cell.row, column)
            for cell in self.cells
            for column in range(cell.column + 1, cell.column + cell.span)
        }
        load = [0] * (self.columns + 1)
        for index, net in enumerate(self.nets):
            rows = self.rows_of(net)
            if len(rows) < 2:
                continue
            reach: dict[int, tuple[int, int]] = {}
            for block in net.blocks:
                cell = self.cells[block]
                # Twice the columns, so that the middle of a box is whole.
                left, right = reach.get(cell.row, (FAR, -1))
                middle = 2 * cell.column + cell.span
                reach[cell.row] = (min(left, middle), max(right, middle))
            open_ = [
                column
                for column in range(self.columns + 1)
                if not any((row, column) in shut for row in range(rows[0] + 1, rows[-1] + 1))
            ]

            def cost(column: int, reach: dict[int, tuple[int, int]] = reach) -> tuple[int, int]:
                spans = reach.values()
                far = sum(max(right, 2 * column) - min(left, 2 * column) for left, right in spans)
                return (far * 8 + load[column], column)

            self._trunks[index] = min(open_, key=cost)
            load[self._trunks[index]] += 1

    def _set_across(self) -> None:
        """Columns as wide as their boxes, streets as wide as their trunks."""
        spans: dict[int, dict[int, tuple[int, int]]] = {}
        for index, column in self._trunks.items():
            rows = self.rows_of(self.nets[index])
            spans.setdefault(column, {})[index] = (rows[0], rows[-1])
        packed = [tracks.pack(spans.get(one, {}), 1) for one in range(self.columns + 1)]
        street = [
            (2 * STREET // 3 if column in (0, self.columns) else STREET)
            + (count + 1) * self.use.pitch * bool(count)
            for column, (_, count) in enumerate(packed)
        ]
        widths = [0] * self.columns
        for number, cell in sorted(enumerate(self.cells), key=lambda one: one[1].span):
            inner = range(cell.column, cell.column + cell.span)
            has = sum(widths[one] for one in inner) + sum(street[one] for one in inner[1:])
            missing = self._widths[number] - has
            if missing > 0:
                for one in inner:
                    widths[one] += -(-missing // cell.span)
        lefts: list[int] = []
        x = 0
        for column in range(self.columns + 1):
            found, count = packed[column]
            middle = x + (street[column] - (count - 1) * self.use.pitch) // 2
            for index, track in found.items():
                self._trunk_x[index] = middle + track * self.use.pitch
            x += street[column]
            lefts.append(x)
            if column < self.columns:
                x += widths[column]
        for number, cell in enumerate(self.cells):
            last = cell.column + cell.span - 1
            self._x.append(lefts[cell.column])
            wide = lefts[last] + widths[last] - lefts[cell.column]
            self._spread(number, wide - self._widths[number])
            self._widths[number] = wide
        self.size = (x, 0)
        self.busiest = max((count for _, count in packed), default=0)

    def _spread(self, number: int, spare: int) -> None:
        """Give the gutters of a block the width that its cell has and the block did not need."""
        count = len(self.blocks[number].columns)
        if count < 2:
            return
        each = min(spare // (count - 1), SPREAD)
        for column in range(1, count):
            self._lefts[(number, column)] += each * column
            self._offsets[(number, column)] += each * (column - 1) + each // 2
        self._offsets[(number, count)] += each * (count - 1)

    def _set_down(self) -> None:
        """Rows as high as their boxes, streets as deep as their lines."""
        along: dict[int, dict[int, tuple[int, int]]] = {}
        feet: dict[int, dict[int, tuple[int, int]]] = {}
        for index, net in enumerate(self.nets):
            if len(net.gutters) < 2:
                continue
            xs: dict[int, list[int]] = {}
            for gutter in net.gutters:
                row = self.cells[gutter[0]].row
                xs.setdefault(row, []).append(self.gutter_x(index, gutter))
            if len(net.blocks) == 1:
                ((_, only),) = xs.items()
                feet.setdefault(net.blocks[0], {})[index] = (min(only), max(only))
                continue
            for row, several in xs.items():
                if index in self._trunk_x:
                    several.append(self._trunk_x[index])
                along.setdefault(row, {})[index] = (min(several), max(several))
        rows = max((cell.row for cell in self.cells), default=-1) + 1
        heights = [0] * rows
        pitch = self.use.pitch
        for number, block in enumerate(self.blocks):
            found, count = tracks.pack(feet.get(number, {}), self.use.gutter)
            for index, track in found.items():
                self._feet[index] = block.height + FOOT + track * pitch
            foot = FOOT + (FOOT + (count - 1) * pitch if count else 0)
            row = self.cells[number].row
            heights[row] = max(heights[row], block.height + foot)
        y = 0
        tops: list[int] = []
        for row in range(rows):
            tops.append(y)
            y += heights[row]
            found, count = tracks.pack(along.get(row, {}), self.use.gutter)
            self.busiest = max(self.busiest, count)
            for index, track in found.items():
                self._street_y[(row, index)] = y + STREET // 2 + track * pitch
            y += STREET + max(0, count - 1) * pitch
        for cell in self.cells:
            self._y.append(tops[cell.row])
            self._heights.append(heights[cell.row])
        self.size = (self.size[0], y)


def plan(
    blocks: Sequence[Block], cells: Sequence[Cell], columns: int, nets: Sequence[Net], use: Measures
) -> Streets:
    """Put all lines on their tracks."""
    found = Streets(blocks=blocks, cells=cells, columns=columns, nets=nets, use=use)
    found.go()
    return found
