"""The other half of the guards, for another worker."""

import pytest

from tests.simulation import mutants

pytestmark = pytest.mark.slow


@pytest.mark.timeout(0)
@pytest.mark.parametrize("mutant", mutants.parted(part=1), ids=lambda each: each.__name__)
def test_a_promise_without_its_guard_is_found_broken(mutant) -> None:
    mutants.check(mutant)
