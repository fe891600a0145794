"""No fleet directory makes a traceback, a hang or unbounded memory: each is a row or a word."""

import importlib
import json
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

MEMORY_MAX = 2 << 30
"""Of addresses, for documents of up to 64 MiB; most take a tenth."""
TIME_MAX_S = 90
"""On a machine that has other things to do; on an idle one the slowest takes ten seconds."""


def cases() -> Any:
    """They take 200 MiB before they are written: not of those who run fast tests only."""
    importlib.import_module("tests.fuzz.hostile_spellings")
    return importlib.import_module("tests.fuzz.hostile").CASES


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names: list[str] = []
    if metafunc.config.option.markexpr != "not slow":
        names = list(cases())
    metafunc.parametrize("name", names)


def test_a_hostile_fleet_is_told_what_is_wrong_with_it(name: str, tmp_path: Path) -> None:
    write, expected = cases()[name]
    root = tmp_path / "fleet"
    root.mkdir()
    write(root)
    command = [sys.executable, "-m", "keyplane.cli", "plan", str(root), "--json"]
    ran = subprocess.run(
        command, check=False, capture_output=True, timeout=TIME_MAX_S, preexec_fn=limit
    )
    shutil.rmtree(tmp_path / "elsewhere", ignore_errors=True)
    subprocess.run(["rm", "-rf", str(root)], check=True)  # rmtree gives up on depth
    assert ran.returncode in (0, 2, 3), ran.stderr[-500:]
    assert b"Traceback" not in ran.stderr
    if ran.returncode == 2:
        assert re.search(expected, ran.stderr.decode())
        return
    rows = json.loads(ran.stdout)["diagnostics"]
    if not expected:
        assert [row for row in rows if row["severity"] == "error"] == []
        return
    assert ran.returncode == 3
    assert any(re.search(expected, f"{row['code']} {row['message']}") for row in rows), rows[:3]
    assert max(len(row["message"]) for row in rows) < 10_000
