"""`keyplane explain`: the options that show an entry's key, and why it moved."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from keyplane.cli import registry
from tests.unit.planner import fleets as f

FLEET = (
    f.machines("alpha", "beta")
    + f.instance("db", "store", "beta")
    + f.instance("app", "app", "alpha")
)
LONG = "x" * 90


def run(*words: object) -> Result:
    return CliRunner().invoke(registry.keyplane, [str(word) for word in words])


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    files = {
        "fleet.toml": f'fleet = "arena"\n{FLEET}',
        "interfaces.toml": f.STORE,
        "modules/store/module.toml": f'module = "store"\nversion = "1"\n{f.PROVIDER}',
        "modules/app/module.toml": f'module = "app"\nversion = "1"\n{f.READER}'
        f'configData."/a" = {{ text = "{LONG}" }}\n',
    }
    for name, text in files.items():
        path = tmp_path / "fleet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "fleet"


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_previous_adds_why_the_key_moved(fleet: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    run("plan", fleet, "-o", old)
    rows = json.loads(run("explain", fleet, "app:main@alpha", "--json").stdout)
    same = json.loads(run("explain", fleet, "app:main@alpha", "--json", "--previous", old).stdout)
    assert same == {"rows": rows, "since": "unchanged", "elsewhere": None, "moved": []}
    assert "is unchanged since" in run("explain", fleet, "app:main@alpha", "--previous", old).stdout
    edited(fleet / "fleet.toml", "10.0.0.2", "10.0.0.77")
    found = run("explain", fleet, "app:main@alpha", "--json", "--previous", old)
    assert json.loads(found.stdout)["moved"] == [
        {
            "input": "env.main.URL",
            "old": "http://10.0.0.2/",
            "new": "http://10.0.0.77/",
            "from": [["db:main@beta/provides/store/url", "machines.beta.address"]],
            "units": ["main"],
        }
    ]
    shown = run("explain", fleet, "app:main@alpha", "--previous", old).stdout
    assert "← db:main@beta/provides/store/url ← machines.beta.address" in shown


def test_an_entry_that_came_or_went_is_said_to(fleet: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    run("plan", fleet, "-o", old)
    edited(fleet / "fleet.toml", "['alpha']", "['beta']")
    gone = run("explain", fleet, "app:main@alpha", "--previous", old)
    assert gone.exit_code == 0
    assert gone.stdout == f"app:main@alpha is gone since {old}: it went to beta\n"
    assert run("explain", fleet, "app:main@alpha").exit_code == 2
    assert run("explain", fleet, "nope", "--previous", old).exit_code == 2
    new = run("explain", fleet, "app:main@beta", "--previous", old).stdout
    assert f"app:main@beta is new since {old}: it came from alpha" in new


def test_a_long_value_is_shown_where_it_differs(fleet: Path, tmp_path: Path) -> None:
    module = fleet / "modules/app/module.toml"
    edited(module, '["run"]', f'["run", "{LONG}", "one", "{LONG}"]')
    old = tmp_path / "old.json"
    run("plan", fleet, "-o", old)
    edited(module, '"one"', '"other"')
    shown = run("explain", fleet, "app:main@alpha", "--previous", old).stdout
    assert LONG not in shown
    assert '"one"' in shown
    assert '"other"' in shown


def test_key_shows_the_inputs_with_short_digests(fleet: Path) -> None:
    plan = json.loads(run("plan", fleet, "--json").stdout)
    entry = plan["entries"]["app:main@alpha"]
    shown = run("explain", fleet, "app:main@alpha", "--key").stdout
    assert entry["key"][:19] in shown
    assert plan["entries"]["db:main@beta"]["key"][:19] in shown
    assert entry["closure"] not in shown
    said = json.loads(run("explain", fleet, "app:main@alpha", "--key", "--json").stdout)
    assert said.keys() == {"rows", "key"}
    assert said["key"] == {
        "key": entry["key"],
        "closure": entry["closure"],
        "env": {"main": entry["units"]["main"]["env"]},
        "machine": plan["machines"]["alpha"]["key"],
        "dependencies": {"db:main@beta": plan["entries"]["db:main@beta"]["key"]},
    }


GOLDEN = Path(__file__).parents[2] / "golden" / "fleets"


def test_a_hole_is_told_in_words() -> None:
    shown = run("explain", GOLDEN / "probed" / "1-no-facts", "app:main@alpha").stdout
    assert "(waits for fact disk.size of beta)" in shown
    assert "hole" not in shown


def test_each_source_of_a_text_is_named_once_and_its_lines_are_one() -> None:
    shown = run("explain", GOLDEN / "dynamic" / "1", "lobby:main@alpha").stdout
    (line,) = [line for line in shown.splitlines() if "/etc/lobby/peers" in line]
    assert line.count("mesh:node@beta/provides/peer/address") == 1
    (line,) = [line for line in shown.splitlines() if "/etc/lobby/names" in line]
    assert "mesh@alpha mesh@beta\\n " in line


def test_a_dependency_that_a_retag_ends_is_put_down_to_the_retag(tmp_path: Path) -> None:
    """Not to the module that reads the value, where nothing is another."""
    fleet, old = tmp_path / "fleet", tmp_path / "old.json"
    shutil.copytree(GOLDEN / "dynamic" / "1", fleet)
    run("plan", fleet, "-o", old)
    shutil.copytree(GOLDEN / "dynamic" / "2-published", fleet, dirs_exist_ok=True)
    found = run("explain", fleet, "lobby:main@alpha", "--previous", old, "--json").stdout
    (moved,) = [one for one in json.loads(found)["moved"] if one["input"].startswith("dependency")]
    assert moved["from"] == [["queue:main/provides/queue/url: static/routable → dynamic/routable"]]
    assert moved["units"] == ["lobby"]


def test_what_is_applied_live_costs_no_reload() -> None:
    shown = run("explain", GOLDEN / "units" / "1", "web:main@alpha").stdout
    (line,) = [line for line in shown.splitlines() if "health.http" in line]
    assert line.split()[-2:] == ["apply", "live"]


def test_a_title_longer_than_its_table_stays_on_one_line() -> None:
    shown = run("explain", GOLDEN / "count" / "1", "fast:main@beta", "--key").stdout
    assert any(line.endswith("is the hash of") for line in shown.splitlines())
