"""Files as sources of values: real ones, looked at while they are written."""

import os
from pathlib import Path

import pytest

from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.sources import SIZE_MAX, LinuxSources
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.ports.sources import SourceError, UnsettledError


@pytest.fixture
def sources(placement: Placement, state: StateRoot) -> LinuxSources:
    return LinuxSources(placement, state.root)


@pytest.fixture
def file(state: StateRoot) -> Path:
    path = state.root / "address"
    path.write_bytes(b"10.9.0.1")
    return path


def looks(sources: LinuxSources, count: int) -> list[bytes | None]:
    """What so many looks in a row gave; `...` for one that told to look again."""
    found: list[bytes | None] = []
    for _ in range(count):
        try:
            found.append(sources.read("/address"))
        except UnsettledError:
            found.append(b"...")
    return found


def test_a_file_counts_once_two_looks_found_the_same(sources: LinuxSources, file: Path) -> None:
    assert looks(sources, 3) == [b"...", b"10.9.0.1", b"10.9.0.1"]


def test_a_file_that_is_rewritten_where_it_is_says_no_half(
    sources: LinuxSources, file: Path
) -> None:
    """Emptied, then written in two parts: with a look after each."""
    assert looks(sources, 2)[-1] == b"10.9.0.1"
    with file.open("wb", buffering=0) as writing:
        assert looks(sources, 1) == [b"..."]
        writing.write(b"10.9")
        assert looks(sources, 1) == [b"..."]
        writing.write(b".0.27")
        assert looks(sources, 1) == [b"..."]
    assert looks(sources, 2) == [b"10.9.0.27", b"10.9.0.27"]


def test_another_text_of_the_same_length_and_time_is_another(
    sources: LinuxSources, file: Path
) -> None:
    """The clock of a file system stands still for some milliseconds."""
    looks(sources, 2)
    seen = file.stat()
    with file.open("r+b") as writing:
        writing.write(b"10.9.0.2")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert looks(sources, 2) == [b"...", b"10.9.0.2"]


def test_a_file_that_is_written_anew_at_once_was_never_missing(
    sources: LinuxSources, file: Path
) -> None:
    looks(sources, 2)
    file.unlink()
    assert looks(sources, 1) == [b"..."]
    file.write_bytes(b"10.9.0.3")
    assert looks(sources, 2) == [b"...", b"10.9.0.3"]
    file.unlink()
    assert looks(sources, 2) == [b"...", None]


def test_what_is_too_large_or_no_file_is_no_answer(sources: LinuxSources, file: Path) -> None:
    file.write_bytes(b"x" * (SIZE_MAX + 1))
    with pytest.raises(SourceError, match="larger than"):
        sources.read("/address")
    file.unlink()
    file.mkdir()
    with pytest.raises(SourceError, match="no regular file"):
        sources.read("/address")
