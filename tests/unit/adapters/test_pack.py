"""Deterministic tars."""

import io
import tarfile
from pathlib import Path

import pytest

from keyplane.adapters.oci import pack


def packed(directory: Path) -> tuple[bytes, str]:
    pieces: list[bytes] = []
    digest = pack.pack(directory, pieces.append)
    return b"".join(pieces), digest


def test_a_tar_holds_the_tree_and_nothing_else(tmp_path: Path):
    """Contents, folders, links and who may run what; no times, owners or names."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b/run").write_text("#!")
    (tmp_path / "b/run").chmod(0o711)
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / ("n" * 150)).write_text("long")
    (tmp_path / "link").symlink_to("b/run")
    data, _ = packed(tmp_path)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        assert [one.name for one in members] == ["a", "b", "b/run", "link", "n" * 150]
        assert [one.mode for one in members] == [0o644, 0o755, 0o755, 0o777, 0o644]
        assert {(one.mtime, one.uid, one.gid, one.uname, one.gname) for one in members} == {
            (0, 0, 0, "", "")
        }
        extracted = tar.extractfile("a")
        assert extracted is not None
        assert extracted.read() == b"x" * 3_000_000
        assert members[3].linkname == "b/run"
    assert len(data) % tarfile.RECORDSIZE == 0


def test_equal_trees_have_equal_bytes(tmp_path: Path):
    """Whatever order they were made in."""
    for name, order in (("one", "ab"), ("two", "ba")):
        (tmp_path / name).mkdir()
        for file in order:
            (tmp_path / name / file).write_text(file)
    assert packed(tmp_path / "one") == packed(tmp_path / "two")


@pytest.mark.parametrize("target", ["/x", "..", "a/../../x", "../tree/a"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: str):
    """By name."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to(target)
    with pytest.raises(pack.UnpackableError, match="link"):
        packed(tmp_path / "tree")
