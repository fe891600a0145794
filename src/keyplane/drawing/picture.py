"""The SVG of a plan. It has its own background, so it looks the same on a light and a dark page."""

from collections.abc import Iterator, Mapping, Sequence

from keyplane.drawing import cards, heading, svg, text, titles
from keyplane.drawing.cards import Level
from keyplane.drawing.geometry import Box
from keyplane.drawing.layout import Layout, PlacedCard, PlacedMachine, PlacedNet, lay_out
from keyplane.drawing.sketch import Link, Sketch, Strand, Value, sketch
from keyplane.model.plan import Plan

MARGIN = 12

_STYLE = """\
svg{font-family:system-ui,sans-serif;background:#f7f8fa}
.page{fill:#f7f8fa}
.machine{fill:#eceff3;stroke:#c3cad4}
.card{fill:#fff;stroke:#aab3bf}
.outside{fill:#fff;stroke:#6b7480;stroke-dasharray:5 3}
.wrong{fill:#fdecea;stroke:#c62828;stroke-width:1.6}
.badge{fill:#c62828}
text{fill:#1d232b}
.b{font-weight:600}.f{fill:#566070}.r{text-anchor:end}
.m{text-anchor:middle;fill:#fff;font-weight:700}
.w{fill:#b71c1c}
.net path{fill:none;stroke-linecap:round;stroke-linejoin:round}
.net .d{stroke:none}
.net:hover path{stroke-width:4}.net:hover .d{stroke-width:0}
g.entry:hover rect{stroke:#1d232b}
"""


def draw(plan: Plan, values: Mapping[str, Sequence[Value]]) -> str:
    """The picture of a plan; `values` are those that each entry gets from elsewhere."""
    drawn = sketch(plan, values)
    return "\n".join([*_elements(drawn, lay_out(drawn)), ""])


def _elements(drawn: Sketch, layout: Layout) -> Iterator[str]:
    scale = heading.scale(layout.width)
    width = max(layout.width + 2 * MARGIN, heading.WIDTH_MIN)
    strands = [one for one in Strand if any(net.net.strand is one for net in layout.nets)]
    head = heading.heading(drawn, layout, strands, width - 4 * MARGIN, scale)
    foot = heading.elsewhere(drawn, width - 4 * MARGIN)
    top = head.height + MARGIN
    height = top + layout.height + MARGIN + foot.height
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">'
    )
    yield f'<title id="title">{svg.escape(heading.name(drawn))}</title>'
    yield f'<desc id="desc">{svg.escape(titles.of_all(drawn))}</desc>'
    yield f"<style>{_STYLE}{''.join(_inks(layout.level, strands))}</style>"
    yield svg.rect(Box(x=0, y=0, width=width, height=height), kind="page")
    yield f'<g transform="translate({2 * MARGIN} {MARGIN})">'
    yield from head.elements
    yield "</g>"
    yield f'<g transform="translate({(width - layout.width) // 2} {top})">'
    for machine in layout.machines:
        yield from _machine(machine, cards.OF[layout.level])
    reads = titles.by_consumer(drawn.links)
    for card in layout.cards:
        yield from _card(card, reads)
    for net in layout.nets:
        yield from _net(net, layout.level)
    yield "</g>"
    if foot.elements:
        yield f'<g transform="translate({2 * MARGIN} {top + layout.height + MARGIN})">'
        yield from foot.elements
        yield "</g>"
    yield "</svg>"


def _inks(level: Level, strands: Sequence[Strand]) -> Iterator[str]:
    line = cards.OF[level].line
    for strand in strands:
        colour, dashes = heading.INKS[strand]
        dashed = f";stroke-dasharray:{dashes}" if dashes else ""
        yield f".{strand}{{stroke:{colour};stroke-width:{line}{dashed}}}"
        yield f".{strand} .d{{fill:{colour}}}\n"


def _machine(machine: PlacedMachine, use: cards.Measures) -> Iterator[str]:
    box = machine.box
    yield f'<g class="place">{svg.title(titles.of_machine(machine))}'
    yield svg.rect(box, radius=9, kind="machine")
    room = box.width - 24
    base = box.y + use.header // 2 + use.title_size * 36 // 100
    name = text.fit(machine.name, room, use.title_size, bold=True)
    yield svg.text(box.x + 12, base, name, size=use.title_size, kind="b")
    used = text.width(name, use.title_size, bold=True) + 12
    size = use.title_size * 3 // 4
    said = [titles.count(machine.entries, "entry", "entries")]
    if machine.address:
        said.insert(0, machine.address)
    for several in (" · ".join(said), said[-1]):
        if text.width(several, size) <= room - used:
            yield svg.text(box.x + box.width - 12, base, several, size=size, kind="f r")
            break
    yield "</g>"


def _net(placed: PlacedNet, level: Level) -> Iterator[str]:
    large = level <= Level.COMPACT
    yield f'<g class="net {placed.net.strand}">{svg.title(titles.of_net(placed.net))}'
    radius = 7 if large else 3
    lines = "".join(svg.rounded(path, radius) for path in placed.wire.paths)
    yield f'<path d="{lines}"/>'
    marks = [svg.dot(point, 3 if large else 2) for point in (*placed.wire.dots, *placed.starts)]
    marks += [svg.tip(point, 7 if large else 5) for point in placed.tips]
    yield f'<path class="d" d="{"".join(marks)}"/></g>'


def _card(placed: PlacedCard, reads: Mapping[str, Sequence[Link]]) -> Iterator[str]:
    card, box = placed.card, placed.box
    node = card.node
    kind = "outside" if node.machine is None else "card"
    if node.errors:
        kind = "wrong"
    yield f'<g class="entry">{svg.title(titles.of_node(node, reads))}'
    radius = box.height // 2 if node.machine is None and box.height < 40 else 5
    yield svg.rect(box, radius=min(radius, 16), kind=kind)
    badge = cards.BADGE if node.errors else 0
    whole = box.width - 2 * card.pad
    for index, label in enumerate(card.labels):
        room = whole - (badge if index == 0 else 0)
        said = text.fit(label.text, room, label.size, bold=label.bold)
        x = box.x + (box.width - card.pad if label.right else card.pad)
        kinds = [k for k, on in (("b", label.bold), ("f", label.faint), ("r", label.right)) if on]
        yield svg.text(x, box.y + label.down, said, size=label.size, kind=" ".join(kinds))
    if node.errors:
        size = min(14, box.height - 4)
        x, y = box.x + box.width - card.pad - size // 2 + 2, box.y + max(10, size // 2 + 2)
        if box.height < 24:
            y = box.y + box.height // 2
        yield f'<path class="badge" d="{svg.dot((x, y), size // 2)}"/>'
        yield svg.text(x, y + size * 36 // 100, "!", size=size - 2, kind="m")
    yield "</g>"
