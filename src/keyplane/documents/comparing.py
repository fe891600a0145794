"""Two texts of a fleet, line by line: what differs, and what two people's edits make together."""

import difflib
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_LINES_MAX = 20_000
"""Of a file: comparing takes up to the square of their number."""


def difference(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """A unified diff of all files, by path."""
    parts: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            parts += _file(path, old, new)
    return "".join(parts)


def _file(path: str, old: bytes | None, new: bytes | None) -> list[str]:
    head = [
        f"--- {path if old is not None else '(no such file)'}\n",
        f"+++ {path if new is not None else '(no such file)'}\n",
    ]
    old_lines, new_lines = _lines(old or b""), _lines(new or b"")
    if old_lines is None or new_lines is None:
        sizes = [f"{len(each)} bytes" if each is not None else "nothing" for each in (old, new)]
        return [*head, f"  no text that can be shown: {sizes[0]} became {sizes[1]}\n"]
    # Its own two first lines are replaced by ours.
    body = list(difflib.unified_diff(old_lines, new_lines, n=2))[2:]
    return [*head, *(_ended(line) for line in body)]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ no newline at the end\n"


def _lines(data: bytes) -> list[str] | None:
    if b"\0" in data or data.count(b"\n") > _LINES_MAX:
        return None
    try:
        return data.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None


class _Hunk(NamedTuple):
    """Lines of the base from `start` up to `end` become `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both edits of one text; None where they meet, so that a person has to choose."""
    texts = [_lines(each) for each in (base, ours, theirs)]
    old, one, other = texts
    if old is None or one is None or other is None:
        return None
    hunks = sorted({*_hunks(old, one), *_hunks(old, other)})
    for first, then in itertools.pairwise(hunks):
        # Edits that touch are taken to be of one thing.
        if then.start <= first.end:
            return None
    made: list[str] = []
    at = 0
    for hunk in hunks:
        made += [*old[at : hunk.start], *hunk.lines]
        at = hunk.end
    return "".join((*made, *old[at:])).encode()


def _hunks(before: Sequence[str], after: Sequence[str]) -> list[_Hunk]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [
        _Hunk(start, end, tuple(after[new_start:new_end]))
        for kind, start, end, new_start, new_end in matcher.get_opcodes()
        if kind != "equal"
    ]
