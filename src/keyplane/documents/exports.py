"""Exports, and the provides and externals that carry them."""

from collections.abc import Iterable, Mapping

from keyplane.documents.rows import Path, Rows, show
from keyplane.documents.shapes import (
    ABSOLUTE,
    BROKEN,
    FILLED,
    FLAG,
    TEXT,
    TIME,
    VALUE,
    Broken,
    Choice,
    Flag,
    Schema,
)
from keyplane.documents.tables import (
    DESCRIPTION,
    Field,
    ListOf,
    MapOf,
    Table,
    Tagged,
    by_tag,
    exactly_one,
    needed,
)
from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import (
    Access,
    ExportVariant,
    Follow,
    Json,
    Lifecycle,
    Provide,
    Scope,
    Source,
)

Exports = Mapping[str, tuple[ExportVariant, ...]]


def _every_goes_with_command(written: Mapping[str, Json]) -> Iterable[str]:
    if "command" in written and "every" not in written:
        yield "`every` is missing: a command needs it"
    if "every" in written and "command" not in written:
        yield "`every` goes with a command"


_SOURCE = Table(
    "a source",
    {
        "file": Field(FILLED, "file"),
        "command": Field(ListOf(TEXT, least=1), "command"),
        "every": Field(TIME, "every"),
        "published": Field(Flag(only=True), "published"),
    },
    Source,
    (exactly_one("file", "command", "published"), _every_goes_with_command),
)

_VARIANT: Tagged[ExportVariant] = by_tag(
    "an export",
    "lifecycle",
    common={
        "lifecycle": needed(Choice(Lifecycle), "lifecycle"),
        "when": Field(MapOf(VALUE), "when"),
        "access": Field(Choice(Access), "access"),
        **DESCRIPTION,
    },
    words={
        "static": {"value": needed(VALUE, "value")},
        "probed": {"fact": needed(FILLED, "fact")},
        "dynamic": {"source": needed(_SOURCE, "source")},
    },
    build=ExportVariant,
)


class _Variants:
    """One variant as a plain table, or a list of them."""

    def read(self, value: Json, path: Path, rows: Rows) -> tuple[ExportVariant, ...] | Broken:
        if is_list(value):
            found = ListOf(_VARIANT).read(value, path, rows)
            return found if found or not value else BROKEN
        if not is_table(value):
            rows.wrong(path, f"{show(value)} is neither a variant nor a list of variants")
            return BROKEN
        one = _VARIANT.read(value, path, rows)
        return BROKEN if one is BROKEN else (one,)

    def schema(self) -> Schema:
        return {
            "type": ["object", "array"],
            "if": {"type": "array"},
            "then": ListOf(_VARIANT).schema(),
            "else": {name: one for name, one in _VARIANT.schema().items() if name != "type"},
        }


EXPORTS: MapOf[tuple[ExportVariant, ...]] = MapOf(_Variants())


def _provide(exports: Exports | None = None, **given: Json) -> tuple[Provide, Exports]:
    return Provide(**given), exports or {}


_PROVIDE_FIELDS = {
    "interface": needed(TEXT, "interface"),
    "scope": Field(Choice(Scope), "scope"),
    "follow": Field(Choice(Follow), "follow"),
    "credentials": Field(FLAG, "credentials"),
    "grants": Field(ABSOLUTE, "grants"),
    **DESCRIPTION,
}
PROVIDE: Table[tuple[Provide, Exports]] = Table(
    "a provide", {**_PROVIDE_FIELDS, "exports": Field(EXPORTS, "exports")}, _provide
)


def _exports_alone(exports: Exports | None = None) -> Exports:
    return exports or {}


COMPUTED_PROVIDE: Table[Exports] = Table(
    "a computed provide",
    {"exports": Field(EXPORTS, "exports")},
    _exports_alone,
    (),
    dict.fromkeys(_PROVIDE_FIELDS, "it stands in the document, beside `impl`"),
)
