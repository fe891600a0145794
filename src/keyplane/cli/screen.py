"""Draws the same lines again and again in place, on a terminal."""

import shutil
import sys
from collections.abc import Sequence
from typing import Self

import click

_HOME = "\x1b[H"
_CLEAR_LINE = "\x1b[K"
_CLEAR_REST = "\x1b[J"
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The other screen, with no cursor, and with long lines cut at its edge."""
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"


def fits(lines: Sequence[str]) -> bool:
    return len(lines) <= shutil.get_terminal_size().lines


class Screen:
    """A terminal's second screen, while the context is open; the first is as it was afterwards."""

    def __enter__(self) -> Self:
        self._write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_LEAVE)

    def draw(self, lines: Sequence[str]) -> None:
        """As many as fit; how many more there are is said in the last line."""
        height = shutil.get_terminal_size().lines
        if len(lines) > height:
            more = len(lines) - height + 1
            lines = [*lines[: height - 1], click.style(f"and {more} lines more", dim=True)]
        drawn = (_CLEAR_LINE + "\r\n").join(lines)
        self._write(f"{_HOME}{drawn}{_CLEAR_LINE}{_CLEAR_REST}")

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
