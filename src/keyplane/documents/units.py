"""Units by kind: what runs, and which of its fields belong to which kind."""

from collections.abc import Iterable, Mapping

from keyplane.documents import amounts, signals
from keyplane.documents.rows import Path, Rows, show
from keyplane.documents.shapes import (
    ABSOLUTE,
    ANYTHING,
    BELOW,
    FILLED,
    NAME,
    SCALAR,
    TEXT,
    TIME_TEXT,
    VALUE,
    Broken,
    Either,
    Flag,
    Schema,
    Shape,
    Text,
    Whole,
    Word,
    name_complaint,
)
from keyplane.documents.tables import (
    DESCRIPTION,
    Check,
    Field,
    ListOf,
    MapOf,
    Table,
    Tagged,
    at_most_one,
    by_tag,
    exactly_one,
    fields,
    needed,
    raw,
)
from keyplane.documents.trees import is_table
from keyplane.model.module import ConfigData, Json, Unit, UnitKind


def _variable(name: str) -> str | None:
    if not name or "=" in name or "\0" in name:
        return f"{show(name)} is no name of an environment variable"
    return _literal(name)


def _path(name: str) -> str | None:
    return _literal(name) or (ABSOLUTE.check or name_complaint)(name)


def _literal(name: str) -> str | None:
    if "${" in name:
        return f"{show(name)} is a key, and keys take no references: write it out"
    return None


CONFIG_DATA: Table[ConfigData] = Table(
    "a configData file",
    {"file": Field(BELOW, "file"), "text": Field(TEXT, "text"), **DESCRIPTION},
    ConfigData,
    (exactly_one("file", "text"),),
)
_SIGNAL = Text("a signal", check=signals.complaint, pattern=signals.PATTERN, empty=False)
_COMMAND: Shape[Json] = ListOf(SCALAR, least=1)
_RELOAD: Table[dict[str, Json]] = Table(
    "a reload",
    fields({"signal": _SIGNAL, "command": _COMMAND}),
    raw,
    (exactly_one("signal", "command"),),
)
_HEALTH: Table[dict[str, Json]] = Table(
    "a health check",
    fields(
        {
            "http": FILLED,
            "tcp": FILLED,
            "command": _COMMAND,
            "interval": TIME_TEXT,
            "timeout": TIME_TEXT,
            "retries": Either("a count", {int: Whole(0)}),
            "startPeriod": TIME_TEXT,
        }
    ),
    raw,
    (exactly_one("http", "tcp", "command"),),
)
_LIMITS: Table[dict[str, Json]] = Table(
    "limits",
    fields(
        {
            "memory": Either("an amount of memory", {str: amounts.MEMORY, int: Whole(1)}),
            "cpu": amounts.CPU,
            "tasks": Either("a count of tasks", {int: Whole(1), str: amounts.TASKS}),
        }
    ),
    raw,
)
_LIVE = fields(
    {
        "health": _HEALTH,
        "reload": _RELOAD,
        "restart": Word(("always", "on-failure", "no")),
        "stopTimeout": TIME_TEXT,
        "handover": Word(("stop-first", "start-first")),
        "replaces": FILLED,
    }
)
_COMMON = {
    "kind": Field(ANYTHING, "kind", needed=True),
    "env": Field(MapOf(VALUE, key=_variable), "env"),
    "configData": Field(MapOf(CONFIG_DATA, key=_path), "config_data"),
    **_LIVE,
    **fields({"limits": _LIMITS}),
    **DESCRIPTION,
}
_CONTAINER_PORT = Either("a port of the container", {int: Whole(1, 65535), str: FILLED})
_PUBLISH: Shape[Json] = Either(
    "a table of listens", {dict: MapOf(_CONTAINER_PORT), list: ListOf(FILLED)}
)
_RUNS = fields(
    {
        "archive": NAME,
        "bundle": NAME,
        "nix": NAME,
        "user": FILLED,
        "workingDirectory": FILLED,
    }
)
_HOLDS = fields({"publish": _PUBLISH, "mounts": MapOf(FILLED, key=_path)})
_WHEN = fields({"runOnce": Flag(), "schedule": FILLED, "whileStopped": FILLED})
_ONE_ARTIFACT = at_most_one("archive", "bundle", "nix")


def _runs_some_time(written: Mapping[str, Json]) -> Iterable[str]:
    once = written.get("runOnce") is True
    if once and "schedule" in written:
        yield "runOnce and schedule exclude each other"
    if not once and "schedule" not in written:
        yield "a job needs runOnce = true or a schedule"
    if "whileStopped" in written and "schedule" not in written:
        yield "whileStopped goes with a schedule"


_JOB_CHECKS: tuple[Check, ...] = (_ONE_ARTIFACT, _runs_some_time)
_COMMAND_NEEDED = {"command": needed(_COMMAND, "command")}
_IMAGE_NEEDED = {
    "image": needed(FILLED, "image"),
    "command": Field(_COMMAND, "command"),
}


def _unit(**given: Json) -> Unit:
    kind = UnitKind(given.pop("kind"))
    env = given.pop("env", {})
    config_data = given.pop("config_data", {})
    live = {name: given.pop(name) for name in _LIVE if name in given}
    plain = {name: _plain(value) for name, value in given.items()}
    if plain.get("runOnce") is False:
        del plain["runOnce"]
    return Unit(
        kind=kind,
        fields=plain,
        env={name: _plain(value) for name, value in env.items()},
        config_data=config_data,
        live={name: _plain(value) for name, value in live.items()},
    )


def _plain(value: Json) -> Json:
    """JSON again: what was read as a tuple is a list."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - of Json
    if is_table(value):
        return {name: _plain(item) for name, item in value.items()}
    return value


_BY_KIND: Tagged[Unit] = by_tag(
    "a unit",
    "kind",
    common=_COMMON,
    words={
        "process": {**_COMMAND_NEEDED, **_RUNS},
        "container": {**_IMAGE_NEEDED, **_HOLDS},
        "service": fields({"unit": FILLED, "file": BELOW}),
        "job": {**_COMMAND_NEEDED, **_RUNS, **_WHEN},
    },
    build=_unit,
    checks={
        "process": (_ONE_ARTIFACT,),
        "service": (exactly_one("unit", "file"),),
        "job": _JOB_CHECKS,
    },
)
_JOB_OF_IMAGE: Table[Unit] = Table(
    "a job with an image",
    {**_COMMON, **_IMAGE_NEEDED, **_HOLDS, **_WHEN},
    _unit,
    _JOB_CHECKS,
    {
        **dict.fromkeys(_RUNS, "it is one of a process, or of a job without an image"),
        "unit": "it is one of kind = service",
        "file": "it is one of kind = service",
    },
)


class _Unit:
    """A unit of any kind. A job is one of two: with an image it has the fields of a container."""

    def read(self, value: Json, path: Path, rows: Rows) -> Unit | Broken:
        if is_table(value) and value.get("kind") == "job" and "image" in value:
            return _JOB_OF_IMAGE.read(value, path, rows)
        return _BY_KIND.read(value, path, rows)

    def schema(self) -> Schema:
        found = _BY_KIND.schema()
        for branch in found["allOf"]:
            if branch["if"]["properties"]["kind"] == {"const": "job"}:
                of_image = _JOB_OF_IMAGE.only({name: {} for name in _JOB_OF_IMAGE.fields})
                branch["then"] = {
                    "if": {"required": ["image"]},
                    "then": of_image,
                    "else": branch["then"],
                }
        return found


UNIT: Shape[Unit] = _Unit()


def shipped_files(unit: Unit) -> Iterable[tuple[str, str]]:
    """Each file that the unit ships, with the path of the field that asks for it."""
    for name, one in unit.config_data.items():
        if one.file is not None:
            yield one.file, f"configData.{name}.file"
    file = unit.fields.get("file")
    if isinstance(file, str):
        yield file, "file"
