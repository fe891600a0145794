"""What `keyplane collection` says of an archive."""

import pytest

from keyplane.cli import collection

MANY = [f"generation {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("held_by", "told"),
    [
        ([], ""),
        (["generation 5da33208addd", "machine alpha"], "generation 5da33208addd, machine alpha"),
        ([*MANY, "machine alpha", "machine beta"], "20 generations, machines alpha beta"),
        (
            [*MANY[:1], *[f"machine m{n}" for n in range(90)]],
            "generation 0, machines m0 and 89 more",
        ),
        (["backup 1", "the data of db:main@alpha"], "backup 1, the data of db:main@alpha"),
    ],
)
def test_what_holds_an_archive_is_told_in_a_few_words(held_by: list[str], told: str) -> None:
    assert collection.holders(held_by) == told
