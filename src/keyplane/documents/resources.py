"""Resources: what an entry owns on its machine beside its units."""

import re
from collections.abc import Iterable, Mapping

from keyplane.documents.rows import show
from keyplane.documents.shapes import (
    ABSOLUTE,
    ANYTHING,
    BELOW,
    FILLED,
    NAME,
    TEXT,
    Either,
    Flag,
    Shape,
    Text,
)
from keyplane.documents.tables import (
    DESCRIPTION,
    Field,
    ListOf,
    Tagged,
    by_tag,
    exactly_one,
    needed,
)
from keyplane.model.module import Json, Resource

_MODE = re.compile(r"0?[0-7]{3,4}", re.ASCII)


def _mode(text: str) -> str | None:
    if "${" in text or _MODE.fullmatch(text):
        return None
    return f'{show(text)} is no mode; write it like "0644"'


_OWNED = {
    "mode": Field(Text('a mode, such as "0644"', check=_mode), "mode"),
    "owner": Field(FILLED, "owner"),
    "group": Field(FILLED, "group"),
}
_PATH = {"path": needed(ABSOLUTE, "path")}
_NAMED = {"name": needed(FILLED, "name")}
_FLAG: Shape[Json] = Either("a boolean", {bool: Flag(), str: TEXT})
_NAMES: Shape[Json] = Either("a list", {list: ListOf(FILLED), str: FILLED})


def _build(**given: Json) -> Resource:
    kind = given.pop("type")
    return Resource(
        type=kind,
        fields={
            name: list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType] - of Json
            for name, value in given.items()
        },
    )


RESOURCE: Tagged[Resource] = by_tag(
    "a resource",
    "type",
    common=DESCRIPTION,
    words={
        "file": {
            **_PATH,
            "text": Field(TEXT, "text"),
            "file": Field(BELOW, "file"),
            **_OWNED,
            "adopt": Field(_FLAG, "adopt"),
        },
        "directory": {**_PATH, **_OWNED},
        "archive": {"archive": needed(NAME, "archive"), **_PATH},
        "package": {**_NAMED, "version": Field(FILLED, "version")},
        "account": {
            **_NAMED,
            "home": Field(FILLED, "home"),
            "shell": Field(FILLED, "shell"),
            "groups": Field(_NAMES, "groups"),
        },
        "hosts": {"entries": needed(ANYTHING, "entries")},
    },
    build=_build,
    checks={"file": (exactly_one("text", "file"),)},
)


def shipped_files(resources: Mapping[str, Resource]) -> Iterable[tuple[str, str]]:
    """Each file that a resource ships, with the path of the field that asks for it."""
    for name, resource in resources.items():
        file = resource.fields.get("file")
        if isinstance(file, str):
            yield file, f"resources.{name}.file"
