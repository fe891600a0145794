"""Settings as they are declared. Whether a value keeps their rules is the planner's to say."""

from collections.abc import Iterable, Mapping

from keyplane.documents.shapes import ANYTHING, PATTERN, Choice, Number
from keyplane.documents.tables import DESCRIPTION, Field, ListOf, Table, needed
from keyplane.model.interface import ValueType
from keyplane.model.module import Json, Setting

_OTHERS = [kind.value for kind in ValueType if kind.value not in ("integer", "number")]


def _build(**given: Json) -> Setting:
    return Setting(has_default="default" in given, **given)


def _bounds_are_of_numbers(written: Mapping[str, Json]) -> Iterable[str]:
    kind = written.get("type")
    for name in ("minimum", "maximum"):
        if name in written and kind in _OTHERS:
            yield f"`{name}` is for numbers, and this setting is of type {kind}"


SETTING = Table(
    "a setting",
    {
        "type": needed(Choice(ValueType), "type"),
        "default": Field(ANYTHING, "default"),
        "enum": Field(ListOf(ANYTHING), "enum"),
        "minimum": Field(Number(), "minimum"),
        "maximum": Field(Number(), "maximum"),
        "pattern": Field(PATTERN, "pattern"),
        **DESCRIPTION,
    },
    _build,
    (_bounds_are_of_numbers,),
)
