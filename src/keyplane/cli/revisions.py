"""How revisions are shown to people."""

from collections.abc import Iterator

import click

from keyplane.cli import ages, rows
from keyplane.parts import change_messages as changes

_LINES_MAX = 100
"""Of one difference beside others: more hides what it is shown for."""


def why(row: changes.RevisionRow) -> str:
    return f"{row.verb}: {row.why}" if row.verb and row.why else row.verb or row.why


def head(row: changes.RevisionRow) -> str:
    parts = (f"revision {row.revision}", ages.at(row.at_ms), row.who, why(row))
    return click.style(rows.plain("  ".join(filter(None, parts))), bold=True)


def edited(each: changes.Edited) -> Iterator[str]:
    yield head(each.revision)
    yield from cut(each.difference, f": `keyplane show {each.revision.revision} --diff`")


def cut(difference: str, more: str = "") -> Iterator[str]:
    """The first lines of a difference, and how many more there are."""
    lines = difference.splitlines()
    yield from coloured(lines[:_LINES_MAX])
    if len(lines) > _LINES_MAX:
        yield f"and {len(lines) - _LINES_MAX} lines more{more}"


def coloured(lines: list[str]) -> Iterator[str]:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        is_head = line.startswith(("--- ", "+++ "))
        colour = None if is_head else colours.get(line[:1])
        yield click.style(rows.plain(line), fg=colour, bold=is_head)
