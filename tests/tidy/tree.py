"""The files of this checkout that people write."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = {"__pycache__", "build", "dist", "bin"}  # what tools make; names with a dot besides
GIVEN = {ROOT / "tests" / "acceptance" / "cases", ROOT / "tests" / "golden" / "fleets"}
"""Inputs of tests, kept as they came."""


def files(*suffixes: str, below: str = "") -> list[Path]:
    return sorted(
        path for path in walk(ROOT / below) if path.suffix in suffixes or path.name in suffixes
    )


def walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path in GIVEN or path.name in MADE or (path.name.startswith(".") and path.name != ".ci"):
            continue
        if path.is_dir():
            yield from walk(path)
        else:
            yield path


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))
