"""The pages that are walked through are what happens: commands run, their output compared."""

import os
import re
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from tests.e2e.fleet import BUSY, ROOT, Network, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
VARYING = [
    (re.compile(r"sha256-[0-9a-f]+"), "DIGEST"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "HASH"),
    (re.compile(r"\d+\.\d s$"), "T s"),
    (re.compile(r"[-\d]+T\d\d:\d\d:\d\d\.\d+Z"), "TIME"),
    (re.compile(r"\d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"pid \d+$"), "PID"),
    (re.compile(r"─+"), "─"),
    (re.compile(r" +"), " "),
]
STANDING = re.compile(r" \S+@\S+ (\S+)")
"""What an entry came to, as a rollout tells it: entries of one step in the order of their reports."""


def same(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        stripped = line.rstrip()
        for pattern, word in VARYING:
            stripped = pattern.sub(word, stripped)
        lines.append(stripped.rstrip())
    told: list[str] = []
    for is_standing, group in groupby(lines, lambda line: bool(STANDING.match(line))):
        some = list(group)
        told += sorted(filter(_has_arrived, some)) if is_standing else some
    return told


def _has_arrived(line: str) -> bool:
    """Which others a machine reports on the way depends on how fast it is."""
    found = STANDING.match(line)
    return found is None or found[1] not in ("applying", "waiting")


def walk_through(page: str, directory: Path) -> int:
    """Write the files of a page and run its commands; how many those were.

    Digests, times, pids and the width of tables may differ.
    """
    network = Network()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(command: str) -> str:
        ran = subprocess.run(
            ["nsenter", f"--net={network.path}", "sh", "-c", command],
            check=False,
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}"
        return BUSY.sub("", ran.stdout)

    ran = 0
    try:
        for kind, title, body in BLOCK.findall((ROOT / "docs" / page).read_text()):
            if title:
                path = directory / title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(body)
            elif kind == "console":
                for block in body.split("$ ")[1:]:
                    command, _, expected = block.partition("\n")
                    if command.startswith("keyplane logs"):
                        # A service prints in its own time.
                        wait_for(lambda c=command, e=expected: same(run(c)) == same(e), expected)
                    assert same(run(command)) == same(expected), command
                    ran += 1
    finally:
        subprocess.run(
            ["nsenter", f"--net={network.path}", *("keyplane", "down", "--units")],
            cwd=directory,
            env=environment,
            capture_output=True,
            check=False,
            timeout=300,
        )
        network.close()
    return ran


def test_the_tutorial_shows_what_happens(tmp_path: Path) -> None:
    assert walk_through("tutorial.md", tmp_path) >= 14


def test_the_page_of_four_values_shows_what_happens(tmp_path: Path) -> None:
    arena = tmp_path / "arena"
    shutil.copytree(ROOT / "examples" / "arena", arena, ignore=shutil.ignore_patterns(".keyplane"))
    assert walk_through("four-values.md", arena) >= 13
