"""Interfaces, from every file that declares some."""

import dataclasses
from collections.abc import Mapping

from keyplane.documents.rows import Rows
from keyplane.documents.shapes import BROKEN, Choice
from keyplane.documents.tables import DESCRIPTION, Field, MapOf, Table
from keyplane.model.interface import Interface, ValueType
from keyplane.model.module import Json

_TYPES = MapOf(Choice(ValueType))


def _named_later(**given: Json) -> Interface:
    return Interface(name="", **given)


INTERFACES: MapOf[Interface] = MapOf(
    Table(
        "an interface",
        {
            **DESCRIPTION,
            "request": Field(_TYPES, "request"),
            "exports": Field(_TYPES, "exports"),
        },
        _named_later,
    )
)


def read(tree: dict[str, Json], rows: Rows) -> dict[str, Interface]:
    found = INTERFACES.read(tree, (), rows)
    if found is BROKEN:
        return {}
    return {name: dataclasses.replace(one, name=name) for name, one in found.items()}


def merge(
    known: dict[str, tuple[Interface, str]], found: Mapping[str, Interface], rows: Rows
) -> None:
    """Add what one file declares. The same again is fine; another content is a row."""
    for name, one in found.items():
        there = known.setdefault(name, (one, rows.file))
        if there[0] != one:
            rows.wrong(
                (name,),
                f"the interface `{name}` has another content in {there[1]}",
                "give both the same request and exports, or one of them another name",
            )
