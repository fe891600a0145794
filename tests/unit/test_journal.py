"""The one line that a part writes for an event, which programs read by its keys."""

import io
import logging
import sys
from collections.abc import Iterator

import pytest

from keyplane import journal
from keyplane.adapters.linux import part_logs


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    sink = io.StringIO()
    monkeypatch.setattr(sys, "stderr", sink)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    journal.begin("controller")
    yield sink
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_has_its_time_and_then_keys(written: io.StringIO) -> None:
    journal.Journal("parts.rolling", rollout=3).info("rollout ended", outcome='it "failed"\nbadly')
    line = part_logs.parse(written.getvalue().rstrip("\n").encode())
    assert line.at.endswith("Z")
    assert part_logs.keys(line.text) == {
        "level": "info",
        "part": "controller",
        "module": "parts.rolling",
        "event": "rollout ended",
        "rollout": "3",
        "outcome": 'it "failed"\nbadly',
    }


def test_no_key_of_an_event_hides_one_of_the_line(written: io.StringIO) -> None:
    journal.Journal("parts.supervisor").warning("ended", part="agent", level=7)
    found = part_logs.keys(part_logs.parse(written.getvalue().rstrip("\n").encode()).text)
    assert (found["part"], found["part_"], found["level"], found["level_"]) == (
        "controller",
        "agent",
        "warning",
        "7",
    )
