"""What stands above and below the picture: the fleet, the legend, and rows of nothing drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keyplane.drawing import svg, text, titles
from keyplane.drawing.cards import Level
from keyplane.drawing.layout import Layout
from keyplane.drawing.sketch import Sketch, Strand

WIDTH_MIN = 620
"""So that the legend has room beside a small fleet."""
SCREEN = 1500
"""About the width at which a wide picture is looked at: its heading grows with it."""
ROWS_MAX = 8
"""Rows below the picture; `keyplane check` prints them all."""

# Told apart by colour and by dashes, for those who see few colours. Colours after Okabe and Ito,
# darkened until each has a contrast of 3:1 with the page.
INKS: Mapping[Strand, tuple[str, str]] = {
    Strand.CLOSURE: ("#b3261e", ""),
    Strand.ENV: ("#b86e00", ""),
    Strand.CONFIG: ("#1261a8", "9 4"),
    Strand.DYNAMIC: ("#0b7f5c", "2 4"),
    Strand.PLACEMENT: ("#8a4a9e", "10 4 2 4"),
    Strand.PRESENCE: ("#6b7480", "4 4"),
}
MEANS = {
    Strand.CLOSURE: "closure: re-make",
    Strand.ENV: "env: restart",
    Strand.CONFIG: "config: reload",
    Strand.DYNAMIC: "dynamic: react",
    Strand.PLACEMENT: "placement: re-place",
    Strand.PRESENCE: "presence: no value",
}
BUNDLED = {
    Level.DETAILED: "",
    Level.COMPACT: "What one entry gives on one plane is one line, and so is what several give alike. "
    "Point at a line or an entry for more.",
    Level.CONDENSED: "What one machine gives on one plane is one line. Point at an entry for who reads whom.",
    Level.BUS: "Between machines, each plane is one line. Point at an entry for who reads whom.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    height: int
    elements: tuple[str, ...] = ()


def scale(width: int) -> float:
    return max(1.0, width / SCREEN)


def name(sketch: Sketch) -> str:
    return f"{sketch.fleet or 'fleet'}, generation {sketch.generation}"


def heading(
    sketch: Sketch, layout: Layout, strands: Sequence[Strand], width: int, grown: float
) -> Part:
    """The name and the counts, and below them the legend."""
    large, small = int(20 * grown), int(12 * grown)
    title = text.fit(sketch.fleet or "fleet", width, large, bold=True)
    base = int(24 * grown)
    found = [svg.text(0, base, title, size=large, kind="b")]
    entries = sum(node.machine is not None for node in sketch.nodes)
    externals = len(sketch.nodes) - entries
    said = [
        f"generation {sketch.generation}",
        titles.count(entries, "entry", "entries"),
        titles.count(len(sketch.machines), "machine", "machines"),
    ]
    if externals:
        said.append(titles.count(externals, "external", "externals"))
    down = base + int(20 * grown)
    counts = text.fit(" · ".join(said), width, small)
    found.append(svg.text(0, down, counts, size=small, kind="f"))
    if sketch.errors:
        beside = text.width(counts, small) + int(6 * grown)
        wrong = titles.count(sketch.errors, "error row", "error rows")
        found.append(svg.text(beside, down, wrong, size=small, kind="b w"))
    down += int(22 * grown)
    x = 0
    for strand in strands:
        line = int(34 * grown)
        wide = line + int(8 * grown) + text.width(MEANS[strand], small)
        if x and x + wide > width:
            x, down = 0, down + int(18 * grown)
        middle = down - small * 36 // 100
        tip = svg.tip((x + line, middle), int(7 * grown))
        found.append(
            f'<g class="net {strand}"><path style="{_grown(strand, grown)}" '
            f'd="M{x} {middle}h{line}"/><path class="d" d="{tip}"/></g>'
        )
        found.append(svg.text(x + line + int(8 * grown), down, MEANS[strand], size=small))
        x += wide + int(22 * grown)
    if BUNDLED[layout.level] and strands:
        down += int(20 * grown)
        note = text.fit(BUNDLED[layout.level], width, small)
        found.append(svg.text(0, down, note, size=small, kind="f"))
    return Part(height=down + int(18 * grown), elements=tuple(found))


def _grown(strand: Strand, grown: float) -> str:
    dashes = " ".join(f"{int(each) * grown:.1f}" for each in INKS[strand][1].split())
    return f"stroke-width:{2 * grown:.1f}" + (f";stroke-dasharray:{dashes}" if dashes else "")


def elsewhere(sketch: Sketch, width: int) -> Part:
    """Error rows whose subject is not in the picture."""
    rows = list(sketch.elsewhere)
    if not rows:
        return Part(height=0)
    if len(rows) > ROWS_MAX:
        rows = [*rows[: ROWS_MAX - 1], f"and {len(rows) - ROWS_MAX + 1} more: keyplane check"]
    found = [svg.text(0, 12, "Errors of what is not drawn", size=12, kind="b w")]
    found += [
        svg.text(0, 30 + 17 * index, text.fit(row, width, 12), size=12, kind="w")
        for index, row in enumerate(rows)
    ]
    return Part(height=30 + 17 * len(rows), elements=tuple(found))
