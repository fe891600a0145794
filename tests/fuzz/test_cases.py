"""What a fuzzer once found, and what it starts from, is planned without trouble."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import loaders

HERE = Path(__file__).parent
INPUTS = sorted([*(HERE / "corpus").iterdir(), *(HERE / "cases").iterdir()])
SOUND = ("star-all", "star-impl", "golden", "seed-plan")


@pytest.fixture(scope="module", autouse=True)
def evaluator() -> Iterator[None]:
    """Ends the process that runs Starlark."""
    yield
    loaders.RUNNER.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_an_input_is_planned_without_trouble(path: Path) -> None:
    loaders.run(path.read_bytes())


@pytest.mark.parametrize("name", SOUND)
def test_what_the_fuzzer_starts_from_comes_all_the_way(name: str) -> None:
    made = loaders.run((HERE / "corpus" / name).read_bytes())
    assert made.entries
    assert [row for row in made.diagnostics if row.severity == "error"] == []


def test_a_fleet_as_one_text_is_the_same_fleet() -> None:
    files = {"fleet.toml": b"x = 1\n", "modules/a/module.toml": b"y\n"}
    text = loaders.text_of(files)
    found = loaders.files_of(text)
    assert {name: data.rstrip() for name, data in found.items()} == {
        name: data.rstrip() for name, data in files.items()
    }
