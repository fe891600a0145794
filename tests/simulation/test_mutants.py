"""Each promise has a guard in the product; without it, the simulator finds the broken promise."""

import re
from pathlib import Path

import pytest

from keyplane.testing import simulation
from tests.simulation import mutants

pytestmark = pytest.mark.slow


@pytest.mark.timeout(0)
@pytest.mark.parametrize("mutant", mutants.parted(part=0), ids=lambda each: each.__name__)
def test_a_promise_without_its_guard_is_found_broken(mutant) -> None:
    mutants.check(mutant)


def test_every_promise_has_a_mutant() -> None:
    """By the first words of each fault in the simulator's source."""
    folder = Path(simulation.__file__).parent
    sources = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    promises = set(re.findall(r"(?:\._?fault\(\s*|promise = )\"([^\"]+)\"", sources))
    assert len(promises) > 20
    assert promises == {promise for promise in mutants.MUTANTS.values() if promise}
