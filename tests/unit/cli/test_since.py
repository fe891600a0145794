"""From when on somebody wants to see something."""

from datetime import UTC, datetime

import click
import pytest

from keyplane.cli.since import LAST_MS, since_ms


def test_a_duration_is_counted_back_from_now() -> None:
    now_ms = datetime.now(UTC).timestamp() * 1000
    assert abs(since_ms("10m") - (now_ms - 600_000)) < 60_000


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (None, 0),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T01:00:00.500+00:30", 1_800_500),
        ("1969-12-31T23:59:59", 0),
    ],
)
def test_a_time_is_in_utc_if_it_names_no_zone(said: str | None, found: int) -> None:
    assert since_ms(said) == found


@pytest.mark.parametrize(
    "said", ["99999999999999d", "999999999999999999d", "0001-01-01", "0001-01-01T00:00:00+14:00"]
)
def test_what_is_longer_ago_than_anything_is_the_beginning(said: str) -> None:
    assert since_ms(said) == 0


@pytest.mark.parametrize("said", ["", "0s", "10x", "yesterday", "2026-13-45", "-1m", "1 h"])
def test_anything_else_is_refused_with_both_forms(said: str) -> None:
    with pytest.raises(click.UsageError, match=r"neither a duration .* nor a time"):
        since_ms(said)


@pytest.mark.parametrize("said", ["9999-12-31T23:59:59", "9999-12-31T23:59:59-14:00"])
def test_the_last_time_of_all_is_one(said: str) -> None:
    assert since_ms(said) == LAST_MS
    assert datetime.fromtimestamp(LAST_MS // 1000, UTC).year == 9999
