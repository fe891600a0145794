"""What a text with references is made of while it is planned.

A *tree* is JSON in which a string that holds references is a tuple of parts. JSON has no tuples,
so a tuple is always such a text. Parts are literals (any JSON value), references not yet looked
at, and what looking at them gave.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeGuard

from keyplane.documents import references
from keyplane.documents.references import Malformed, Reference
from keyplane.documents.trees import is_list, is_table
from keyplane.model.interface import ValueType
from keyplane.model.module import Json
from keyplane.planner import canonical

Part = Any
"""A JSON value, Reference, Own, Hole, Live or Lost."""
Parts = tuple[Part, ...]
Noted = Callable[[str, str], None]
"""Told the path and the message of a text that cannot be read."""
Tree = Any
"""JSON with Parts in place of the strings that hold references."""


class OwnKind(Enum):
    NAME = "name"
    ADDRESS = "address"
    PORT = "port"
    FACT = "fact"


@dataclass(frozen=True, slots=True)
class Own:
    """A value of the entry's own machine, filled in entry by entry."""

    kind: OwnKind
    name: str = ""
    """The listen or the fact."""
    holder: str = ""
    """Of a port: the `INSTANCE:ROLE` that listens."""
    type: ValueType | None = None
    """Of a fact: what its export says it is; None takes any."""
    where: str = ""
    """Of a fact: the path of the export, from the role that holds it."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A fact that its machine does not say, or says no more."""

    fact: str
    machine: str | None
    """None: the entry's own machine."""
    type: str
    text: str = ""
    """The reference as it was written."""


@dataclass(frozen=True, slots=True)
class Live:
    """A dynamic value."""

    provider: str
    """`INSTANCE:ROLE@`, or `external:NAME`."""
    machine: str | None
    """None: the entry's own machine; the empty string: none at all."""
    suffix: str
    """`/provides/PROVIDE/EXPORT`."""
    reaction: str
    """`SLOT.EXPORT`."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """What cannot be resolved; a row says why."""

    text: str


NAME = Own(OwnKind.NAME)
ADDRESS = Own(OwnKind.ADDRESS)

_SPECIAL = (Own, Hole, Live, Lost, Reference)


def read(text: str, on_malformed: Callable[[str], None]) -> Tree:
    """The parts of an authored string, or the string itself where it has no reference."""
    if "${" not in text:
        return text
    parsed = references.parse(text)
    if isinstance(parsed, Malformed):
        on_malformed(parsed.message)
        return (Lost(text),)
    if all(isinstance(part, str) for part in parsed):
        return "".join(str(part) for part in parsed)
    return parsed


def read_tree(value: Json, path: str, on_malformed: Noted) -> Tree:
    """An authored value with its strings read; `on_malformed` gets the path and the message."""
    if isinstance(value, str):
        return read(value, lambda message: on_malformed(path, message))
    if is_table(value):
        return {key: read_tree(item, f"{path}.{key}", on_malformed) for key, item in value.items()}
    if is_list(value):
        return [
            read_tree(item, f"{path}[{index}]", on_malformed) for index, item in enumerate(value)
        ]
    return value


def references_in(tree: Tree) -> Iterator[Reference]:
    """Every reference of a tree, in order of appearance; keys of tables by name."""
    if is_text(tree):
        for part in tree:
            if isinstance(part, Reference):
                yield part
    elif is_table(tree):
        for key in sorted(tree):
            yield from references_in(tree[key])
    elif is_list(tree):
        for item in tree:
            yield from references_in(item)


def texts_in(tree: Tree, path: str) -> Iterator[tuple[str, Parts]]:
    """Every text with references, and where it stands."""
    if is_text(tree):
        yield path, tree
    elif is_table(tree):
        for key in sorted(tree):
            yield from texts_in(tree[key], f"{path}.{key}")
    elif is_list(tree):
        for index, item in enumerate(tree):
            yield from texts_in(item, f"{path}[{index}]")


def written(parts: Parts) -> str:
    """The text with what is not known yet as it was written."""
    shown: list[str] = []
    for part in parts:
        if isinstance(part, Hole | Live | Lost):
            shown.append(part.text)
        elif isinstance(part, Reference):
            shown.append(str(part))
        else:
            shown.append(canonical.text(part))
    return "".join(shown)


def written_tree(tree: Tree) -> Json:
    """The tree with every text as it was written."""
    if is_text(tree):
        return written(tree)
    if is_table(tree):
        return {key: written_tree(item) for key, item in tree.items()}
    return [written_tree(item) for item in tree] if is_list(tree) else tree


def is_text(tree: Tree) -> TypeGuard[Parts]:
    return isinstance(tree, tuple)


def is_value(part: Part) -> bool:
    """Whether a part is a value that needs no entry to be known."""
    return not isinstance(part, _SPECIAL)


def of_list(items: list[Tree]) -> Parts:
    """A list as one part; as one text, parted by spaces, where something in it is not known yet."""
    if not any(is_text(item) for item in items):
        return (items,)
    parts: list[Part] = []
    for item in items:
        if parts:
            parts.append(" ")
        parts += item if is_text(item) else [item]
    return joined(tuple(parts))


def joined(parts: Parts) -> Parts:
    """The same text with adjoining values made one string."""
    out: list[Part] = []
    for known, run in itertools.groupby(parts, is_value):
        several = list(run)
        if known and len(several) > 1:
            several = ["".join(map(canonical.text, several))]
        out += several
    return tuple(out)


def length(parts: Parts) -> int:
    """How many characters the parts come to; what is not known yet counts for little."""
    size = 0
    for part in parts:
        if isinstance(part, str):
            size += len(part)
        elif is_value(part):
            size += len(canonical.text(part))
    return size


def sole_fact(value: Tree) -> str | None:
    """The fact that an export's value is, and nothing else: it has to be of the export's type."""
    match value:
        case (Reference(root="machine", path=("facts", _, *_)) as reference,):
            return ".".join(reference.path[1:])
        case _:
            return None
