"""Which lines there are.

What one provider gives on one strand is one line with branches, and so is what several providers
give, each of them to the same slots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keyplane.drawing import cards
from keyplane.drawing.cards import Level
from keyplane.drawing.packing import Block
from keyplane.drawing.sketch import Link, Strand

Gutter = tuple[int, int]
"""A block, by its number, and the column that the gutter stands before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where a line meets a card."""

    gutter: Gutter
    card: str
    down: int
    """From the top of the block."""
    outgoing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A line with all its branches."""

    strand: Strand
    ends: tuple[End, ...]
    links: tuple[Link, ...]

    @property
    def gutters(self) -> list[Gutter]:
        return sorted({end.gutter for end in self.ends})

    @property
    def blocks(self) -> list[int]:
        return sorted({end.gutter[0] for end in self.ends})


def nets(level: Level, blocks: Sequence[Block], links: Sequence[Link]) -> list[Net]:
    """All lines, by origin and strand."""
    spots = {
        spot.card.node.id: (number, spot)
        for number, block in enumerate(blocks)
        for spot in block.spots
    }
    home = {name: number for name, (number, _) in spots.items()}
    grouped: dict[tuple[str, ...], list[Link]] = {}
    for link in links:
        grouped.setdefault(_group(level, link, home, blocks), []).append(link)
    if level <= Level.COMPACT:
        grouped = _gathered(level, grouped)
    found: list[Net] = []
    for _, several in sorted(grouped.items()):
        ends: dict[End, None] = {}
        for link in several:
            number, spot = spots[link.provider]
            ends[
                End(
                    gutter=(number, spot.column + 1),
                    card=link.provider,
                    down=spot.down + spot.card.outputs[cards.port_out(level, link)],
                    outgoing=True,
                )
            ] = None
            number, spot = spots[link.consumer]
            ends[
                End(
                    gutter=(number, spot.column),
                    card=link.consumer,
                    down=spot.down + spot.card.inputs[cards.port_in(level, link)],
                    outgoing=False,
                )
            ] = None
        found.append(Net(strand=several[0].strand, ends=tuple(ends), links=tuple(several)))
    return found


def _gathered(
    level: Level, grouped: Mapping[tuple[str, ...], list[Link]]
) -> dict[tuple[str, ...], list[Link]]:
    """Groups that end at the same places are one group: each of them gives to all of those.

    So a set of providers that each of many reads whole is one line, and not one for each of them.
    """
    first: dict[frozenset[tuple[str, ...]], tuple[str, ...]] = {}
    found: dict[tuple[str, ...], list[Link]] = {}
    for key, several in sorted(grouped.items()):
        ends = frozenset((link.consumer, *cards.port_in(level, link)) for link in several)
        found.setdefault(first.setdefault(ends, key), []).extend(several)
    return found


def _group(
    level: Level, link: Link, home: Mapping[str, int], blocks: Sequence[Block]
) -> tuple[str, ...]:
    """Links of one group are one line."""
    strand = f"{list(Strand).index(link.strand)}"
    if level is Level.DETAILED:
        return ("", link.provider, link.provide, strand)
    if level is Level.COMPACT or home[link.provider] == home[link.consumer]:
        return ("", link.provider, strand)
    if level is Level.CONDENSED:
        machine = blocks[home[link.provider]].machine
        return ("machine", link.provider if machine is None else machine, strand)
    return ("all", "several machines", strand)
