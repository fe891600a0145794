"""What a machine's reactions did over time, as SVG: values, windows, actions and states.

Values alone come in, so that any trace can be drawn; equal ones give equal bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keyplane.drawing import svg
from keyplane.drawing.geometry import Box

LEFT, RIGHT, TOP = 300, 40, 56
WIDTH = 900
"""Of the time from its beginning to its end."""
ROW = 34
LABEL_MAX = 44
VALUE_MAX = 16
TICKS = 8

At = Callable[[int], int]
"""From a time to its place."""

_STYLE = """
.ground{fill:#ffffff}text{font-family:ui-sans-serif,system-ui,sans-serif;fill:#1f2937}
.faint{fill:#6b7280}.axis{stroke:#d1d5db}.window{fill:#fde68a;opacity:.55}.value{fill:#2563eb}
.missing{fill:#dc2626}.waiting{fill:#e5e7eb}.running{fill:#bbf7d0}.running-stale{fill:#fed7aa}
.stopped{fill:#cbd5e1}.failed{fill:#fecaca}.act{fill:#111827}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something at one time."""

    at_ms: int
    said: str
    kind: str = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something from one time to another."""

    from_ms: int
    to_ms: int
    said: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One line of the picture."""

    name: str
    spans: Sequence[Span] = ()
    marks: Sequence[Mark] = ()


def draw(title: str, until_ms: int, lanes: Sequence[Lane], ticks: Sequence[Mark]) -> str:
    """`ticks` are the times that are written under it."""
    height = TOP + ROW * len(lanes) + 40
    width = LEFT + WIDTH + RIGHT
    scale = WIDTH / max(1, until_ms)

    def x(at_ms: int) -> int:
        return LEFT + round(at_ms * scale)

    said = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
        svg.rect(Box(x=0, y=0, width=width, height=height), kind="ground"),
        svg.text(16, 30, title, size=16),
    ]
    bottom = TOP + ROW * len(lanes)
    for tick in ticks:
        at = x(tick.at_ms)
        said.append(f'<path class="axis" d="M{at} {TOP - 8}V{bottom}"/>')
        said.append(svg.text(at - 10, bottom + 20, tick.said, size=11, kind="faint"))
    for turn, lane in enumerate(lanes):
        said += _lane(lane, TOP + turn * ROW, x)
    return "\n".join([*said, "</svg>"]) + "\n"


def _lane(lane: Lane, y: int, x: At) -> list[str]:
    said = [svg.text(16, y + 20, _short(lane.name, LABEL_MAX), size=12)]
    for span in lane.spans:
        left, right = x(span.from_ms), x(span.to_ms)
        box = Box(x=left, y=y + 6, width=max(2, right - left), height=ROW - 14)
        said.append(f"<g>{svg.title(span.said)}{svg.rect(box, radius=3, kind=span.kind)}</g>")
    places = [x(mark.at_ms) for mark in lane.marks]
    for mark, at, after in zip(
        lane.marks, places, [*places, LEFT + WIDTH + RIGHT][1:], strict=True
    ):
        drawn = svg.dot((at, y + ROW // 2 - 1), 4)
        said.append(f'<g>{svg.title(mark.said)}<path class="{mark.kind}" d="{drawn}"/></g>')
        text = _short(mark.said, VALUE_MAX)
        if after - at >= 12 + 6 * len(text):  # else it would run into the next
            said.append(svg.text(at + 7, y + ROW // 2 + 3, text, size=10, kind="faint"))
    return said


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
