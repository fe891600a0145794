"""Locks of parts: looks at one are nothing to each other, and nothing to who takes it."""

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keyplane.parts import locks


def test_who_looks_is_not_taken_for_a_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not locks.is_held(path)
    path.touch()
    with path.open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert not locks.is_held(path)
    with path.open("w") as holder:
        assert locks.take(holder.fileno())
        assert locks.is_held(path)
    assert not locks.is_held(path)


def test_who_takes_it_waits_for_those_who_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for nobody who has it."""
    path = tmp_path / "lock"
    path.touch()
    with path.open("w") as taking, ThreadPoolExecutor() as pool:
        with path.open() as looking:
            fcntl.flock(looking, fcntl.LOCK_SH)
            monkeypatch.setattr(locks, "LOOK_S", 60.0)
            took = pool.submit(locks.take, taking.fileno())
        assert took.result()
        monkeypatch.setattr(locks, "LOOK_S", 0.0)
        other = os.open(path, os.O_RDWR)
        assert not locks.take(other)
        os.close(other)
