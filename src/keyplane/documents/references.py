"""The `${…}` references inside a string: where they stand and what they are called.

Decides only syntax. Whether a reference names something, and on which plane its value travels, is
the planner's.
"""

import re
from dataclasses import dataclass

from keyplane.documents import rows

_MARK = re.compile(r"\$\$\{|\$\{")


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference. `${results.db.dsn}` has root `results` and path `("db", "dsn")`."""

    root: str
    path: tuple[str, ...]
    text: str
    """What stands between the braces."""

    def __str__(self) -> str:
        return "${" + self.text + "}"


@dataclass(frozen=True, slots=True)
class Malformed:
    """A `${` that is no reference."""

    message: str


Template = tuple[str | Reference, ...]
"""Literal strings, escapes undone, and references, in order. Adjoining literals are one."""


def parse(text: str) -> Template | Malformed:
    """The parts of a text; the empty text is one empty literal."""
    if "${" not in text:
        return (text,)
    parts: list[str | Reference] = []
    literal: list[str] = []
    position = 0
    while (mark := _MARK.search(text, position)) is not None:
        literal.append(text[position : mark.start()])
        if mark[0] == "$${":
            literal.append("${")
            position = mark.end()
            continue
        close = text.find("}", mark.end())
        if close < 0:
            return Malformed(
                f"`${{` in {rows.shorten(text)!r} is never closed; `$${{` writes a literal `${{`"
            )
        inner = text[mark.end() : close]
        if not inner.strip():
            return Malformed(f"`${{{inner}}}` in {rows.shorten(text)!r} names nothing")
        _flush(parts, literal)
        parts.append(_reference(inner))
        position = close + 1
    literal.append(text[position:])
    _flush(parts, literal)
    return tuple(parts)


def _reference(inner: str) -> Reference:
    root, *path = inner.split(".")
    return Reference(root, tuple(path), inner)


def _flush(parts: list[str | Reference], literal: list[str]) -> None:
    joined = "".join(literal)
    literal.clear()
    if joined:
        parts.append(joined)
