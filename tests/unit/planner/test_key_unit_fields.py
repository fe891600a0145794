"""Every field of units, resources and artifacts, as the schema has them: in the key, or why not.

The model keeps these under one name each, so test_key_fields does not see them one by one.
"""

import copy
import json
from typing import Any

import pytest

from keyplane.adapters import directory
from keyplane.documents import schema
from keyplane.model.plan import Entry
from keyplane.planner import PlanRequest, plan
from tests.unit.planner.fleets import no_starlark

Json = Any
FLEET = {
    "fleet": "x",
    "machines": {"alpha": {"address": "10.0.0.1"}},
    "instances": {"app": {"module": "app", "placement": {"every": {"main": {}}}}},
}
PROCESS = {"kind": "process", "command": ["run"]}
CONTAINER = {"kind": "container", "image": "one"}
JOB = {"kind": "job", "command": ["run"], "schedule": "daily"}
LIVE = "applied live: a restart would cost more than it says"
WORDS = "for people"

UNITS: dict[str, tuple[Json, Json]] = {
    "kind": (PROCESS, {"kind": "job", "command": ["run"], "runOnce": True}),
    "command": (PROCESS, {**PROCESS, "command": ["walk"]}),
    "env": (PROCESS, {**PROCESS, "env": {"A": "b"}}),
    "user": (PROCESS, {**PROCESS, "user": "nobody"}),
    "workingDirectory": (PROCESS, {**PROCESS, "workingDirectory": "/srv"}),
    "limits": (PROCESS, {**PROCESS, "limits": {"memory": "1M"}}),
    "archive": ({**PROCESS, "archive": "a"}, {**PROCESS, "archive": "b"}),
    "bundle": ({**PROCESS, "bundle": "c"}, {**PROCESS, "bundle": "d"}),
    "nix": ({**PROCESS, "nix": "e"}, {**PROCESS, "nix": "f"}),
    "image": (CONTAINER, {**CONTAINER, "image": "two"}),
    "publish": ({**CONTAINER, "publish": {"web": 1}}, {**CONTAINER, "publish": {"web": 2}}),
    "mounts": ({**CONTAINER, "mounts": {"/a": "/b"}}, {**CONTAINER, "mounts": {"/a": "/c"}}),
    "unit": ({"kind": "service", "unit": "a"}, {"kind": "service", "unit": "b"}),
    "file": ({"kind": "service", "file": "a"}, {"kind": "service", "file": "b"}),
    "runOnce": (JOB, {"kind": "job", "command": ["run"], "runOnce": True}),
    "schedule": (JOB, {**JOB, "schedule": "weekly"}),
    "whileStopped": (JOB, {**JOB, "whileStopped": "beside"}),
}  # fmt: skip
UNITS_OUT: dict[str, tuple[Json, str]] = {
    "configData": ({"configData": {"/etc/x": {"text": "x"}}}, "compared on its own: it reloads"),
    "health": ({"health": {"tcp": "127.0.0.1:1"}}, LIVE),
    "reload": ({"reload": {"signal": "HUP"}}, LIVE),
    "restart": ({"restart": "no"}, LIVE),
    "stopTimeout": ({"stopTimeout": "1m"}, LIVE),
    "handover": ({"handover": "start-first"}, LIVE),
    "replaces": ({"replaces": "old"}, LIVE),
    "description": ({"description": "x"}, WORDS),
}
LIMITS = {"memory": ("1M", "2M"), "cpu": ("1%", "2%"), "tasks": (1, 2)}
FILE = {"type": "file", "path": "/a", "text": "a"}
ACCOUNT = {"type": "account", "name": "a"}
RESOURCES: dict[str, tuple[Json, Json]] = {
    "type": (FILE, {"type": "directory", "path": "/a"}),
    "path": (FILE, {**FILE, "path": "/b"}),
    "text": (FILE, {**FILE, "text": "b"}),
    "file": ({"type": "file", "path": "/a", "file": "a"}, {"type": "file", "path": "/a", "file": "b"}),
    "mode": (FILE, {**FILE, "mode": "0600"}),
    "owner": (FILE, {**FILE, "owner": "me"}),
    "group": (FILE, {**FILE, "group": "us"}),
    "adopt": (FILE, {**FILE, "adopt": True}),
    "archive": ({"type": "archive", "path": "/a", "archive": "a"}, {"type": "archive", "path": "/a", "archive": "b"}),
    "name": (ACCOUNT, {**ACCOUNT, "name": "b"}),
    "version": ({"type": "package", "name": "a"}, {"type": "package", "name": "a", "version": "1"}),
    "home": (ACCOUNT, {**ACCOUNT, "home": "/h"}),
    "shell": (ACCOUNT, {**ACCOUNT, "shell": "/s"}),
    "groups": (ACCOUNT, {**ACCOUNT, "groups": ["g"]}),
    "entries": ({"type": "hosts", "entries": {"10.0.0.9": ["a"]}}, {"type": "hosts", "entries": {"10.0.0.9": ["b"]}}),
}  # fmt: skip
BUILD = {
    "archives": {"a": {"directory": "a-dir"}, "b": {"directory": "b-dir"}},
    "images": {"one": {"dockerfile": "a"}, "two": {"dockerfile": "b"}},
    "bundles": {
        "c": {"toolchain": "app/one", "command": ["c"], "output": "o"},
        "d": {"toolchain": "app/one", "command": ["d"], "output": "o"},
    },
    "nix": {"e": {"path": "/nix/store/e"}, "f": {"path": "/nix/store/f"}},
    "upstream": {"up": {"image": "x:1"}},
}
ARTIFACTS: list[tuple[str, str, str, Json]] = [
    ("archives", "a", "directory", "b-dir"),
    ("images", "one", "dockerfile", "b"),
    ("images", "one", "context", "a-dir"),
    ("upstream", "up", "image", "x:2"),
    ("bundles", "c", "toolchain", "app/two"),
    ("bundles", "c", "command", ["x"]),
    ("bundles", "c", "output", "x"),
    ("nix", "e", "path", "/nix/store/x"),
    ("nix", "e", "expression", "a"),
]
USED_BY = {"archives": "archive", "bundles": "bundle", "nix": "nix"}


def entry_of(unit: Json, resources: Json = None, build: Json = None) -> Entry:
    beside = {"kind": "container", "image": "up"}
    role = {
        "units": {"main": unit, "beside": beside},
        "listens": {"web": {"protocol": "tcp"}},
        "resources": resources or {},
    }
    module = {"module": "app", "version": "1", "roles": {"main": role}, "build": build or BUILD}
    files = {
        "fleet.json": json.dumps(FLEET),
        "modules/app/module.json": json.dumps(module),
        **{f"modules/app/{name}": name for name in ("a", "b", "a-dir/x", "b-dir/y")},
    }
    reading = directory.documents_of({k: v.encode() for k, v in files.items()}, no_starlark)
    made = plan(PlanRequest(documents=reading.documents, evaluate=reading.evaluate)).plan
    return made.entries["app:main@alpha"]


def properties(*way: str) -> set[str]:
    """The fields of a table of the module's schema."""
    found = schema.of("module")
    for step in way:
        assert found is not None
        found = found["properties"][step] if step != "*" else found["additionalProperties"]
    assert found is not None
    return set(found["properties"])


def test_every_field_is_decided_upon() -> None:
    assert properties("roles", "*", "units", "*") == UNITS.keys() | UNITS_OUT.keys()
    assert properties("roles", "*", "resources", "*") == {*RESOURCES, "description"}
    assert properties("roles", "*", "units", "*", "limits") == LIMITS.keys()
    for kind in ("archives", "images", "upstream", "bundles", "nix"):
        known = {field for one, _, field, _ in ARTIFACTS if one == kind}
        assert properties("build", kind, "*") == {*known, "description"}


@pytest.mark.parametrize("field", UNITS)
def test_a_unit_s_field_moves_its_key_and_its_digest(field: str) -> None:
    before, after = map(entry_of, UNITS[field])
    assert before.key != after.key
    assert before.units["main"].digest != after.units["main"].digest
    assert before.units["beside"].digest == after.units["beside"].digest


@pytest.mark.parametrize("field", LIMITS)
def test_a_limit_moves_its_unit_s_key_and_digest(field: str) -> None:
    before, after = (entry_of({**PROCESS, "limits": {field: value}}) for value in LIMITS[field])
    assert before.key != after.key
    assert before.units["main"].digest != after.units["main"].digest


@pytest.mark.parametrize("field", UNITS_OUT)
def test_a_unit_s_field_that_is_left_out_moves_nothing(field: str) -> None:
    said, reason = UNITS_OUT[field]
    assert reason
    before, after = entry_of(PROCESS), entry_of({**PROCESS, **said})
    assert before.key == after.key
    assert before.units["main"].digest == after.units["main"].digest


@pytest.mark.parametrize("field", RESOURCES)
def test_a_resource_s_field_moves_the_key_and_restarts_nothing(field: str) -> None:
    before, after = (entry_of(PROCESS, {"r": said}) for said in RESOURCES[field])
    assert before.key != after.key
    assert before.units["main"].digest == after.units["main"].digest


@pytest.mark.parametrize(("kind", "name", "field", "other"), ARTIFACTS)
def test_an_artifact_s_field_moves_the_units_that_run_it(
    kind: str, name: str, field: str, other: Json
) -> None:
    changed = copy.deepcopy(BUILD)
    if field == "expression":
        del changed[kind][name]["path"]
    changed[kind][name][field] = other
    unit = {**PROCESS, USED_BY[kind]: name} if kind in USED_BY else {**CONTAINER, "image": name}
    before, after = entry_of(unit), entry_of(unit, build=changed)
    assert before.key != after.key
    assert before.units["main"].digest != after.units["main"].digest
