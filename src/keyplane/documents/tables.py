"""Lists, maps and tables of shapes: the contract's tables are values of these classes.

A broken part is left out and everything around it is kept. A table whose needed field is broken
or missing is broken as a whole.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from keyplane.documents import about
from keyplane.documents.rows import Path, Rows, like, show
from keyplane.documents.shapes import (
    ANYTHING,
    BROKEN,
    TEXT,
    Broken,
    Schema,
    Shape,
    name_complaint,
    none_of,
)
from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Json

T = TypeVar("T")

Given = dict[str, Json]
"""What was read of a table, by the name of the attribute that it becomes."""


_IN_BRACES = "write a table, in { }"


@dataclass(frozen=True, slots=True)
class ListOf(Generic[T]):
    """A list; broken items are left out."""

    item: Shape[T]
    least: int = 0

    def read(self, value: Json, path: Path, rows: Rows) -> tuple[T, ...] | Broken:
        if not is_list(value):
            rows.wrong(path, f"{show(value)} is not a list", "write a list, in [ ]")
            return BROKEN
        if len(value) < self.least:
            rows.wrong(path, f"the list needs at least {self.least}")
            return BROKEN
        found: list[T] = []
        for index, item in enumerate(value):
            one = self.item.read(item, (*path, str(index)), rows)
            if one is BROKEN:
                rows.drop(path, value)
            else:
                found.append(one)
        return tuple(found)

    def schema(self) -> Schema:
        found: Schema = {"type": "array", "items": self.item.schema()}
        if self.least:
            found["minItems"] = self.least
        return found


@dataclass(frozen=True, slots=True)
class MapOf(Generic[T]):
    """A table whose keys a person chooses; broken items are left out."""

    item: Shape[T]
    key: Callable[[str], str | None] = name_complaint
    """What is wrong with a key, or None."""
    key_pattern: str | None = None
    instead: str = _IN_BRACES
    """What to write where no table stands."""

    def read(self, value: Json, path: Path, rows: Rows) -> dict[str, T] | Broken:
        if not is_table(value):
            rows.wrong(path, f"{show(value)} is not a table", self.instead)
            return BROKEN
        found: dict[str, T] = {}
        for name, item in value.items():
            below = (*path, name)
            complaint = self.key(name)
            if complaint is not None:
                rows.wrong(below, complaint)
            one = self.item.read(item, below, rows)
            if complaint is not None or one is BROKEN:
                rows.drop(below, item)
            else:
                found[name] = one
        return found

    def schema(self) -> Schema:
        found: Schema = {"type": "object", "additionalProperties": self.item.schema()}
        if self.key is name_complaint:
            found["propertyNames"] = {"pattern": "^[a-z][a-z0-9-]{0,62}$"}
        return found


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table."""

    shape: Shape[Json]
    attribute: str
    """Where what was read goes; empty: it is checked and forgotten."""
    needed: bool = False


DESCRIPTION = {"description": Field(TEXT, "")}
"""May stand on any named table, and means nothing to the plan."""


def needed(shape: Shape[Json], attribute: str) -> Field:
    return Field(shape, attribute, needed=True)


def fields(table: Mapping[str, Shape[Json]]) -> dict[str, Field]:
    """Fields whose attribute is their own spelling."""
    return {name: Field(shape, name) for name, shape in table.items()}


Check = Callable[[Mapping[str, Json]], Iterable[str]]
"""What is wrong between the fields of a table as written; any complaint breaks it."""


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """A table with fixed fields."""

    owner: str
    """What it is, for messages: `a slot`."""
    fields: Mapping[str, Field]
    build: Callable[..., T]
    """Takes what was read by attribute; what was not given is left to its defaults."""
    checks: tuple[Check, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict[str, str])
    """For fields that others have: who."""

    def read(self, value: Json, path: Path, rows: Rows) -> T | Broken:
        given = self.given(value, path, rows)
        return BROKEN if given is BROKEN else self.build(**given)

    def given(self, value: Json, path: Path, rows: Rows) -> Given | Broken:
        """What was read, not yet built."""
        if not is_table(value):
            rows.wrong(path, f"{show(value)} is not a table ({self.owner})", _IN_BRACES)
            return BROKEN
        found: Given = {}
        whole = True
        misspelled: dict[str, Json] = {}
        for name, item in value.items():
            below = (*path, name)
            known = self.fields.get(name)
            if known is None:
                rows.unknown(below, self.owner, self.fields, self.elsewhere.get(name, ""))
                meant = like(name, self.fields)
                if meant is not None and meant not in value:
                    misspelled[meant] = item
                continue
            one = known.shape.read(item, below, rows)
            if one is BROKEN:
                rows.drop(below, item)
                whole = whole and not known.needed
            elif known.attribute:
                found[known.attribute] = one
        for name, known in self.fields.items():
            if known.needed and name not in value:
                whole = False
                below = (*path, name)
                if not rows.was_dropped(below):
                    rows.wrong(below, f"`{name}` is missing: {self.owner} needs it", f"add {name}")
        for check in self.checks:
            for complaint in check(value):
                whole = False
                rows.wrong(path, complaint)
        for name, item in misspelled.items():
            rows.drop((*path, name), item)
        return found if whole else BROKEN

    def schema(self) -> Schema:
        properties = {
            name: about.described(self.owner, name, one.shape.schema())
            for name, one in self.fields.items()
        }
        return {"type": "object", **self.only(properties)}

    def only(self, properties: Mapping[str, Schema]) -> Schema:
        """That the table has no other fields, and which ones it needs."""
        found: Schema = {"properties": dict(properties), "additionalProperties": False}
        wanted = [name for name, one in self.fields.items() if one.needed]
        if wanted:
            found["required"] = wanted
        return found


@dataclass(frozen=True, slots=True)
class Tagged(Generic[T]):
    """A table whose fields depend on one of them, such as a unit on its `kind`."""

    owner: str
    tag: str
    tables: Mapping[str, Table[T]]
    """By the word of the tag. Each has the tag among its fields."""

    def read(self, value: Json, path: Path, rows: Rows) -> T | Broken:
        if not is_table(value):
            rows.wrong(path, f"{show(value)} is not a table ({self.owner})", _IN_BRACES)
            return BROKEN
        word = value.get(self.tag)
        if isinstance(word, str) and word in self.tables:
            return self.tables[word].read(value, path, rows)
        below = (*path, self.tag)
        known = ", ".join(self.tables)
        if self.tag in value:
            none_of(word, list(self.tables), below, rows)
        elif not rows.was_dropped(below):
            message = f"`{self.tag}` is missing: {self.owner} needs it"
            rows.wrong(below, message, f"state {self.tag} = one of {known}")
        every = {name for table in self.tables.values() for name in table.fields}
        for name in value:
            if name not in every:
                rows.unknown((*path, name), self.owner, every)
        return BROKEN

    def schema(self) -> Schema:
        """All fields are described once; by the word of the tag it is said which ones there are.

        So an editor knows what every field is before the tag is written, and complains of one
        thing, where it stands.
        """
        shapes: dict[str, list[Schema]] = {}
        for table in self.tables.values():
            for name, one in table.fields.items():
                shapes.setdefault(name, []).append(one.shape.schema())
        shapes[self.tag] = [{"enum": list(self.tables)}]
        alike = {
            name: about.described(self.owner, name, found[0])
            for name, found in shapes.items()
            if all(one == found[0] for one in found)
        }
        return {
            "type": "object",
            "properties": alike,
            "required": [self.tag],
            "allOf": [self._of(word, table, alike) for word, table in self.tables.items()],
        }

    def _of(self, word: str, table: Table[T], alike: Mapping[str, Schema]) -> Schema:
        own: dict[str, Schema] = {
            name: {} if name in alike else about.described(self.owner, name, one.shape.schema())
            for name, one in table.fields.items()
        }
        named: Schema = {"properties": {self.tag: {"const": word}}, "required": [self.tag]}
        return {"if": named, "then": table.only(own)}


def by_tag(  # noqa: PLR0913 - one parameter for each part of the table
    owner: str,
    tag: str,
    *,
    common: Mapping[str, Field],
    words: Mapping[str, Mapping[str, Field]],
    build: Callable[..., T],
    checks: Mapping[str, tuple[Check, ...]] | None = None,
) -> Tagged[T]:
    """A tagged table where each word adds its own fields to the common ones."""
    holders: dict[str, list[str]] = {}
    for word, own in words.items():
        for name in own:
            holders.setdefault(name, []).append(word)
    tables: dict[str, Table[T]] = {}
    for word, own in words.items():
        known = {tag: Field(ANYTHING, tag), **common, **own}
        tables[word] = Table(
            f"{owner} with {tag} = {word}",
            known,
            build,
            (checks or {}).get(word, ()),
            {
                name: f"it is one of {tag} = {' or '.join(others)}"
                for name, others in holders.items()
                if name not in known
            },
        )
    return Tagged(owner, tag, tables)


def exactly_one(*names: str) -> Check:
    """A check: one of these fields, and no other of them."""

    def check(written: Mapping[str, Json]) -> Iterable[str]:
        there = [name for name in names if name in written]
        if not there:
            yield f"one of {', '.join(names)} is needed"
        elif len(there) > 1:
            yield f"{' and '.join(there)} exclude each other: keep one of them"

    return check


def at_most_one(*names: str) -> Check:
    """A check: none or one of these fields."""

    def check(written: Mapping[str, Json]) -> Iterable[str]:
        there = [name for name in names if name in written]
        if len(there) > 1:
            yield f"{' and '.join(there)} exclude each other: keep one of them"

    return check


def raw(**given: Json) -> dict[str, Json]:
    """A build that keeps the fields in their authored spelling."""
    return given
