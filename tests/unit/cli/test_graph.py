"""`keyplane graph`: a plan as a picture."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from keyplane.cli import registry
from tests.tidy import tree

ARENA = tree.ROOT / "examples" / "arena"
PICTURE = tree.ROOT / "docs" / "arena.svg"
SVG = "{http://www.w3.org/2000/svg}"

FLEET = """
fleet = "small"
[machines.alpha]
address = "10.0.0.1"
[instances.app]
module = "app"
placement.every.web = { machines = ["alpha"] }
[instances.other]
module = "other"
placement.every.main = { machines = ["alpha"] }
[externals.s3]
interface = "store"
exports.url = { value = "https://s3.example.net", lifecycle = "static" }
exports.zone = { value = "eu", lifecycle = "static" }
"""
APP = """
module = "app"
version = "1"
[roles.web.uses.files]
interface = "store"
[roles.web.uses.near]
interface = "peer"
[roles.web.reactions."near.address"]
reaction = "restart"
[roles.web.units.web]
kind = "process"
command = ["web", "${results.files.url}"]
env = { ZONE = "${results.files.zone}", PEER = "${results.near.address}" }
configData."/etc/web" = { text = "${bound.near.address}" }
"""
OTHER = """
module = "other"
version = "1"
[roles.main.provides.peer]
interface = "peer"
[roles.main.provides.peer.exports.address]
source = { file = "/run/address" }
lifecycle = "dynamic"
[roles.main.units.other]
kind = "process"
command = ["other"]
"""
INTERFACES = """
[store.exports]
url = "string"
zone = "string"
[peer.exports]
address = "string"
"""


def graph(*words: object) -> Result:
    return CliRunner().invoke(registry.keyplane, ["graph", *(str(word) for word in words)])


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    files = {
        "fleet.toml": FLEET,
        "interfaces.toml": INTERFACES,
        "modules/app/module.toml": APP,
        "modules/other/module.toml": OTHER,
    }
    for name, said in files.items():
        path = tmp_path / "fleet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(said)
    return tmp_path / "fleet"


def lines(picture: str) -> list[tuple[str, str]]:
    """The plane of each line and who gives what goes on it."""
    found = []
    for group in ET.fromstring(picture).iter(f"{SVG}g"):
        kind, _, strand = group.get("class", "").partition(" ")
        title = group.findtext(f"{SVG}title")
        if kind == "net" and title is not None:
            found.append((strand, title.partition("\n")[0].split(": ")[1].partition(",")[0]))
    return sorted(found)


def test_each_line_has_the_plane_of_its_values(fleet: Path) -> None:
    """And a value that is read of the slot itself, not of an export, is on it too."""
    ran = graph(fleet)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert lines(ran.stdout) == [
        ("closure", "external:s3"),
        ("config", "other:main@alpha"),
        ("dynamic", "other:main@alpha"),
        ("env", "external:s3"),
    ]


def test_a_file_gets_what_would_be_printed(fleet: Path, tmp_path: Path) -> None:
    ran = graph(fleet, "-o", tmp_path / "picture.svg")
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert (tmp_path / "picture.svg").read_text() == graph(fleet).stdout


def test_a_plan_with_error_rows_is_drawn_and_exits_3(fleet: Path) -> None:
    (fleet / "fleet.toml").write_text(FLEET.partition("[externals")[0])
    ran = graph(fleet)
    assert ran.exit_code == 3
    assert "slot-unbound" in ran.stdout


def test_a_fleet_that_does_not_parse_is_an_empty_picture(fleet: Path) -> None:
    (fleet / "fleet.toml").write_text("fleet =")
    ran = graph(fleet)
    assert ran.exit_code == 3
    assert "Errors of what is not drawn" in "".join(ET.fromstring(ran.stdout).itertext())


def test_what_cannot_be_used_exits_2(fleet: Path, tmp_path: Path) -> None:
    assert graph(tmp_path / "nowhere").exit_code == 2
    assert graph(fleet, "--previous", tmp_path / "nowhere.json").exit_code == 2
    ran = graph(fleet, "-o", tmp_path / "nowhere" / "picture.svg")
    assert ran.exit_code == 2
    assert "picture.svg" in ran.stderr


def test_a_previous_plan_and_other_facts_are_planned_with(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a name that the picture has room for
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "beta.json").write_text('{"machine": "beta", "facts": {}}')
    ran = graph(fleet, "--facts", "facts")
    assert ran.exit_code == 3
    assert "facts/beta.json" in ran.stdout
    plan = CliRunner().invoke(registry.keyplane, ["plan", str(fleet), "--json"]).stdout
    (tmp_path / "plan.json").write_text(plan)
    assert graph(fleet, "--previous", tmp_path / "plan.json").stdout == graph(fleet).stdout


def test_the_picture_of_the_arena_in_the_documents_is_current() -> None:
    """After a change: `keyplane graph examples/arena -o docs/arena.svg`."""
    assert PICTURE.read_text() == graph(ARENA).stdout


def test_more_edges_than_anybody_could_see_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyplane.cli.graph._EDGES_MAX", 1)
    found = CliRunner().invoke(registry.keyplane, ["graph", str(ARENA)])
    assert found.exit_code == 2
    assert "no more than 1 are drawn" in found.stderr
    assert "keyplane plan" in found.stderr
