"""The shapes that a single value can have. Each reads a value and can describe itself as schema.

A shape never raises and never guesses: it returns what it read, or `BROKEN` with a row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, Generic, Protocol, TypeVar

from keyplane.documents import addresses, patterns
from keyplane.documents.rows import Path, Rows, like, show
from keyplane.documents.trees import is_list
from keyplane.model import duration, names
from keyplane.model.module import Json

T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=StrEnum)

Schema = dict[str, Json]


class Broken(Enum):
    """What a shape returns after a row: there is no value."""

    BROKEN = "broken"


BROKEN: Final = Broken.BROKEN


class Shape(Protocol[T_co]):
    """How one value is read, and how it is described."""

    def read(self, value: Json, path: Path, rows: Rows) -> T_co | Broken: ...

    def schema(self) -> Schema: ...


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `check` says what is wrong with one, or None."""

    what: str = "a string"
    check: Callable[[str], str | None] | None = None
    pattern: str | None = None
    """For the schema, where the check is a pattern."""
    empty: bool = True
    code: str = "wrong-type"
    """Of the row that the check makes."""

    def read(self, value: Json, path: Path, rows: Rows) -> str | Broken:
        if not isinstance(value, str):
            scalar = isinstance(value, int | float) and self.check is None
            ways = [f'write "{show(value)}", in quotes'] if scalar else []
            rows.wrong(path, f"{show(value)} is not {self.what}", *ways)
            return BROKEN
        if not value and not self.empty:
            rows.wrong(path, f"{self.what} must not be empty")
            return BROKEN
        complaint = None if self.check is None else self.check(value)
        if complaint is not None:
            rows.add(self.code, path, complaint)
            return BROKEN
        return value

    def schema(self) -> Schema:
        found: Schema = {"type": "string"}
        if self.pattern is not None:
            found["pattern"] = f"^(?:{self.pattern})$"
        if not self.empty:
            found["minLength"] = 1
        return found


def none_of(value: Json, known: Sequence[str], path: Path, rows: Rows) -> None:
    close = like(value, known) if isinstance(value, str) else None
    ways = [] if close is None else [f"write `{close}`"]
    rows.wrong(path, f"{show(value)} is none of {', '.join(known)}", *ways)


@dataclass(frozen=True, slots=True)
class Choice(Generic[E]):
    """One word of an enumeration."""

    words: type[E]

    def read(self, value: Json, path: Path, rows: Rows) -> E | Broken:
        known = [word.value for word in self.words]
        if isinstance(value, str) and value in known:
            return self.words(value)
        none_of(value, known, path, rows)
        return BROKEN

    def schema(self) -> Schema:
        return {"enum": [word.value for word in self.words]}


@dataclass(frozen=True, slots=True)
class Word:
    """One of some words, kept as a string."""

    known: tuple[str, ...]

    def read(self, value: Json, path: Path, rows: Rows) -> str | Broken:
        if isinstance(value, str) and value in self.known:
            return value
        none_of(value, self.known, path, rows)
        return BROKEN

    def schema(self) -> Schema:
        return {"enum": list(self.known)}


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer. `true` and `1.0` are none."""

    minimum: int | None = None
    maximum: int | None = None

    def read(self, value: Json, path: Path, rows: Rows) -> int | Broken:
        if not isinstance(value, int) or isinstance(value, bool):
            rows.wrong(path, f"{show(value)} is not an integer")
            return BROKEN
        if self.minimum is not None and value < self.minimum:
            rows.wrong(path, f"{value} is less than {self.minimum}")
            return BROKEN
        if self.maximum is not None and value > self.maximum:
            rows.wrong(path, f"{value} is more than {self.maximum}")
            return BROKEN
        return value

    def schema(self) -> Schema:
        found: Schema = {"type": "integer"}
        if self.minimum is not None:
            found["minimum"] = self.minimum
        if self.maximum is not None:
            found["maximum"] = self.maximum
        return found


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or a float."""

    def read(self, value: Json, path: Path, rows: Rows) -> int | float | Broken:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            rows.wrong(path, f"{show(value)} is not a number")
            return BROKEN
        return value

    def schema(self) -> Schema:
        return {"type": "number"}


@dataclass(frozen=True, slots=True)
class Flag:
    """`true` or `false`."""

    only: bool | None = None
    """Where just one of them means something."""

    def read(self, value: Json, path: Path, rows: Rows) -> bool | Broken:
        if not isinstance(value, bool) or (self.only is not None and value is not self.only):
            wanted = "a boolean" if self.only is None else str(self.only).lower()
            meant = "true or false" if self.only is None else wanted
            rows.wrong(path, f"{show(value)} is not {wanted}", f"write {meant}, without quotes")
            return BROKEN
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"} if self.only is None else {"const": self.only}


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value, kept as it is."""

    def read(self, value: Json, path: Path, rows: Rows) -> Json:
        del path, rows
        return value

    def schema(self) -> Schema:
        return {}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number or boolean; with `lists`, a list of strings too."""

    lists: bool = False

    def read(self, value: Json, path: Path, rows: Rows) -> Json | Broken:
        if isinstance(value, (str, int, float)):
            return value
        if self.lists and is_list(value):
            if all(isinstance(item, str) for item in value):
                return value
            rows.wrong(path, "a list must be of strings")
            return BROKEN
        wanted = "a string, number or boolean" + (", or a list of strings" if self.lists else "")
        rows.wrong(path, f"{show(value)} is not {wanted}")
        return BROKEN

    def schema(self) -> Schema:
        scalar = ["string", "number", "boolean"]
        if not self.lists:
            return {"type": scalar}
        return {"type": [*scalar, "array"], "items": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class Time:
    """A duration."""

    def read(self, value: Json, path: Path, rows: Rows) -> duration.Duration | Broken:
        found = duration.parse(value) if isinstance(value, str) else None
        if found is None:
            rows.wrong(
                path,
                f"{show(value)} is no duration",
                "write one whole number and one unit of ms, s, m, h, d, such as `30s`",
            )
            return BROKEN
        return found

    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[1-9][0-9]*(ms|s|m|h|d)$"}


@dataclass(frozen=True, slots=True)
class Either:
    """The first of several shapes by the JSON type of the value."""

    what: str
    by_type: Mapping[type, Shape[Json]] = field(default_factory=dict[type, Shape[Json]])

    def read(self, value: Json, path: Path, rows: Rows) -> Json | Broken:
        shape = self.by_type.get(value.__class__)
        if shape is None:
            rows.wrong(path, f"{show(value)} is not {self.what}")
            return BROKEN
        return shape.read(value, path, rows)

    def schema(self) -> Schema:
        """What is said of one type is nothing to another, so all of it may stand side by side."""
        found: Schema = {}
        kinds: list[str] = []
        for shape in self.by_type.values():
            one = shape.schema()
            kinds.append(one.pop("type"))
            assert found.keys().isdisjoint(one)
            found |= one
        return {"type": kinds, **found}


@dataclass(frozen=True, slots=True)
class As:
    """What another shape reads, made into something else that is never broken."""

    shape: Shape[Json]
    make: Callable[[Json], Json]

    def read(self, value: Json, path: Path, rows: Rows) -> Json | Broken:
        found = self.shape.read(value, path, rows)
        return BROKEN if found is BROKEN else self.make(found)

    def schema(self) -> Schema:
        return self.shape.schema()


def _name(text: str) -> str | None:
    return name_complaint(text)


def name_complaint(text: str) -> str | None:
    """What is wrong with a name that a person chose."""
    if names.is_name(text):
        return None
    return (
        f"{show(text)} is no name: a name is a lower-case letter, then up to 62 lower-case "
        "letters, digits and hyphens"
    )


def _absolute(text: str) -> str | None:
    if text.startswith("${"):
        return None
    if not text.startswith("/") or ".." in text.split("/") or "\0" in text:
        return f"{show(text)} is no absolute path"
    return None


def _below(text: str) -> str | None:
    parts = text.split("/")
    if ".." in parts[1:] and parts[0] not in ("", ".", ".."):
        return f"{show(text)} goes up on its way: write it without `..`"
    if text.startswith("/") or ".." in parts:
        return f"{show(text)} leads out of the module"
    return None


def _address(text: str) -> str | None:
    if addresses.is_address(text):
        return None
    return f"{show(text)} is neither an IP address, such as 10.0.0.3, nor the name of a host"


def _pattern(text: str) -> str | None:
    found = patterns.compiled(text)
    return f"{show(text)} is no pattern: {found}" if isinstance(found, str) else None


TEXT: Final = Text()
FILLED: Final = Text(empty=False)
NAME: Final = Text("a name", check=_name, pattern=names.NAME.pattern)
ADDRESS: Final = Text("an address", check=_address, pattern=addresses.PATTERN, empty=False)
ABSOLUTE: Final = Text("an absolute path", check=_absolute, empty=False)
BELOW: Final = Text("a path in the module", check=_below, empty=False, code="unreadable")
PATTERN: Final = Text("a pattern", check=_pattern)
FLAG: Final = Flag()
TIME: Final = Time()
TIME_TEXT: Final = As(TIME, str)
SCALAR: Final = Scalar()
VALUE: Final = Scalar(lists=True)
ANYTHING: Final = Anything()
