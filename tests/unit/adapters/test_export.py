"""A revision comes back as a directory, beside what was edited there."""

from pathlib import Path

import pytest

from keyplane.adapters import directory, export
from keyplane.adapters.directory import DirectoryUnreadableError
from keyplane.adapters.export import ExportRefusedError

BASE = {
    "fleet.toml": b'fleet = "a"  # \xc3\xa4\r\n\n\n[machines]\n',
    "modules/m/module.toml": b"one\ntwo\nthree\nfour\n",
    "modules/m/old": b"old",
}


def at(path: Path, files: dict[str, bytes]) -> Path:
    export.export(path, files, None, force=False)
    return path


def test_a_new_directory_is_the_revision_to_the_byte(tmp_path: Path) -> None:
    """Executable bits, links and empty folders too."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "fleet.toml").write_bytes(BASE["fleet.toml"])
    (source / "run").write_bytes(b"#!/bin/sh\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("run")
    (source / "empty").mkdir()
    files = directory.read_revision(source)
    done = export.export(tmp_path / "copy", files, None, force=False)
    assert directory.read_revision(tmp_path / "copy") == files
    assert done.written == ("empty", "fleet.toml", "link", "run")
    assert (done.removed, done.merged, done.kept) == ((), (), ())


def test_what_others_edited_comes_and_what_is_edited_here_stays(tmp_path: Path) -> None:
    path = at(tmp_path / "copy", BASE)
    (path / "fleet.toml").write_bytes(b"mine\n")
    (path / "notes").write_text("mine")
    (path / ".git").mkdir()
    newer = {
        "fleet.toml": BASE["fleet.toml"],
        "modules/m/module.toml": b"ONE\ntwo\nthree\nfour\n",
        "modules/n/module.toml": b"new",
    }
    done = export.export(path, newer, BASE, force=False)
    assert done.written == ("modules/m/module.toml", "modules/n/module.toml")
    assert done.removed == ("modules/m/old",)
    assert done.kept == ("fleet.toml", "notes")
    assert (path / "fleet.toml").read_bytes() == b"mine\n"
    assert (path / "notes").exists()
    assert (path / ".git").exists()
    assert not (path / "modules/m/old").exists()
    assert (path / "modules/m/module.toml").read_bytes() == b"ONE\ntwo\nthree\nfour\n"


def test_edits_of_one_file_on_both_sides_are_merged(tmp_path: Path) -> None:
    path = at(tmp_path / "copy", BASE)
    (path / "modules/m/module.toml").write_bytes(b"one\ntwo\nthree\nFOUR\n")
    newer = BASE | {"modules/m/module.toml": b"ONE\ntwo\nthree\nfour\n"}
    done = export.export(path, newer, BASE, force=False)
    assert done.merged == ("modules/m/module.toml",)
    assert (path / "modules/m/module.toml").read_bytes() == b"ONE\ntwo\nthree\nFOUR\n"


def test_edits_that_meet_refuse_all_of_it(tmp_path: Path) -> None:
    """Nothing is written, also not what nobody disputes."""
    path = at(tmp_path / "copy", BASE)
    (path / "fleet.toml").write_bytes(b"mine\n")
    before = directory.read_revision(path)
    newer = BASE | {"fleet.toml": b"theirs\n", "new": b"1"}
    with pytest.raises(ExportRefusedError) as refused:
        export.export(path, newer, BASE, force=False)
    assert refused.value.paths == ("fleet.toml",)
    assert directory.read_revision(path) == before
    done = export.export(path, newer, BASE, force=True)
    assert done.written == ("fleet.toml", "new")
    assert directory.read_revision(path) == newer


def test_a_directory_of_something_else_is_not_written_into(tmp_path: Path) -> None:
    """Unless it says the same already; other files in it stay."""
    path = tmp_path / "other"
    path.mkdir()
    (path / "fleet.toml").write_text("other")
    (path / "thesis").write_text("much work")
    with pytest.raises(ExportRefusedError):
        export.export(path, BASE, None, force=False)
    assert sorted(each.name for each in path.iterdir()) == ["fleet.toml", "thesis"]
    (path / "fleet.toml").write_bytes(BASE["fleet.toml"])
    done = export.export(path, BASE, None, force=False)
    assert done.kept == ("thesis",)


def test_what_was_removed_on_one_side_and_edited_on_the_other_is_disputed(tmp_path: Path) -> None:
    path = at(tmp_path / "copy", BASE)
    (path / "modules/m/old").unlink()
    with pytest.raises(ExportRefusedError):
        export.export(path, BASE | {"modules/m/old": b"newer"}, BASE, force=False)
    done = export.export(path, BASE, BASE, force=False)
    assert done.kept == ("modules/m/old",)
    assert not (path / "modules/m/old").exists()


def test_a_file_becomes_a_folder_and_back(tmp_path: Path) -> None:
    path = at(tmp_path / "copy", BASE)
    newer = {"fleet.toml": b"1", "modules": b"now a file"}
    export.export(path, newer, BASE, force=False)
    assert directory.read_revision(path) == newer
    export.export(path, BASE, newer, force=False)
    assert directory.read_revision(path) == BASE


def test_nothing_is_written_through_a_link_or_out_of_the_directory(tmp_path: Path) -> None:
    path = at(tmp_path / "copy", BASE)
    outside = tmp_path / "outside"
    outside.mkdir()
    (path / "way").symlink_to(outside)
    with pytest.raises(DirectoryUnreadableError, match="is a link"):
        export.export(path, BASE | {"way/x": b"1"}, BASE, force=False)
    with pytest.raises(DirectoryUnreadableError, match="leads out"):
        export.export(path, BASE | {"../x": b"1"}, BASE, force=False)
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "x").exists()
