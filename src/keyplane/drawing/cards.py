"""How large the card of an entry is at each level of detail, and where its lines end.

Lines come in on the left and go out on the right. What comes in and what goes out never stand at the
same height, wherever two cards face each other: both keep to one lattice, half a step apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from keyplane.drawing import text
from keyplane.drawing.sketch import Link, Node, Strand


class Level(IntEnum):
    """How much is said of each entry, and how many lines are drawn as one."""

    DETAILED = 0
    """Everything; a line for each provide and plane."""
    COMPACT = 1
    """Name, module and key; a line for each provider and plane."""
    CONDENSED = 2
    """Names; a line for each machine that provides, and plane."""
    BUS = 3
    """Names; between machines one line for each plane."""


Port = tuple[str, Strand]
"""A slot or a provide and the strand; where slots are not told apart, the empty name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Sizes of one level of detail, in pixels."""

    name_size: int
    small_size: int
    width_min: int
    width_max: int
    head: int
    """The height of what is written on a card, without ports."""
    lattice: int
    """Between ports; all heights inside a machine are multiples of it."""
    pitch: int
    """Between tracks."""
    gutter: int
    """On each side of the tracks between two columns."""
    gap: int
    """Between cards of a column."""
    title_size: int
    header: int
    """The height of a machine's header."""
    line: float


DETAILED = Measures(
    name_size=13, small_size=11, width_min=152, width_max=272, head=40, lattice=8, pitch=8,
    gutter=14, gap=16, title_size=15, header=40, line=1.8,
)  # fmt: skip
COMPACT = Measures(
    name_size=12, small_size=10, width_min=104, width_max=200, head=36, lattice=6, pitch=5,
    gutter=9, gap=12, title_size=20, header=42, line=1.4,
)  # fmt: skip
CONDENSED = Measures(
    name_size=9, small_size=8, width_min=72, width_max=136, head=16, lattice=4, pitch=4,
    gutter=7, gap=4, title_size=28, header=48, line=1.2,
)  # fmt: skip
OF = {
    Level.DETAILED: DETAILED,
    Level.COMPACT: COMPACT,
    Level.CONDENSED: CONDENSED,
    Level.BUS: CONDENSED,
}
TEXT_PAD = 10
SMALL_PAD = 6
BADGE = 16
"""Room for the mark of an entry with error rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text on a card, by its baseline from the card's top."""

    text: str
    down: int
    size: int
    bold: bool = False
    right: bool = False
    faint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    node: Node
    width: int
    """At least so wide; a column may make it wider."""
    height: int
    inputs: Mapping[Port, int]
    """How far below the card's top each line comes in."""
    outputs: Mapping[Port, int]
    labels: tuple[Label, ...]
    pad: int


def port_in(level: Level, link: Link) -> Port:
    return (link.slot if level is Level.DETAILED else "", link.strand)


def port_out(level: Level, link: Link) -> Port:
    return (link.provide if level is Level.DETAILED else "", link.strand)


def card(level: Level, node: Node, inputs: Iterable[Port], outputs: Iterable[Port]) -> Card:
    coming, going = sorted(set(inputs), key=_order), sorted(set(outputs), key=_order)
    if level is Level.DETAILED:
        return _detailed(node, coming, going)
    return _small(level, node, coming, going)


def _order(port: Port) -> tuple[str, int]:
    return (port[0], list(Strand).index(port[1]))


def _detailed(node: Node, inputs: Sequence[Port], outputs: Sequence[Port]) -> Card:
    use = DETAILED
    said = [f"{node.module} {node.version} · {node.key[:10]}"] if node.module else ["outside"]
    units, listens = ", ".join(node.units), ", ".join(node.listens)
    both = " · ".join(filter(None, (units, listens)))
    if text.width(both, use.small_size) <= use.width_max - 2 * TEXT_PAD:
        said += [both] if both else []
    else:
        said += [units, listens]
    labels = [Label(text=node.name, down=19, size=use.name_size, bold=True)]
    labels += [
        Label(text=one, down=36 + 16 * index, size=use.small_size, faint=True)
        for index, one in enumerate(said)
    ]
    top = 48 + 16 * (len(said) - 1)
    coming, left, low_in = _rows(inputs, top, 6)
    going, right, low_out = _rows(outputs, top, 2)
    names_left = [Label(text=name, down=at, size=use.small_size) for name, at in left]
    names_right = [Label(text=name, down=at, size=use.small_size, right=True) for name, at in right]
    ports = max(_widest(names_left) + _widest(names_right) + TEXT_PAD, 0)
    badge = BADGE if node.errors else 0
    wanted = max(_widest(labels[:1]) + badge, _widest(labels[1:]), ports) + 2 * TEXT_PAD
    return Card(
        node=node,
        width=min(max(wanted, use.width_min), use.width_max),
        height=_up(max(low_in, low_out) + (8 if inputs or outputs else 0), use.lattice),
        inputs=coming,
        outputs=going,
        labels=(*labels, *names_left, *names_right),
        pad=TEXT_PAD,
    )


def _widest(labels: Iterable[Label]) -> int:
    return max((text.width(one.text, one.size, bold=one.bold) for one in labels), default=0)


def _rows(
    ports: Sequence[Port], top: int, shift: int
) -> tuple[dict[Port, int], list[tuple[str, int]], int]:
    """Where each port is, each name with its baseline, and where the rows end."""
    names: dict[str, list[Port]] = {}
    for port in ports:
        names.setdefault(port[0], []).append(port)
    found: dict[Port, int] = {}
    labels: list[tuple[str, int]] = []
    for name, several in names.items():
        height = 8 + DETAILED.lattice * len(several)
        first = _first(len(several), height, DETAILED.lattice, shift)
        for index, port in enumerate(several):
            found[port] = top + first + DETAILED.lattice * index
        labels.append((name, top + height // 2 + 4))
        top += height
    return found, labels, top


def _small(level: Level, node: Node, inputs: Sequence[Port], outputs: Sequence[Port]) -> Card:
    use = OF[level]
    lines = max(len(inputs), len(outputs))
    height = _up(max(use.head, (lines + 1) * use.lattice), use.lattice)
    labels = [
        Label(
            text=node.name,
            down=height // 2 + (use.name_size * 36 // 100 if level > Level.COMPACT else -3),
            size=use.name_size,
            bold=level is Level.COMPACT,
        )
    ]
    if level is Level.COMPACT:
        said = f"{node.module} {node.version} · {node.key[:7]}" if node.module else "outside"
        labels.append(Label(text=said, down=height // 2 + 11, size=use.small_size, faint=True))
    wanted = _widest(labels) + 2 * SMALL_PAD + (BADGE if node.errors else 0)
    return Card(
        node=node,
        width=min(max(wanted, use.width_min), use.width_max),
        height=height,
        inputs=_centred(inputs, height, use.lattice, 0),
        outputs=_centred(outputs, height, use.lattice, use.lattice // 2),
        labels=tuple(labels),
        pad=SMALL_PAD,
    )


def _centred(ports: Sequence[Port], height: int, lattice: int, shift: int) -> dict[Port, int]:
    first = _first(len(ports), height, lattice, shift)
    return {port: first + lattice * index for index, port in enumerate(ports)}


def _first(count: int, height: int, lattice: int, shift: int) -> int:
    """Where the first of some ports stands so that they are about centred, on the lattice."""
    middle = (height - lattice * (count - 1)) // 2
    found = middle - (middle - shift) % lattice
    return found if found > 0 else found + lattice


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
