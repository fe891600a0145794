"""The acceptance cases of the contract, black box: the real command on files, JSON out."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = sorted(path.name for path in (HERE / "cases").iterdir() if path.is_dir())


def test_there_are_cases() -> None:
    assert len(CASES) >= 44


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    """Its runner prints the first difference of a case that does not hold."""
    ran = subprocess.run(
        [
            sys.executable,
            str(HERE / "run_cases.py"),
            "--cmd",
            f"{sys.executable} -m keyplane.cli",
            "--cases",
            str(HERE / "cases"),
            "--only",
            case,
            "--jobs",
            "1",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    held = [line for line in ran.stdout.splitlines() if line.endswith("cases hold")]
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert held
    assert not held[0].startswith("0 of")
