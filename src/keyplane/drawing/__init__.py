"""A plan as a picture: pure, from values to SVG text, the same bytes each time.

`sketch` says what is drawn, `layout` where, `picture` how. Machines are boxes in a grid, entries are
cards in them, and lines run only in the streets between: no line can cross a card.
"""

from keyplane.drawing.picture import draw
from keyplane.drawing.sketch import Value

__all__ = ["Value", "draw"]
