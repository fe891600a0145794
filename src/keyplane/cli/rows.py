"""Rows and tables for people. No colour where the output is no terminal."""

from collections.abc import Iterable, Iterator, Sequence

import click

from keyplane.model.diagnostic import Diagnostic, Severity

_COLOUR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_PRINTABLE = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    ord("\t"): "\\t",
    ord("\n"): "\\n",
}
"""What documents say is shown, never obeyed by the terminal."""
_PADDING = 3
"""Columns around each cell, and between two."""
_UNBROKEN = 1_000_000
"""Columns: wider than any table."""
_LONG = 1000
"""Lines: a longer table is printed line by line, as laying one out takes kilobytes for each."""
NAMED_MAX = 10
"""Names in one cell."""


def show(found: Iterable[Diagnostic]) -> None:
    for line in shown(found):
        click.echo(line)


def shown(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Each row as `x MESSAGE`, and under it the ways to mend it and its place."""
    for row in found:
        yield f"{click.style('x', fg=_COLOUR[row.severity])} {plain(row.message)}"
        for way in row.resolution:
            yield f"  resolution: {plain(way)}"
        place = ", ".join(filter(None, (row.subject, row.path)))
        weight = "" if row.severity is Severity.ERROR else f" ({row.severity})"
        yield click.style(f"  at: {plain(place)}{weight}", dim=True)


def table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table under its title; nothing where it has no lines."""
    for line in tabled(title, heads, lines):
        click.echo(line)


def tabled(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table under its title; none where it has no lines.

    No word is broken: a terminal too narrow for that gets a block for each line, and no table.
    """
    if not lines:
        return
    import io

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # A line of a pipe is for other programs: it is never broken.
    terminal = Console()
    width = terminal.width if terminal.is_terminal else _UNBROKEN
    text = [[plain(cell) for cell in line] for line in lines]
    widths = _widths(heads, text, width)
    if widths is None:
        yield from _blocks(title, heads, text)
        return
    if len(text) > _LONG:
        yield from _lines(title, heads, text)
        return
    if title:
        yield click.style(title, italic=True)
    made = Table(box=box.SIMPLE, show_edge=False)
    for head, columns in zip(heads, widths, strict=True):
        made.add_column(head, overflow="fold", width=columns)
    for line in text:
        made.add_row(*map(Text, line))
    drawn = io.StringIO()
    at_terminal = terminal.is_terminal
    Console(file=drawn, highlight=False, width=width, force_terminal=at_terminal).print(made)
    yield from (line.rstrip(" ") for line in drawn.getvalue().splitlines())


def _widths(heads: Sequence[str], lines: Sequence[Sequence[str]], columns: int) -> list[int] | None:
    """The width of each column, the widest folded first; None if a word would have to break."""
    cells = [[head, *(line[at] for line in lines)] for at, head in enumerate(heads)]
    widths = [max(map(len, column)) for column in cells]
    # A head is one word: it says what the column is.
    least = [
        max(len(head), *(len(word) for cell in column[1:] for word in cell.split() or [""]))
        for head, column in zip(heads, cells, strict=True)
    ]
    room = columns - _PADDING * len(widths)
    while sum(widths) > room:
        slack, at = max((width - least[at], at) for at, width in enumerate(widths))
        if slack == 0:
            return None
        widths[at] -= 1
    return widths


def _lines(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """As a table looks where nothing is folded; a terminal folds what is too long for it."""
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    if title:
        yield title
    for turn, line in enumerate((heads, *lines)):
        cells = (f"{cell:{width}}" for cell, width in zip(line, widths, strict=True))
        yield f" {'   '.join(cells)}".rstrip(" ")
        if turn == 0:
            yield "─" * (sum(widths) + _PADDING * len(widths) - 1)


def _blocks(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    if title:
        yield title
    width = max(map(len, heads))
    for line in lines:
        for at, (head, cell) in enumerate(zip(heads, line, strict=True)):
            if cell:
                mark = " " if at == 0 else "   "
                yield f"{mark}{click.style(f'{head:{width}}', dim=True)}  {cell}"


def several(names: Sequence[str]) -> str:
    """Names for one cell; of many the first."""
    if len(names) <= NAMED_MAX:
        return " ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def counted(number: int, thing: str) -> str:
    """`1 unit`, `2 units`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def plain(text: str) -> str:
    """The text with control characters shown."""
    return text.translate(_PRINTABLE)
