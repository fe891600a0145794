"""SVG elements as text. All text of others is escaped here, and nowhere else."""

from collections.abc import Sequence
from typing import Final

from keyplane.drawing.geometry import Box, Point

# What XML 1.0 has no way to write.
_UNWRITABLE: Final = dict.fromkeys(
    (*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF),
    "\N{REPLACEMENT CHARACTER}",
)
_ESCAPED: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\t": " ", "\r": " "}
)


def escape(text: str) -> str:
    """For the text of an element and for a quoted attribute alike."""
    return text.translate(_UNWRITABLE).translate(_ESCAPED)


def title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def rect(box: Box, *, radius: int = 0, kind: str = "") -> str:
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
    rounded = f' rx="{radius}"' if radius else ""
    return f"<rect{_class(kind)} {place}{rounded}/>"


def text(x: int, y: int, said: str, *, size: int, kind: str = "") -> str:
    return f'<text{_class(kind)} x="{x}" y="{y}" font-size="{size}">{escape(said)}</text>'


def rounded(path: Sequence[Point], radius: int) -> str:
    """The drawing of a right-angled path whose corners are rounded as far as there is room."""
    said = [f"M{path[0][0]} {path[0][1]}"]
    for before, point, after in zip(path, path[1:], path[2:], strict=False):
        room = min(radius, _length(before, point) // 2, _length(point, after) // 2)
        if room < 1:
            said.append(f"L{point[0]} {point[1]}")
            continue
        start, end = _towards(point, before, room), _towards(point, after, room)
        said.append(f"L{start[0]} {start[1]}Q{point[0]} {point[1]} {end[0]} {end[1]}")
    said.append(f"L{path[-1][0]} {path[-1][1]}")
    return "".join(said)


def dot(point: Point, radius: int) -> str:
    """A disc, as part of a path."""
    x, y = point
    return f"M{x - radius} {y}a{radius} {radius} 0 1 0 {2 * radius} 0a{radius} {radius} 0 1 0 {-2 * radius} 0"


def tip(point: Point, size: int) -> str:
    """An arrow's head that points to the right, as part of a path."""
    x, y = point
    return f"M{x} {y}l{-size} {-(size // 2 + 1)}v{2 * (size // 2 + 1)}z"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _length(one: Point, other: Point) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _towards(point: Point, other: Point, far: int) -> Point:
    return (
        point[0] + max(-far, min(far, other[0] - point[0])),
        point[1] + max(-far, min(far, other[1] - point[1])),
    )
