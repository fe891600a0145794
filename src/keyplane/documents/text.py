"""Bytes of TOML or JSON to a plain tree. Decides what is no document at all, never what it means.

Both spellings give the same tree: dicts, lists, strings, integers, finite floats, booleans, and
None from JSON. Whatever else the text held is a row.
"""

import datetime as dt
import json
import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from keyplane.documents.rows import Path, Rows, shorten
from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Json

_DEPTH_MAX = 64
"""Levels of nesting: the deepest field of any document is at 12."""
_SIZE_MAX = 64 << 20
"""Bytes: ten times the largest fleet that was ever measured, and read within a minute."""
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*(?:{_KEY}[ \t]*\.[ \t]*){{{_DEPTH_MAX}}}")
"""Where a key may stand, one that is too deep: `tomllib` takes the square of its length in time."""
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 63) - 1
"""What every reader of a plan can hold."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why there is no tree."""

    message: str


def parse(data: bytes, *, spelling: str) -> dict[str, Json] | Unreadable:
    """The tree of a document; `spelling` is `toml` or `json`."""
    if len(data) > _SIZE_MAX:
        return Unreadable(f"{len(data)} bytes, more than the {_SIZE_MAX} that are read")
    try:
        text = data.decode("utf-8")
        if text.startswith("\ufeff"):
            return Unreadable("begins with a byte order mark; save it as UTF-8 without one")
        if spelling == "toml" and _is_deep(text):
            return Unreadable(f"nested deeper than {_DEPTH_MAX} levels")
        tree: Json = tomllib.loads(text) if spelling == "toml" else _json(text)
    except UnicodeDecodeError as error:
        return Unreadable(f"not UTF-8 (byte {error.start})")
    except RecursionError:
        return Unreadable(f"nested deeper than {_DEPTH_MAX} levels")
    except ValueError as error:
        return Unreadable(shorten(str(error)))
    if not is_table(tree):
        return Unreadable("the document is no table")
    return judged(tree)


def judged(tree: dict[str, Json]) -> dict[str, Json] | Unreadable:
    """The tree, unless it is too deep or holds what no JSON text can say."""
    level: list[Json] = [tree]
    for _ in range(_DEPTH_MAX):
        below: list[Json] = []
        for node in level:
            if is_table(node):
                for key in node:
                    if not key.isascii() and _lone(key):
                        return Unreadable("a key holds a lone surrogate")
            for item in _items(node):
                kind = item.__class__
                if kind is str:
                    if not item.isascii() and _lone(item):
                        return Unreadable(f"{item[:40]!a} holds a lone surrogate")
                elif kind is dict or kind is list:
                    below.append(item)
                elif kind is float and not math.isfinite(item):
                    return Unreadable(f"{item} is no number that a document can hold")
        if not below:
            return tree
        level = below
    return Unreadable(f"nested deeper than {_DEPTH_MAX} levels")


def sweep(tree: dict[str, Json], rows: Rows, path: Path = ()) -> None:
    """Take out of the tree what no document may hold, with a row for each."""
    if not _is_odd(tree):
        return
    for holder, key, place in list(_leaves(tree, path)):
        complaint = _complaint(holder[key])
        if complaint is not None:
            rows.wrong(place, complaint)
            rows.drop(place)
            holder[key] = _GONE
    _prune(tree)


_GONE = object()


def _is_odd(tree: Json) -> bool:
    """Whether anything is to be taken out. Nearly no document has any, and this is quick."""
    waiting: list[Json] = [tree]
    while waiting:
        for item in _items(waiting.pop()):
            kind = item.__class__
            if kind is str:
                if "\0" in item:
                    return True
            elif kind is dict or kind is list:
                waiting.append(item)
            elif kind is int:
                if not _INTEGER_MIN <= item <= _INTEGER_MAX:
                    return True
            elif kind is not float and kind is not bool and item is not None:
                return True
    return False


def _is_deep(text: str) -> bool:
    """Whether some key has too many parts."""
    return any(_LONG_KEY.search(line) for line in text.split("\n") if line.count(".") >= _DEPTH_MAX)


def _json(text: str) -> Json:
    def table(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise ValueError(f"the key {key[:80]!a} stands twice in one table")
                seen.add(key)
        return found

    def constant(name: str) -> Json:
        raise ValueError(f"{name} is no JSON")

    return json.loads(text, object_pairs_hook=table, parse_constant=constant)


def _lone(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _complaint(value: Json) -> str | None:
    if isinstance(value, (str, bool, float)) or value is None:
        if isinstance(value, str) and "\0" in value:
            return "a text must not hold a NUL character"
        return None
    if isinstance(value, int):
        if not _INTEGER_MIN <= value <= _INTEGER_MAX:
            return "an integer must fit into 64 bits"
        return None
    if isinstance(value, (dt.date, dt.time)):
        return f"{value.isoformat()} is a date or time; write it as a string"
    return f"a {type(value).__name__} is no value of a document"


def _leaves(node: Json, path: Path) -> Iterator[tuple[Json, Json, Path]]:
    """Each leaf as its holder, its key there, and its path. Depth is bounded already."""
    for key, value in node.items() if is_table(node) else enumerate(_items(node)):
        below = (*path, str(key))
        if isinstance(value, (dict, list)):
            yield from _leaves(value, below)
        elif not isinstance(value, str) or "\0" in value:
            yield node, key, below


def _prune(node: Json) -> None:
    if is_table(node):
        for key in [key for key, value in node.items() if value is _GONE]:
            del node[key]
    elif is_list(node):
        node[:] = [value for value in node if value is not _GONE]
    for item in _items(node):
        if isinstance(item, (dict, list)):
            _prune(item)


def _items(node: Json) -> list[Json]:
    """What a table or a list holds."""
    if is_table(node):
        return list(node.values())
    return node if is_list(node) else []
