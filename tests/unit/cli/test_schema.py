"""`keyplane schema`: the shapes of documents, for editors."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from jsonschema.exceptions import best_match

from keyplane.cli import registry
from keyplane.documents import about, schema
from keyplane.model import fleet, module
from tests.tidy import tree

ARENA = tree.ROOT / "examples" / "arena"
KEPT = tree.ROOT / "docs" / "reference" / "schemas"


def run(*words: object) -> Result:
    return CliRunner().invoke(registry.keyplane, ["schema", *(str(word) for word in words)])


def faults(kind: str, document: Any) -> list[str]:
    """What an editor would underline, by path."""
    found = json.loads(run(kind).stdout)
    jsonschema.Draft202012Validator.check_schema(found)
    errors = jsonschema.Draft202012Validator(found).iter_errors(document)
    return sorted("/".join(str(step) for step in error.absolute_path) for error in errors)


def kind_of(path: Path) -> str:
    return "interfaces" if path.name == "interfaces.toml" else path.stem


DOCUMENTS = [
    path
    for path in (
        *tree.files(".toml", below="examples"),
        *sorted((tree.ROOT / "tests" / "golden" / "fleets").rglob("*.toml")),
    )
    if path.name in ("fleet.toml", "interfaces.toml", "module.toml") and "faults" not in path.parts
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=tree.name)
def test_documents_that_are_planned_fit_their_schema(path: Path) -> None:
    assert faults(kind_of(path), tomllib.loads(path.read_text())) == []


FACTS = {"machine": "alpha", "at": "2026-01-01T00:00:00Z", "facts": {"cpu.count": 4}}
INTERFACES = {"peer": {"exports": {"address": "string"}}}
MODULE: dict[str, Any] = {
    "module": "app",
    "version": "1",
    "roles": {
        "web": {
            "settings": {"n": {"type": "integer", "default": 2}},
            "uses": {"peer": {"interface": "peer"}},
            "reactions": {"peer.address": {"reaction": "restart"}},
            "provides": {
                "page": {
                    "interface": "page",
                    "exports": {"url": {"value": "http://x/", "lifecycle": "static"}},
                }
            },
            "units": {"web": {"kind": "process", "command": ["web"]}},
        }
    },
}
FLEET: dict[str, Any] = {
    "fleet": "arena",
    "machines": {"alpha": {"address": "10.0.0.1"}},
    "instances": {"app": {"module": "app", "placement": {"every": {"web": {}}}}},
}
WHOLE = {"facts": FACTS, "interfaces": INTERFACES, "module": MODULE, "fleet": FLEET}


@pytest.mark.parametrize("kind", schema.KINDS)
def test_a_small_document_of_each_kind_fits(kind: str) -> None:
    assert faults(kind, WHOLE[kind]) == []


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("fleet", ""),
        ("fleet", "machines/alpha"),
        ("fleet", "instances/app"),
        ("interfaces", "peer"),
        ("facts", ""),
        ("module", ""),
        ("module", "roles/web"),
        ("module", "roles/web/settings/n"),
        ("module", "roles/web/uses/peer"),
        ("module", "roles/web/reactions/peer.address"),
        ("module", "roles/web/units/web"),
        ("module", "roles/web/provides/page/exports/url"),
    ],
)
def test_an_unknown_field_is_refused_where_it_stands(kind: str, where: str) -> None:
    document = json.loads(json.dumps(WHOLE[kind]))
    table = document
    for step in filter(None, where.split("/")):
        table = table[step]
    table["adress"] = {"x": 1}
    assert faults(kind, document) == [where]


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("fleet", {"fleet": "arena", "machines": {"Alpha": {"address": "10.0.0.1"}}}),
        ("fleet", {"fleet": "arena", "machines": {"alpha": {}}}),
        ("interfaces", {"peer": {"exports": {"address": "text"}}}),
        ("facts", {"facts": {}}),
    ],
)
def test_bad_names_and_types_and_missing_fields_are_refused(kind: str, document: Any) -> None:
    assert faults(kind, document)


def unit(**said: Any) -> Any:
    return {"units": {"u": said}}


def export(said: Any) -> Any:
    return {"provides": {"p": {"interface": "i", "exports": {"u": said}}}}


MISTAKES: list[tuple[Any, str, str]] = [
    (unit(kind="proc", command=["x"]), "units/u/kind", "'proc' is not one of"),
    (unit(command=["x"]), "units/u", "'kind' is a required"),
    (unit(kind="process", command=["x"], image="i"), "units/u", "'image' was unexpected"),
    (unit(kind="process", comand=["x"], command=["x"]), "units/u", "'comand' was unexpected"),
    (unit(kind="process", command="x"), "units/u/command", "not of type 'array'"),
    (unit(kind="process"), "units/u", "'command' is a required"),
    (unit(kind="job", image="i", archive="a", runOnce=True), "units/u", "'archive' was"),
    (unit(kind="job", command=["x"], mounts={}, runOnce=True), "units/u", "'mounts' was"),
    (unit(kind="process", command=["x"], env={"A": {}}), "units/u/env/A", "not of type"),
    (unit(kind="process", command=["x"], stopTimeout="10 s"), "units/u/stopTimeout", "'10 s'"),
    (
        unit(kind="process", command=["x"], configData={"/a": {"txt": ""}}),
        "units/u/configData//a",
        "'txt'",
    ),
    ({"listens": {"h": {"port": 80}}}, "listens/h", "'protocol' is a required"),
    (export({"value": "x"}), "provides/p/exports/u", "'lifecycle' is a required"),
    (export("x"), "provides/p/exports/u", "'x' is not of type"),
    (export([{"lifecycle": "static"}]), "provides/p/exports/u/0", "'value' is a required"),
    ({"uses": {"s": {"interface": "i", "reach": "some"}}}, "uses/s/reach", "'some'"),
    ({"reactions": {"a.b": {"onMissing": "halt"}}}, "reactions/a.b/onMissing", "'halt'"),
    ({"settings": {"n": {"type": "int"}}}, "settings/n/type", "'int' is not one of"),
    (
        {"requirements": [{"subject": "x", "predicate": "in-bounds"}]},
        "requirements/0",
        "'bounds' is a required",
    ),
    (
        {"resources": {"a": {"type": "file", "path": "/x", "text": "", "mode": 644}}},
        "resources/a/mode",
        "644",
    ),
]


@pytest.mark.parametrize(("role", "where", "told"), MISTAKES, ids=[told for *_, told in MISTAKES])
def test_a_mistake_is_told_once_where_it_stands_by_name(role: Any, where: str, told: str) -> None:
    found = jsonschema.Draft202012Validator(json.loads(run("module").stdout))
    document = {"module": "app", "version": "1", "roles": {"main": role}}
    errors = list(found.iter_errors(document))
    best = best_match(errors)
    assert best is not None
    assert "/".join(map(str, best.absolute_path)) == f"roles/main/{where}"
    assert told in best.message
    assert len(errors) == 1


def fields(found: Any) -> Iterator[tuple[str, Any]]:
    """Each field that a schema describes, not those that it only allows."""
    if isinstance(found, dict):
        for name, one in found.get("properties", {}).items():
            if one and one.keys() != {"const"}:
                yield name, one
    for below in found.values() if isinstance(found, dict) else found:
        if isinstance(below, dict | list):
            yield from fields(below)


def test_every_field_is_described_and_nothing_else_is() -> None:
    found = [one for kind in schema.KINDS for one in fields(json.loads(run(kind).stdout))]
    assert len(found) > 150
    assert [name for name, one in found if "description" not in one and name != "default"] == []
    said = {(name, one.get("description")) for name, one in found}
    for owner, described in about.FIELDS.items():
        for name, text in described.items():
            assert (name, text) in said, owner
    defaults = {(name, str(one["default"])) for name, one in found if "default" in one}
    for (_, name), default in about.DEFAULTS.items():
        assert (name, str(default)) in defaults


def test_defaults_are_those_that_are_planned_with() -> None:
    assert module.Slot(interface="i").reach.value == about.DEFAULTS["a slot", "reach"]
    assert module.Provide(interface="i").scope.value == about.DEFAULTS["a provide", "scope"]
    assert fleet.Debounce().burst == about.DEFAULTS["a debounce", "burst"]
    assert fleet.RestartBudget().per_unit == about.DEFAULTS["a restart budget", "perUnit"]
    assert fleet.Machine(name="m", address="a").platform == about.DEFAULTS["a machine", "platform"]


def test_an_unknown_kind_exits_2_and_names_the_known_ones() -> None:
    ran = run("plan")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert all(kind in ran.stderr for kind in ("'plan'", *schema.KINDS))


def test_one_kind_or_all_of_them() -> None:
    for words in ((), ("fleet", "--all", "x")):
        ran = run(*words)
        assert ran.exit_code == 2
        assert "--all DIR" in ran.stderr


def test_all_are_written_to_a_folder(tmp_path: Path) -> None:
    assert run("--all", tmp_path / "new" / "schemas").exit_code == 0
    written = {path.name: path.read_text() for path in (tmp_path / "new" / "schemas").iterdir()}
    assert written == {f"{kind}.schema.json": run(kind).stdout for kind in schema.KINDS}


def test_a_folder_that_cannot_be_written_exits_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run("--all", tmp_path / "file" / "schemas")
    assert ran.exit_code == 2
    assert "facts.schema.json" in ran.stderr


def test_the_schemas_in_the_documents_are_current() -> None:
    """After a change: `keyplane schema --all docs/reference/schemas`."""
    kept = {path.name: path.read_text() for path in KEPT.iterdir()}
    assert kept == {f"{kind}.schema.json": run(kind).stdout for kind in schema.KINDS}


def test_what_is_no_address_by_its_form_is_a_fault() -> None:
    for address in ("10.0.0.3", "::1", "fe80::1%eth0", "alpha.example.net", "3com"):
        assert faults("fleet", {"fleet": "f", "machines": {"a": {"address": address}}}) == []
    for address in ("bad host", "10.0.0.300", "10.0.0", "10.0.0.3:80", "[::1]", "http://a", "12"):
        found = faults("fleet", {"fleet": "f", "machines": {"a": {"address": address}}})
        assert found == ["machines/a/address"]
