"""A module's document: its roles, its policy, and what its repository builds."""

import re
from collections.abc import Mapping

from keyplane.documents import resources, units
from keyplane.documents.roles import Roles
from keyplane.documents.rows import Path, Rows, show
from keyplane.documents.shapes import (
    BELOW,
    BROKEN,
    FILLED,
    NAME,
    SCALAR,
    TEXT,
    TIME,
    Text,
    Whole,
    Word,
)
from keyplane.documents.tables import (
    DESCRIPTION,
    Field,
    Given,
    ListOf,
    MapOf,
    Table,
    exactly_one,
    fields,
    needed,
    raw,
)
from keyplane.model.module import Body, Build, Json, Module, Policy

_TAGGED = re.compile(r"(?:[^\s@]+/)?[^\s/@:]+:[\w][\w.-]{0,127}(@sha256:[0-9a-f]{64})?", re.ASCII)
_BY_DIGEST = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}", re.ASCII)
_IN_STORE = re.compile(r"/nix/store/[^/\s]+")
_TOOLCHAIN = re.compile(r"[a-z][a-z0-9-]{0,62}/[a-z][a-z0-9-]{0,62}", re.ASCII)

POLICY: Table[Policy] = Table(
    "a policy",
    {
        "upgrade": Field(Word(("first", "together", "record")), "upgrade"),
        "maxUnavailable": Field(Whole(1), "max_unavailable"),
        "settle": Field(TIME, "settle"),
        "deadline": Field(TIME, "deadline"),
        "onFailure": Field(Word(("stop", "rollback")), "on_failure"),
        **DESCRIPTION,
    },
    Policy,
)


def _pinned(text: str) -> str | None:
    if _TAGGED.fullmatch(text) or _BY_DIGEST.fullmatch(text):
        return None
    return f"{show(text)} has neither tag nor digest, so nobody can say which image it is"


def _store_path(text: str) -> str | None:
    if _IN_STORE.fullmatch(text) and "\0" not in text:
        return None
    return f"{show(text)} is no path of a Nix store: write it like /nix/store/HASH-NAME"


_STORE_PATH = Text("a path of a Nix store", check=_store_path, pattern=_IN_STORE.pattern)


def _toolchain(text: str) -> str | None:
    if _TOOLCHAIN.fullmatch(text):
        return None
    return f"{show(text)} is no toolchain; write MODULE/ARTIFACT"


def _only(**given: Json) -> Json:
    """Of a table with one field: that field's value."""
    return next(iter(given.values()))


def _bundle(command: tuple[Json, ...], **given: Json) -> dict[str, Json]:
    return {"command": list(command), **given}


BUILD: Table[Build] = Table(
    "a build",
    {
        "archives": Field(
            MapOf(
                Table("an archive", {"directory": needed(BELOW, "directory"), **DESCRIPTION}, _only)
            ),
            "archives",
        ),
        "images": Field(
            MapOf(
                Table(
                    "an image",
                    {
                        "dockerfile": needed(BELOW, "dockerfile"),
                        "context": Field(BELOW, "context"),
                        **DESCRIPTION,
                    },
                    raw,
                )
            ),
            "images",
        ),
        "upstream": Field(
            MapOf(
                Table(
                    "an upstream image",
                    {"image": needed(Text("an image", check=_pinned), "image"), **DESCRIPTION},
                    _only,
                )
            ),
            "upstream",
        ),
        "bundles": Field(
            MapOf(
                Table(
                    "a bundle",
                    {
                        "toolchain": needed(Text("a toolchain", check=_toolchain), "toolchain"),
                        "command": needed(ListOf(SCALAR, least=1), "command"),
                        "output": needed(BELOW, "output"),
                        **DESCRIPTION,
                    },
                    _bundle,
                )
            ),
            "bundles",
        ),
        "nix": Field(
            MapOf(
                Table(
                    "a nix artifact",
                    {**fields({"path": _STORE_PATH, "expression": BELOW}), **DESCRIPTION},
                    raw,
                    (exactly_one("path", "expression"),),
                )
            ),
            "nix",
        ),
        "shared": Field(ListOf(FILLED), "shared"),
    },
    Build,
)


def table(computed: frozenset[str] = frozenset()) -> Table[Given]:
    """The document; `computed` names the roles that a function computes."""
    return Table(
        "a module",
        {
            "module": needed(NAME, "name"),
            "version": needed(TEXT, "version"),
            **DESCRIPTION,
            "roles": Field(Roles(computed), "roles"),
            "policy": Field(POLICY, "policy"),
            "build": Field(BUILD, "build"),
        },
        raw,
    )


def read(
    tree: dict[str, Json], *, name: str, rows: Rows, computed: tuple[str, ...] = ()
) -> Module | None:
    """The module in directory `name`.

    A module whose own name or version is broken is kept under its directory's name: everything
    else about it can be planned, and the row is there.
    """
    written = table(frozenset(computed))
    kept = {
        field: shape if not shape.needed else Field(shape.shape, shape.attribute)
        for field, shape in written.fields.items()
    }
    for field in ("module", "version"):
        if field not in tree and not rows.was_dropped((field,)):
            rows.wrong((field,), f"`{field}` is missing: a module needs it", f"add {field}")
    given = Table("a module", kept, raw).given(tree, (), rows)
    if given is BROKEN:
        return None
    said = given.pop("name", name)
    if said != name:
        rows.wrong(
            ("module",),
            f"the module calls itself {show(said)}, and its directory is {show(name)}",
            f"write module = {show(name)}",
        )
    module = Module(name=name, file=rows.file, version=given.pop("version", ""), **given)
    _refuse_two_artifacts_of_a_name(module.build, rows)
    return module


def artifact_kinds(build: Build) -> Mapping[str, Mapping[str, Json]]:
    """All artifacts of a build, by kind and name."""
    return {
        "archives": build.archives,
        "images": build.images,
        "upstream": build.upstream,
        "bundles": build.bundles,
        "nix": build.nix,
    }


def shipped_files(module: Module) -> list[tuple[str, Path]]:
    """Each file that the document itself ships, with the path of the field that asks for it."""
    return [
        (file, ("roles", name, path))
        for name, role in module.roles.items()
        for file, path in [*of_body(role.body), *resources.shipped_files(role.resources)]
    ]


def of_body(body: Body) -> list[tuple[str, str]]:
    """The files that the units of a body ship, with their paths from the role."""
    return [
        (file, f"units.{name}.{path}")
        for name, unit in body.units.items()
        for file, path in units.shipped_files(unit)
    ]


def _refuse_two_artifacts_of_a_name(build: Build, rows: Rows) -> None:
    seen: dict[str, str] = {}
    for kind, artifacts in artifact_kinds(build).items():
        for name in artifacts:
            if name in seen:
                rows.wrong(
                    ("build", kind, name),
                    f"the artifact `{name}` is one of {seen[name]} already",
                    "give one of them another name",
                )
            seen.setdefault(name, kind)
