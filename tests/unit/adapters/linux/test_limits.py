"""Limits in words and numbers, and what is said where they cannot be kept."""

from pathlib import Path

import pytest

from keyplane.adapters.linux import limits
from keyplane.adapters.linux.limits import Kept, Limits
from keyplane.ports.host import HostError


@pytest.mark.parametrize(
    ("text", "size"), [("256M", 256 << 20), ("1G", 1 << 30), ("10K", 10 << 10), (4096, 4096)]
)
def test_sizes_are_read_in_powers_of_two(text: object, size: int) -> None:
    assert limits.parse({"memory": text}) == Limits(memory=size)


def test_processor_and_tasks_are_whole_numbers() -> None:
    assert limits.parse({"cpu": "150%", "tasks": 100}) == Limits(cpu=150, tasks=100)


@pytest.mark.parametrize(
    "wrong", [{"memory": "much"}, {"memory": "1.5G"}, {"cpu": "half"}, {"tasks": 0}, {"tasks": -1}]
)
def test_nonsense_is_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(HostError, match=f"limits.{next(iter(wrong))} "):
        limits.parse(wrong)


def test_what_is_not_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no control group can be made, memory is kept for each process, the rest is not."""
    monkeypatch.setattr(limits, "_GROUPS", tmp_path / "none")
    assert limits.keep(Limits(), tmp_path) == Kept()
    kept = limits.keep(Limits(memory=1 << 20, cpu=50, tasks=3), tmp_path)
    assert (kept.groups, kept.memory) == ((), 1 << 20)
    assert kept.notes == (
        (
            "no control group could be made: limits.memory is kept for each process alone, "
            "limits.cpu and limits.tasks not kept"
        ),
    )
    limits.drop(tmp_path)
