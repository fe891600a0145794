"""Contracts for values that no plan can hold: what a machine is told of each.

Values alone, and how they are spelled; `converge` decides over them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from keyplane.model.interface import ValueType
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import EntryId, MachineName, UnitName

Json = Any
Parts = tuple[str | int, ...]

_REFERENCE = re.compile(r"\$\{results\.[^}]*\}")
"""Only a slot's exports are dynamic; whatever else looks like a reference is literal by now."""
_NOT_ESCAPED = re.compile(r"(?<!\$)\$\{results\.[^}]*\}")
"""`$${results.` is a literal, unless the count of sources says that a dollar stands before one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """How one dynamic value of a unit is made, and what a change of it asks for."""

    sources: tuple[str, ...]
    """The exports that it is made of: `ENTRY/provides/PROVIDE/EXPORT`."""
    parts: tuple[str | int, ...] = (0,)
    """Its text: literals, and the places of sources in `sources`."""
    reaction: ReactionKind
    on_missing: OnMissing = OnMissing.KEEP_LAST
    default: str | None = None
    """With `OnMissing.DEFAULT`, and only then."""
    max_staleness_ms: int | None = None
    """None: it may run on an old value for ever."""


Contracts = Mapping[EntryId, Mapping[UnitName, Mapping[str, Contract]]]
"""Of one machine, by entry, unit, and the name of the variable or the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Where the agent of a provider has a dynamic export from. Exactly one source is given."""

    type: ValueType = ValueType.STRING
    file: str | None = None
    """Its content, without white space around it."""
    command: tuple[str, ...] | None = None
    """What it prints, run again after each `every_ms`."""
    every_ms: int | None = None
    published: bool = False
    """The service itself says it to its agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRates:
    """How fast a machine reacts. In no key."""

    window_ms: int = 30_000
    burst: int = 3
    restarts_per_unit: int = 5
    budget_ms: int = 3_600_000


def run_folder(entry: EntryId) -> str:
    """Where what an agent and an entry's units have for each other stands on the machine."""
    return f"/run/keyplane/{entry.replace(':', '+')}"


def publish_folder(entry: EntryId) -> str:
    return f"{run_folder(entry)}/publish"


def publish_socket(entry: EntryId) -> str:
    return f"{publish_folder(entry)}/socket"


def export_id(entry: EntryId, provided: str) -> str:
    """Of the export `PROVIDE/EXPORT` of an entry, as contracts name it."""
    provide, _, export = provided.partition("/")
    return f"{entry}/provides/{provide}/{export}"


def provider_of(export: str) -> EntryId:
    return EntryId(export.partition("/")[0])


def machine_of(export: str) -> MachineName | None:
    """The machine of its provider; None for one outside the fleet."""
    _, at, machine = provider_of(export).rpartition("@")
    return MachineName(machine) if at else None


def parts_of(template: str, sources: int) -> Parts | None:
    """The template with the place of its source for each reference; None if they do not match.

    There is a source for each distinct reference, in order of appearance. One for each
    appearance is understood too.
    """
    for pattern in (_NOT_ESCAPED, _REFERENCE):
        found = pattern.findall(template)
        distinct = list(dict.fromkeys(found))
        if len(distinct) == sources:
            places = [distinct.index(text) for text in found]
        elif len(found) == sources:
            places = list(range(sources))
        else:
            continue
        literals = pattern.split(template)
        if pattern is _NOT_ESCAPED:
            literals = [text.replace("$${results.", "${results.") for text in literals]
        parts: list[str | int] = [literals[0]]
        for place, literal in zip(places, literals[1:], strict=True):
            parts += [place, literal]
        return tuple(part for part in parts if part != "")
    return None


def joined(sources: int) -> Parts:
    """The parts of a value with no template: one source, or a list joined by one space."""
    parts: list[str | int] = [0]
    for place in range(1, sources):
        parts += [" ", place]
    return tuple(parts)


def as_text(value: Json) -> str:
    """The value as it stands in a variable: a list joined by one space, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(map(as_text, value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return msgspec.json.encode(value).decode()
