"""Small fleets, each about one subject, and the plans and differences that they have always had.

A plan is the same bytes on every machine, Python version and hash seed. If a change to the planner
is meant to change them, write them anew with `make golden` and read the difference line by line: a
key that moves restarts services of everybody who upgrades.
"""

import functools
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.golden import cases

HASH_SEEDS = ("0", "4242")


@functools.cache
def answers(seed: str) -> dict[str, dict[str, str]]:
    """Of all fleets, by a process of its own."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.golden", "--print"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")
    return json.loads(found.stdout)


@pytest.mark.timeout(150)
@pytest.mark.parametrize("seed", HASH_SEEDS)
@pytest.mark.parametrize("name", cases.names())
def test_a_fleet_has_its_recorded_answers_whatever_the_hash_seed(name: str, seed: str) -> None:
    found = answers(seed)[name]
    recorded = cases.recorded(name)
    assert found.keys() == recorded.keys()
    for path in found:
        assert found[path] == recorded[path], f"{path} is another; `make golden` writes it anew"


@pytest.mark.parametrize("name", cases.names())
def test_a_plan_planned_again_is_the_same(name: str) -> None:
    """With itself as the previous plan, nothing moves."""
    with cases.stages(name) as each:
        for _, fleet in each:
            file = fleet.with_name("plan.json")
            kept = ("--previous", file) if file.exists() else ()
            file.write_text(cases.run("plan", fleet, "--json", *kept))
            again = cases.run("plan", fleet, "--json", "--previous", file)
            assert again == file.read_text()


@pytest.mark.parametrize("name", cases.names())
def test_a_fleet_in_json_is_the_same_fleet(name: str) -> None:
    """But for the names of its files in rows."""
    with cases.stages(name) as each:
        for _, fleet in each:
            said = cases.run("plan", fleet, "--json")
            spelled = {
                path: path.read_text()
                for path in fleet.rglob("*.toml")
                if path.name in ("fleet.toml", "module.toml")
            }
            for path, text in spelled.items():
                path.with_suffix(".json").write_text(json.dumps(tomllib.loads(text)))
                path.unlink()
            other = cases.run("plan", fleet, "--json")
            for path, text in spelled.items():
                path.write_text(text)
                path.with_suffix(".json").unlink()
                file = path.relative_to(fleet).as_posix()
                said = said.replace(file, f"{file.removesuffix('toml')}json")
            assert in_order(other) == in_order(said)


def in_order(printed: str) -> object:
    """Rows stand in the order of what they are about."""
    plan = json.loads(printed)
    plan["diagnostics"].sort(key=json.dumps)
    return plan
