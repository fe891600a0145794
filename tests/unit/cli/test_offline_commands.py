"""`keyplane plan`, `check`, `diff` and `explain`, as a person or a script runs them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from keyplane.cli import registry
from tests.unit.planner import fleets as f

FLEET = f.machines("alpha", "beta") + f.instance("db", "store", "beta")
APP = f.instance("app", "app", "alpha")
Run = Callable[..., Result]


def write(folder: Path, fleet: str) -> Path:
    files = {
        "fleet.toml": f'fleet = "arena"\n{fleet}',
        "interfaces.toml": f.STORE,
        "modules/store/module.toml": f'module = "store"\nversion = "1"\n{f.PROVIDER}',
        "modules/app/module.toml": f'module = "app"\nversion = "1"\n{f.READER}',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def run() -> Run:
    def running(*words: object) -> Result:
        return CliRunner().invoke(registry.keyplane, [str(word) for word in words])

    return running


def test_a_sound_fleet_exits_0_and_prints_its_plan(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP)
    found = run("plan", fleet, "--json")
    assert found.exit_code == 0
    plan = json.loads(found.stdout)
    assert sorted(plan["entries"]) == ["app:main@alpha", "db:main@beta"]
    assert plan["format"] == "keyplane.plan/1"
    assert found.stdout == run("plan", "--json", fleet).stdout


def test_error_rows_exit_3_and_the_plan_is_printed_all_the_same(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", f.machines("alpha", "beta") + APP)
    found = run("plan", fleet, "--json")
    assert found.exit_code == 3
    plan = json.loads(found.stdout)
    assert list(plan["entries"]) == ["app:main@alpha"]
    checked = run("check", fleet, "--json")
    assert checked.exit_code == 3
    assert json.loads(checked.stdout) == {"diagnostics": plan["diagnostics"]}


def test_people_read_diagnostics_first_and_how_to_mend_them(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", f.machines("alpha", "beta") + APP)
    lines = run("plan", fleet).stdout.splitlines()
    assert lines[0].startswith("x slot store of app:main: nothing in the fleet provides store")
    assert lines[1].startswith("  resolution: assign store:")
    assert any("app:main@alpha" in line for line in lines[2:])
    assert "\x1b" not in "".join(lines)
    assert run("check", write(tmp_path / "sound", FLEET + APP)).stdout == "nothing to report\n"


def test_control_characters_of_documents_never_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP + 'settings.main.x = "\\u001b[31m"\n')
    (fleet / "modules/app/module.toml").write_text(
        f'module = "app"\nversion = "1\\u001b[2J"\n{f.READER}'
    )
    assert "\x1b" not in run("plan", fleet).stdout


def test_what_cannot_be_used_exits_2_with_a_word(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP)
    (tmp_path / "other.json").write_text('{"format": "keyplane.plan/1"}')
    (tmp_path / "empty").mkdir()
    for words in (
        ("plan", tmp_path / "nosuch"),
        ("plan", tmp_path / "empty"),
        ("plan", tmp_path / "other.json"),
        ("plan", fleet, "--previous", tmp_path / "nosuch.json"),
        ("plan", fleet, "--previous", tmp_path / "other.json"),
        ("plan", fleet, "--facts", tmp_path / "nosuch"),
        ("plan", fleet, "-o", tmp_path / "nosuch" / "plan.json"),
        ("plan", fleet, "word"),
        ("plan",),
        ("check", tmp_path / "nosuch"),
        ("diff", tmp_path / "nosuch.json", tmp_path / "other.json"),
        ("explain", fleet, "app:main@beta"),
        ("explain", tmp_path / "nosuch", "app:main@beta"),
        ("up", tmp_path / "nosuch"),
        ("up", tmp_path),
        ("nosuch",),
    ):
        found = run(*words)
        assert found.exit_code == 2, words
        assert found.stderr, words
        assert found.exception is None or isinstance(found.exception, SystemExit), words


def test_a_plan_is_written_compared_and_kept_from(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP)
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    written = run("plan", fleet, "-o", old)
    assert (written.exit_code, written.stdout) == (0, "")
    assert old.read_text() == run("plan", fleet, "--json").stdout
    write(fleet, f.machines("alpha", "beta") + f.instance("db", "store", "alpha") + APP)
    assert run("plan", fleet, "--previous", old, "-o", new).exit_code == 0
    found = run("diff", old, new, "--json")
    assert found.exit_code == 0
    diff = json.loads(found.stdout)
    assert diff["moves"] == [{"entry": "db:main", "from": "beta", "to": "alpha"}]
    assert diff["why"].keys() == {"app:main@alpha"}
    shown = run("diff", old, new).stdout
    assert "env.main.URL" in shown
    assert "1 start, 1 stop, 1 restart, 0 untouched" in shown


def test_facts_are_read_from_elsewhere(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP)
    text = f.READER + '[[roles.main.requirements]]\nsubject = "x"\npredicate = "exists"\n'
    (fleet / "modules/app/module.toml").write_text(f'module = "app"\nversion = "1"\n{text}')
    assert run("check", fleet).exit_code == 3
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts/alpha.json").write_text('{"machine": "alpha", "facts": {"x": 1}}')
    assert run("check", fleet, "--facts", tmp_path / "facts").exit_code == 0


def test_explain_shows_a_table_or_json(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP)
    rows = json.loads(run("explain", fleet, "app:main@alpha", "--json").stdout)
    assert rows == [
        {
            "unit": "main", "name": "URL", "plane": "env", "lifecycle": "static",
            "from": "db:main@beta/provides/store/url", "value": "http://10.0.0.2/",
            "cost": "restart",
        }
    ]  # fmt: skip
    assert "db:main@beta/provides/store/url" in run("explain", fleet, "app:main@alpha").stdout


def test_the_help_names_every_command(run: Run) -> None:
    found = run("--help")
    assert found.exit_code == 0
    assert all(name in found.stdout for name in registry.COMMANDS)


def test_output_that_cannot_be_written_is_no_fault_of_ours(tmp_path: Path) -> None:
    """A full disk is told in words, once, and the status says that it failed."""
    fleet = write(tmp_path / "fleet", FLEET + APP)
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "keyplane.cli", "plan", fleet, "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.stderr.decode() == "x No space left on device\n"
    assert ended.returncode == 1


def test_explain_of_an_instance_names_its_entries(run: Run, tmp_path: Path) -> None:
    ran = run("explain", write(tmp_path, FLEET + APP), "app", "--alone")
    assert ran.exit_code == 2
    assert "did you mean app:main@alpha?" in ran.stderr


@pytest.mark.parametrize("command", ["status", "apply", "down", "history"])
def test_a_directory_that_is_not_there_is_said_to_be_none(
    run: Run, tmp_path: Path, command: str
) -> None:
    """Nothing can be begun in it."""
    ran = run(command, tmp_path / "nosuch")
    assert ran.exit_code == 2
    assert f"{tmp_path / 'nosuch'} is no directory" in ran.stderr
    assert "begin with" not in ran.stderr
