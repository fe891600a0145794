"""What stands in a machine: its cards in columns, providers to the left of their readers.

Between the columns, and at both sides, are gutters: the only way for lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from keyplane.drawing import cards, text
from keyplane.drawing.cards import Card, Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a card stands in its block."""

    card: Card
    column: int
    down: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A machine with its cards, or the externals."""

    machine: str | None
    address: str
    spots: tuple[Spot, ...]
    columns: tuple[int, ...]
    """The width of each."""
    height: int
    """Down to the lowest card."""
    layered: bool
    least: int
    """The width that its name needs."""
    foot: int
    """About how many lines run along its foot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How cards are put in columns."""

    tall: int
    """About how high a column may be, in pixels."""
    layered: bool
    """No reader in the column of its provider. Lines are shorter, machines with chains wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """The cards of a machine, ordered."""

    machine: tuple[str, str] | None
    """Name and address; None: the externals."""
    reads: Mapping[str, Sequence[str]]
    """The providers of each card that are here."""
    layers: Sequence[Sequence[Card]]
    """Linked cards, providers first."""
    alone: Sequence[Card]


def inside(
    machine: tuple[str, str] | None, every: Sequence[Card], reads: Mapping[str, Iterable[str]]
) -> Inside:
    """Order the cards, which come in the order of their names. `reads` names the providers of each."""
    here = {card.node.id: card for card in every}
    place = {name: index for index, name in enumerate(here)}
    local = {
        name: sorted(
            {one for one in reads.get(name, ()) if one in here and one != name},
            key=place.__getitem__,
        )
        for name in here
    }
    linked = {name for name, several in local.items() if several}
    linked |= {one for several in local.values() for one in several}
    by_depth: dict[int, list[Card]] = {}
    for name, depth in _depths(local).items():
        if name in linked:
            by_depth.setdefault(depth, []).append(here[name])
    rank: dict[str, int] = {}
    layers: list[list[Card]] = []
    for depth in sorted(by_depth):
        # By where their providers stand, so that lines cross less; then by name.
        keys = {card.node.id: (_middle(local[card.node.id], rank)) for card in by_depth[depth]}
        layers.append(
            sorted(by_depth[depth], key=lambda card: (keys[card.node.id], place[card.node.id]))
        )
        for index, card in enumerate(layers[-1]):
            rank[card.node.id] = index
    alone = [card for card in every if card.node.id not in linked]
    return Inside(machine=machine, reads=local, layers=layers, alone=alone)


def _middle(providers: Sequence[str], rank: Mapping[str, int]) -> int:
    seen = [rank[one] for one in providers if one in rank]
    return sum(seen) // len(seen) if seen else -1


def _depths(reads: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many columns of providers stand before each. A circle is cut where the walk meets it."""
    found: dict[str, int] = {}
    for root in reads:
        path: list[tuple[str, int]] = [(root, 0)]
        open_ = {root}
        while path:
            name, index = path.pop()
            if name in found:
                continue
            rest = reads[name]
            while index < len(rest) and (rest[index] in found or rest[index] in open_):
                index += 1
            if index < len(rest):
                path += [(name, index + 1), (rest[index], 0)]
                open_.add(rest[index])
                continue
            found[name] = 1 + max((found[one] for one in rest if one in found), default=-1)
    return found


def arrange(inner: Inside, use: Measures, manner: Manner) -> Block:
    """Put ordered cards in columns."""
    top = use.header if inner.machine is not None else 0
    spots: list[Spot] = []
    widths: list[int] = []
    at: dict[str, int] = {}
    height = top
    for column in _columns(inner, use, manner):
        down = top
        for card in column:
            spots.append(Spot(card=card, column=len(widths), down=down))
            at[card.node.id] = len(widths)
            down += card.height + use.gap
        height = max(height, down - use.gap)
        widths.append(max(card.width for card in column))
    name, address = inner.machine or (None, "")
    along = {
        one
        for reader, several in inner.reads.items()
        for one in several
        if at[reader] != at[one] + 1
    }
    # A detailed box has room for all of its header, a smaller one at least for its name.
    beside = f"{address} · 000 entries" if name is not None and use is cards.DETAILED else ""
    return Block(
        machine=name,
        address=address,
        spots=tuple(spots),
        columns=tuple(widths),
        height=height,
        layered=manner.layered,
        least=text.width(name or "", use.title_size, bold=True) + text.width(beside, 12) + 48,
        foot=len(along),
    )


def _columns(inner: Inside, use: Measures, manner: Manner) -> list[list[Card]]:
    """Linked cards by how deep they stand, then the others wherever there is room."""
    layers = inner.layers
    if not manner.layered:
        layers = [[card for layer in layers for card in layer]]
    columns = [each for layer in layers for each in _wrapped(layer, use, manner.tall)]
    heights = [sum(card.height + use.gap for card in column) for column in columns]
    room = max([manner.tall, *heights])
    left = len(inner.alone)
    for index, card in enumerate(inner.alone):
        shortest = min(range(len(columns)), key=heights.__getitem__, default=None)
        if shortest is None or heights[shortest] + card.height > room:
            left = index
            break
        columns[shortest].append(card)
        heights[shortest] += card.height + use.gap
    return columns + _wrapped(inner.alone[left:], use, room)


def _wrapped(layer: Sequence[Card], use: Measures, tall: int) -> list[list[Card]]:
    """A layer as columns of about the same height."""
    total = sum(card.height + use.gap for card in layer)
    share = total / max(1, -(-total // (tall + use.gap)))
    columns: list[list[Card]] = []
    done = 0
    for card in layer:
        if not columns or done + card.height / 2 > share * len(columns):
            columns.append([])
        columns[-1].append(card)
        done += card.height + use.gap
    return columns
