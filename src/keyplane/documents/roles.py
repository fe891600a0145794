"""Roles: every key that a role can have, and the body that a function may compute instead."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from keyplane.documents.exports import COMPUTED_PROVIDE, PROVIDE, Exports
from keyplane.documents.reactions import REACTIONS
from keyplane.documents.requirements import REQUIREMENT, REQUIRES_OF_SLOT
from keyplane.documents.resources import RESOURCE
from keyplane.documents.rows import Path, Rows, show
from keyplane.documents.settings import SETTING
from keyplane.documents.shapes import (
    ABSOLUTE,
    ANYTHING,
    BROKEN,
    FILLED,
    NAME,
    SCALAR,
    TEXT,
    VALUE,
    Broken,
    Choice,
    Schema,
    Shape,
    Text,
    Whole,
    Word,
)
from keyplane.documents.tables import DESCRIPTION, Field, ListOf, MapOf, Table, needed
from keyplane.documents.units import UNIT
from keyplane.model.module import (
    Body,
    Bucket,
    Follow,
    Json,
    Listen,
    Provide,
    Reach,
    Role,
    Scope,
    Seat,
    Secret,
    Slot,
    Unit,
    Verb,
    Volume,
    Zone,
)

_READ = re.compile(r"[a-z][a-z0-9-]{0,62}:[a-z][a-z0-9-]{0,62}/[a-z][a-z0-9-]{0,62}", re.ASCII)


class _Protocol(StrEnum):
    TCP = "tcp"
    UDP = "udp"


def _bucket(text: str) -> str | None:
    if _READ.fullmatch(text):
        return None
    return f"{show(text)} is no bucket; write INSTANCE:ROLE/BUCKET"


SLOT: Table[Slot] = Table(
    "a slot",
    {
        "interface": needed(TEXT, "interface"),
        "request": Field(MapOf(VALUE), "request"),
        "reach": Field(Choice(Reach), "reach"),
        "follow": Field(Choice(Follow), "follow"),
        "requires": Field(REQUIRES_OF_SLOT, "count"),
        **DESCRIPTION,
    },
    Slot,
)
LISTEN: Table[Listen] = Table(
    "a listen",
    {
        "protocol": needed(Word(tuple(_Protocol)), "protocol"),
        "port": Field(Whole(1, 65535), "port"),
        **DESCRIPTION,
    },
    Listen,
)
VOLUME = Table("a volume", {"path": needed(ABSOLUTE, "path"), **DESCRIPTION}, Volume)
SECRET = Table(
    "a secret",
    {"length": Field(Whole(1, 4096), "length"), "owner": Field(FILLED, "owner"), **DESCRIPTION},
    Secret,
)
BUCKET = Table("a bucket", {"history": Field(Whole(1, 64), "history"), **DESCRIPTION}, Bucket)
ZONE = Table(
    "a zone",
    {"name": needed(FILLED, "name"), "listen": needed(NAME, "listen"), **DESCRIPTION},
    Zone,
)
VERB = Table("a verb", {"command": needed(ListOf(SCALAR, least=1), "command"), **DESCRIPTION}, Verb)


def _seat(scope: str = Scope.MACHINE.value, **given: Json) -> Seat:
    return Seat(scope=scope, **given)


SEAT = Table(
    "a seat",
    {
        "scope": Field(Word(("machine", "fleet")), "scope"),
        "verbs": Field(MapOf(VERB), "verbs"),
        **DESCRIPTION,
    },
    _seat,
)

_COMPUTED: Mapping[str, Shape[Json]] = {"units": MapOf(UNIT), "requirements": ListOf(REQUIREMENT)}
_FIELDS: Mapping[str, Field] = {
    "settings": Field(MapOf(SETTING), "settings"),
    "uses": Field(MapOf(SLOT), "uses"),
    "provides": Field(MapOf(PROVIDE), "provides"),
    "reactions": Field(REACTIONS, "reactions"),
    "listens": Field(MapOf(LISTEN), "listens"),
    "requires": Field(ListOf(FILLED), "requires"),
    "claims": Field(ListOf(FILLED), "claims"),
    "capabilities": Field(ListOf(FILLED), "capabilities"),
    "resources": Field(MapOf(RESOURCE), "resources"),
    "volumes": Field(MapOf(VOLUME), "volumes"),
    "secrets": Field(MapOf(SECRET), "secrets"),
    "state": Field(MapOf(BUCKET), "state"),
    "reads": Field(ListOf(Text("a bucket", check=_bucket)), "reads"),
    "zone": Field(ZONE, "zone"),
    "seats": Field(MapOf(SEAT), "seats"),
    **{name: Field(shape, name) for name, shape in _COMPUTED.items()},
    **DESCRIPTION,
}


def _role(
    *,
    units: Mapping[str, Unit] | None = None,
    requirements: tuple[Json, ...] = (),
    provides: Mapping[str, tuple[Provide, Exports]] | None = None,
    impl: bool = False,
    **given: Json,
) -> Role:
    provided = provides or {}
    exports = {name: exports for name, (_, exports) in provided.items() if exports}
    return Role(
        provides={name: provide for name, (provide, _) in provided.items()},
        body=Body(units=units or {}, exports=exports, requirements=requirements),
        impl=impl,
        **given,
    )


def _no_body(written: Mapping[str, Json]) -> Iterable[str]:
    for name in _COMPUTED:
        if name in written:
            yield f"`{name}` and `impl` exclude each other: the function returns it"
    provides = written.get("provides")
    for name, provide in provides.items() if isinstance(provides, dict) else ():  # pyright: ignore[reportUnknownVariableType] - of Json
        if isinstance(provide, dict) and "exports" in provide:
            yield f"the exports of `{show(name)}` and `impl` exclude each other"


ROLE: Table[Role] = Table(
    "a role",
    _FIELDS,
    _role,
    elsewhere={"impl": "it is a function, which only a module in Starlark can hold"},
)
_COMPUTED_ROLE: Table[Role] = Table(
    "a role with impl", {**_FIELDS, "impl": Field(ANYTHING, "impl")}, _role, (_no_body,)
)


class Roles:
    """The roles of a module, some of which a function computes."""

    def __init__(self, computed: frozenset[str] = frozenset()) -> None:
        self._computed = computed

    def read(self, value: Json, path: Path, rows: Rows) -> dict[str, Role] | Broken:
        found = MapOf(ANYTHING).read(value, path, rows)
        if found is BROKEN:
            return BROKEN
        roles: dict[str, Role] = {}
        for name, one in found.items():
            below = (*path, name)
            if name in self._computed:
                role = _COMPUTED_ROLE.read({**one, "impl": True}, below, rows)
            else:
                role = ROLE.read(one, below, rows)
            if role is BROKEN:
                rows.drop(below, one)
            else:
                roles[name] = role
        return roles

    def schema(self) -> Schema:
        return MapOf(ROLE).schema()


def _body(
    units: Mapping[str, Unit] | None = None,
    provides: Mapping[str, Exports] | None = None,
    requirements: tuple[Json, ...] = (),
) -> Body:
    return Body(units=units or {}, exports=provides or {}, requirements=requirements)


BODY: Table[Body] = Table(
    "what an impl function returns",
    {
        "units": Field(_COMPUTED["units"], "units"),
        "provides": Field(MapOf(COMPUTED_PROVIDE), "provides"),
        "requirements": Field(_COMPUTED["requirements"], "requirements"),
    },
    _body,
    elsewhere={
        name: "it stands in the document, beside `impl`"
        for name in _FIELDS
        if name not in ("units", "provides", "requirements")
    },
)
