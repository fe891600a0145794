"""Files written whole, and never through a link that somebody planted."""

import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest

from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.host import ObservedPath, PathKind
from keyplane.model.names import Digest
from keyplane.ports.host import HostError

from .conftest import needs_root

ARCHIVE = Digest("sha256-" + "b" * 64)
HELLO = Digest("sha256-5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def files(state: StateRoot) -> LinuxFiles:
    return LinuxFiles(state, state.root)


def write(files: LinuxFiles, path: str, content: bytes = b"hello\n", mode: str = "0644") -> None:
    files.write(path, content, mode=mode, owner=None, group=None)


def test_what_is_written_is_observed(files: LinuxFiles, state: StateRoot) -> None:
    """With its digest and mode, whatever the umask; parents are made, readable by all."""
    before = os.umask(0o077)
    try:
        write(files, "/etc/mygame/x.json", mode="0664")
    finally:
        os.umask(before)
    seen = files.observe("/etc/mygame/x.json")
    assert (seen.kind, seen.digest, seen.mode) == (PathKind.FILE, HELLO, "0664")
    assert stat.S_IMODE((state.root / "etc").stat().st_mode) == 0o755
    assert names(state.root / "etc/mygame") == ["x.json"]


def test_a_reader_keeps_the_old_bytes(files: LinuxFiles, state: StateRoot) -> None:
    """A write replaces the file, it never changes it."""
    write(files, "/f", b"old")
    with (state.root / "f").open("rb") as reader:
        write(files, "/f", b"new")
        assert reader.read() == b"old"
    assert (state.root / "f").read_bytes() == b"new"


def test_what_a_failed_write_left_is_taken_away(files: LinuxFiles, state: StateRoot) -> None:
    """At once where the write fails, and by the next one where a crash came between."""
    (state.root / "d/f").mkdir(parents=True)
    with pytest.raises(HostError, match="/d/f: Is a directory"):
        write(files, "/d/f")
    assert names(state.root / "d") == ["f"]
    (state.root / "d/f").rmdir()
    left = state.root / "d" / f".keyplane-{hashlib.sha256(b'f').hexdigest()[:16]}"
    left.write_text("half")
    write(files, "/d/f")
    assert names(state.root / "d") == ["f"]


def test_other_kinds_are_told_apart(files: LinuxFiles, state: StateRoot) -> None:
    os.mkfifo(state.root / "pipe")
    (state.root / "link").symlink_to("/etc/passwd")
    (state.root / "folder").mkdir(mode=0o750)
    assert files.observe("/nothing/here").kind is PathKind.ABSENT
    assert files.observe("/pipe").kind is PathKind.OTHER
    assert files.observe("/link") == ObservedPath(kind=PathKind.LINK)
    assert files.observe("/folder").kind is PathKind.DIRECTORY
    assert files.observe("/folder").mode == "0750"


def test_a_planted_link_is_replaced_and_not_followed(
    files: LinuxFiles, state: StateRoot, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("safe")
    (state.root / "f").symlink_to(victim)
    write(files, "/f")
    assert victim.read_text() == "safe"
    assert files.observe("/f").digest == HELLO


@pytest.mark.parametrize("target", ["outside", "relative"])
def test_no_call_goes_through_a_planted_link(
    files: LinuxFiles, state: StateRoot, tmp_path: Path, target: str
) -> None:
    """Not to write, make or unpack; what is behind it is absent to a look, and not removed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("safe")
    (state.root / "d").symlink_to(outside if target == "outside" else "../../outside")
    (state.artifacts / ARCHIVE).mkdir()
    for call in (
        lambda: write(files, "/d/x"),
        lambda: write(files, "/d/new/y"),
        lambda: files.make_directory("/d/y", mode="0755", owner=None, group=None),
        lambda: files.unpack(ARCHIVE, "/d/y"),
    ):
        with pytest.raises(HostError, match="symbolic link"):
            call()
    files.remove("/d/x")
    assert files.observe("/d/x").kind is PathKind.ABSENT
    assert names(outside) == ["x"]
    assert (outside / "x").read_text() == "safe"


def test_a_directory_is_not_made_behind_a_link(
    files: LinuxFiles, state: StateRoot, tmp_path: Path
) -> None:
    """A link where a directory should stand is an error, and its target keeps its mode."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    (state.root / "d").symlink_to(outside)
    with pytest.raises(HostError):
        files.make_directory("/d", mode="0777", owner=None, group=None)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o700


@pytest.mark.parametrize("path", ["etc/x", "/a/../b", "/a//b", "/", "/a/", "/a/./b", "/a\0b"])
def test_only_plain_absolute_paths_are_taken(files: LinuxFiles, path: str) -> None:
    with pytest.raises(HostError, match="no plain absolute path"):
        write(files, path)


@needs_root
def test_a_link_of_the_system_is_followed_on_a_machine_of_its_own(
    state: StateRoot, tmp_path: Path
) -> None:
    """One that only root could have made; not one in a directory that others write to."""
    machine = LinuxFiles(state, Path("/"))
    real, folder = tmp_path / "real", tmp_path / "folder"
    real.mkdir()
    folder.mkdir(mode=0o755)
    (folder / "link").symlink_to(real)
    write(machine, f"{folder}/link/x")
    assert (real / "x").exists()
    folder.chmod(0o777)
    with pytest.raises(HostError, match="symbolic link"):
        write(machine, f"{folder}/link/x")
    folder.chmod(0o755)
    os.chown(folder / "link", 65534, 65534, follow_symlinks=False)
    with pytest.raises(HostError, match="symbolic link"):
        write(machine, f"{folder}/link/x")


@needs_root
def test_owners_are_set_by_name(files: LinuxFiles) -> None:
    """An owner without a group brings its own; an unknown one is refused, and nothing is left."""
    files.write("/f", b"", mode="0640", owner="nobody", group=None)
    seen = files.observe("/f")
    assert (seen.owner, seen.group, seen.mode) == ("nobody", "nogroup", "0640")
    files.make_directory("/d", mode="0700", owner="nobody", group="root")
    seen = files.observe("/d")
    assert (seen.owner, seen.group, seen.mode) == ("nobody", "root", "0700")
    with pytest.raises(HostError, match="no account `nobody-here`"):
        files.write("/g", b"", mode="0640", owner="nobody-here", group=None)
    with pytest.raises(HostError, match="no group `none-here`"):
        files.write("/g", b"", mode="0640", owner=None, group="none-here")
    assert files.observe("/g").kind is PathKind.ABSENT


@pytest.mark.parametrize("root", ["own", "local"])
def test_an_archive_is_put_replaced_and_removed_whole(
    state: StateRoot, tmp_path: Path, root: str
) -> None:
    """In one step each, and told from other directories."""
    base = tmp_path / "srv" if root == "own" else state.root
    base.mkdir(exist_ok=True)
    prefix = str(base) if root == "own" else ""
    files = LinuxFiles(state, Path("/") if root == "own" else state.root)
    other = Digest("sha256-" + "c" * 64)
    for digest in (ARCHIVE, other):
        (state.artifacts / digest).mkdir()
        (state.artifacts / digest / "name").write_text(digest)
    for digest in (ARCHIVE, other, other):
        files.unpack(digest, f"{prefix}/www")
        assert files.observe(f"{prefix}/www") == ObservedPath(kind=PathKind.ARCHIVE, digest=digest)
        assert (base / "www/name").read_text() == digest
    with pytest.raises(HostError, match="an unpacked archive is there"):
        write(files, f"{prefix}/www")
    files.remove(f"{prefix}/www")
    assert files.observe(f"{prefix}/www").kind is PathKind.ABSENT
    assert (state.artifacts / other / "name").exists()
    write(files, f"{prefix}/file")
    with pytest.raises(HostError, match="a file is there, which was not unpacked"):
        files.unpack(ARCHIVE, f"{prefix}/file")
    with pytest.raises(HostError, match="not on this machine"):
        files.unpack(Digest("sha256-" + "d" * 64), f"{prefix}/www")


def test_a_full_directory_is_not_removed(files: LinuxFiles) -> None:
    """Nor does removing what is not there fail."""
    write(files, "/d/f")
    with pytest.raises(HostError, match="not empty"):
        files.remove("/d")
    files.remove("/d/f")
    files.remove("/d/f")
    files.remove("/d")
    files.remove("/d/f")
    assert files.observe("/d").kind is PathKind.ABSENT


def test_state_is_read_back_whole_or_not_at_all(files: LinuxFiles, state: StateRoot) -> None:
    """A torn one reads as none, wherever it was cut or changed."""
    assert files.read_state("ledger") is None
    content = b"a\nledger"
    files.write_state({"ledger": content})
    assert files.read_state("ledger") == content
    whole = (state.agent / "ledger").read_bytes()
    for torn in [whole[:cut] for cut in range(len(whole))] + [whole[:-1] + b"?", bytes(99)]:
        (state.agent / "ledger").write_bytes(torn)
        assert files.read_state("ledger") is None
    with pytest.raises(HostError):
        files.write_state({"../x": b""})


def test_what_was_removed_with_its_folder_can_be_put_there_again(
    files: LinuxFiles, placement: Placement, state: StateRoot
) -> None:
    """State is written at once; declared paths and archives from the next look on."""
    shutil.rmtree(state.path)
    files.write_state({"ledger": b"known"})
    assert files.read_state("ledger") == b"known"
    shutil.rmtree(state.path)
    assert LinuxProcesses(placement).observe() == ()
    assert files.observe("/etc/motd").kind is PathKind.ABSENT
    write(files, "/etc/motd")
    assert files.observe("/etc/motd").digest == HELLO
