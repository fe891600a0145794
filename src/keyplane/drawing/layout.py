"""Where everything stands, in whole pixels: boxes, cards and lines.

First how wide: the tracks in each gutter follow from what stands in a machine, and the streets
between columns from the rows that each line runs through. Then how high, when it is known where each
line comes down. So neither waits for the other, and every line has its own track everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from keyplane.drawing import cards, ground, nets, streets
from keyplane.drawing.cards import Card, Level
from keyplane.drawing.geometry import Box, Point
from keyplane.drawing.nets import Net
from keyplane.drawing.sketch import Sketch
from keyplane.drawing.wires import Wire

DETAILED_MAX = 90
COMPACT_MAX = 800
"""Entries up to which a picture fits some screens at a size at which its text can be read."""
STREET_MAX = {Level.DETAILED: 24, Level.COMPACT: 48, Level.CONDENSED: 48}
"""Tracks in the widest street above which more lines are drawn as one: nobody follows a line with
the eye through more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCard:
    card: Card
    box: Box


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMachine:
    name: str
    address: str
    box: Box
    entries: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNet:
    net: Net
    wire: Wire
    starts: tuple[Point, ...]
    tips: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The picture without its title; its corner is (0, 0)."""

    level: Level
    width: int
    height: int
    machines: tuple[PlacedMachine, ...]
    cards: tuple[PlacedCard, ...]
    nets: tuple[PlacedNet, ...]


def lay_out(sketch: Sketch) -> Layout:
    """A layout with as much detail as stays readable."""
    count = len(sketch.nodes)
    level = Level.DETAILED
    if count > DETAILED_MAX:
        level = Level.COMPACT if count <= COMPACT_MAX else Level.CONDENSED
    boxes = ground.ground(level, sketch)
    while True:
        routed = route(boxes, level, sketch)
        if level is Level.BUS or routed.busiest <= STREET_MAX[level]:
            return place(level, routed, sketch)
        level = Level(level + 1)
        if cards.OF[level] is not routed.use:
            boxes = ground.ground(level, sketch)


def route(boxes: ground.Ground, level: Level, sketch: Sketch) -> streets.Streets:
    """All lines of a level, on their tracks."""
    every = nets.nets(level, boxes.blocks, sketch.links)
    return streets.plan(boxes.blocks, boxes.cells, boxes.columns, every, cards.OF[level])


def place(level: Level, plan: streets.Streets, sketch: Sketch) -> Layout:
    """The boxes, cards and lines of a level, in pixels."""
    wrong = {node.id for node in sketch.nodes if node.errors}
    machines: list[PlacedMachine] = []
    placed: list[PlacedCard] = []
    edges: dict[str, tuple[int, int]] = {}
    for number, block in enumerate(plan.blocks):
        x, y, width, height = plan.box(number)
        if block.machine is not None:
            machines.append(
                PlacedMachine(
                    name=block.machine,
                    address=block.address,
                    box=Box(x=x, y=y, width=width, height=height),
                    entries=len(block.spots),
                    errors=sum(spot.card.node.id in wrong for spot in block.spots),
                )
            )
        for spot in block.spots:
            left = plan.column_x(number, spot.column)
            wide = block.columns[spot.column]
            edges[spot.card.node.id] = (left, left + wide)
            box = Box(x=left, y=y + spot.down, width=wide, height=spot.card.height)
            placed.append(PlacedCard(card=spot.card, box=box))
    width, height = plan.size
    return Layout(
        level=level,
        width=width,
        height=height,
        machines=tuple(machines),
        cards=tuple(placed),
        nets=tuple(_net(plan, net, index, edges) for index, net in enumerate(plan.nets)),
    )


def _net(
    plan: streets.Streets, net: Net, index: int, edges: Mapping[str, tuple[int, int]]
) -> PlacedNet:
    starts: list[Point] = []
    tips: list[Point] = []
    for end in net.ends:
        left, right = edges[end.card]
        down = plan.box(end.gutter[0])[1] + end.down
        (starts if end.outgoing else tips).append((right if end.outgoing else left, down))
    return PlacedNet(
        net=net,
        wire=plan.wire(index, edges),
        starts=tuple(sorted(starts)),
        tips=tuple(sorted(tips)),
    )
