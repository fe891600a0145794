"""How wide a text is in a font that nobody here has, and how to cut it to a width.

The fonts in an SVG are the reader's. Widths are those of DejaVu Sans, the widest of the common
ones, so that what fits here fits there.
"""

from typing import Final

# Thousandths of the font's size, rounded up.
_WIDTHS: Final = {
    **dict.fromkeys("ijl'|", 290),
    **dict.fromkeys(' .,;:!/\\fIJtr()[]"', 420),
    **dict.fromkeys("-·", 370),
    **dict.fromkeys("sczkvxy_*", 600),
    **dict.fromkeys("abdeghnopqu0123456789", 640),
    **dict.fromkeys("mwMW@%…", 1000),
}
_CAPITAL: Final = 790
_OTHER: Final = 1000
BOLD: Final = 1130
"""A bold letter is up to so many thousandths of a plain one."""


def width(text: str, size: int, *, bold: bool = False) -> int:
    """At most so many pixels."""
    total = sum(_WIDTHS.get(char) or (_CAPITAL if char.isascii() else _OTHER) for char in text)
    return -(-total * size * (BOLD if bold else 1000) // 1_000_000)


def fit(text: str, room: int, size: int, *, bold: bool = False) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if width(text, size, bold=bold) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if width(text[:middle] + "…", size, bold=bold) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low] + "…" if low else ""
