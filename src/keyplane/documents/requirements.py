"""Requirements on facts of a machine, and on the count of a slot's members."""

import re

from keyplane.documents.rows import show
from keyplane.documents.shapes import (
    FILLED,
    PATTERN,
    SCALAR,
    TEXT,
    VALUE,
    Choice,
    Either,
    Shape,
    Text,
)
from keyplane.documents.tables import Field, ListOf, Table, Tagged, by_tag, needed
from keyplane.model.module import (
    CountRequirement,
    Json,
    Predicate,
    Requirement,
    RequirementSeverity,
)

_NUMBER = r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?"
_VERSION = r"[0-9]+(\.[0-9]+)*([-+.~][0-9A-Za-z.~+-]*)?"
_BOUND = re.compile(rf"\s*(>=|<=|>|<|==?|!=)\s*({_NUMBER}|{_VERSION})\s*", re.ASCII)


def _bounds(text: str) -> str | None:
    if "${" in text or all(_BOUND.fullmatch(part) for part in text.split(",")):
        return None
    return f'{show(text)} is no bounds; write them like ">= 2, < 8"'


def _pattern(text: str) -> str | None:
    return None if "${" in text or PATTERN.check is None else PATTERN.check(text)


_BOUNDS = Text("bounds", check=_bounds)
_VALUES: Shape[Json] = Either("a list or one reference", {list: ListOf(SCALAR), str: TEXT})
_SEVERITY = {"severity": Field(Choice(RequirementSeverity), "severity")}
_PREDICATE = {"predicate": needed(Choice(Predicate), "predicate")}


REQUIREMENT: Tagged[Requirement] = by_tag(
    "a requirement",
    "predicate",
    common={**_PREDICATE, "subject": needed(FILLED, "subject"), **_SEVERITY},
    words={
        "exists": {},
        "absent": {},
        "equals": {"value": needed(VALUE, "value")},
        "one-of": {"values": needed(_VALUES, "values")},
        "in-bounds": {"bounds": needed(_BOUNDS, "bounds")},
        "matches": {"pattern": needed(Text("a pattern", check=_pattern), "pattern")},
    },
    build=Requirement,
)

_COUNT: Tagged[CountRequirement] = by_tag(
    "a count requirement",
    "predicate",
    common={**_PREDICATE, **_SEVERITY},
    words={
        "equals": {"value": needed(SCALAR, "value")},
        "one-of": {"values": needed(ListOf(SCALAR), "values")},
        "in-bounds": {"bounds": needed(_BOUNDS, "bounds")},
    },
    build=CountRequirement,
)


def _only_count(count: CountRequirement | None = None) -> CountRequirement | None:
    return count


REQUIRES_OF_SLOT: Table[CountRequirement | None] = Table(
    "a slot's requires", {"count": Field(_COUNT, "count")}, _only_count
)
