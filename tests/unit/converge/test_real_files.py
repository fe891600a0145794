"""The brain over the real file system: what is changed, replaced, foreign, adopted and removed."""

from dataclasses import replace
from pathlib import Path

import pytest

from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.declaration import DeclaredDirectory, DeclaredEntry, EntryState
from keyplane.model.occurrence import Act
from tests.unit.converge.world import WEB, World, digest, entry, unit

PASS_MS = 31_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    state = StateRoot(tmp_path / "state")
    state.make()
    return state.root


def world_on(root: Path, *texts: str) -> World:
    """Files and archives are the machine's; what runs is not."""
    world = World(*texts)
    files = LinuxFiles(StateRoot(root.parent), root)
    world.performer = replace(world.performer, files=files)
    return world


def whole(*, adopt: bool = False) -> DeclaredEntry:
    return entry(
        units={"server": unit(config={"/etc/web/conf": "conf"})},
        files={"/etc/web/motd": "motd"},
        directories={"/srv/web": DeclaredDirectory(), "/var/web": DeclaredDirectory(keep=True)},
        adopt=adopt,
    )


def archived(root: Path, world: World) -> DeclaredEntry:
    """An archive that is fetched already."""
    (root.parent / "artifacts" / digest("tree")).mkdir()
    (root.parent / "artifacts" / digest("tree") / "page").write_text("page")
    world.host.artifacts.stored.add(digest("tree"))
    return entry(archives={"/opt/web": "tree"})


def gone(path: Path) -> None:
    path.unlink()


def edited(path: Path) -> None:
    path.write_text("meddled")


def opened(path: Path) -> None:
    path.chmod(0o666)


def linked(path: Path) -> None:
    """To a file outside the root, which is to stay as it is."""
    outside = path.parents[4] / "outside"
    outside.write_text("outside")
    path.unlink()
    path.symlink_to(outside)


@pytest.mark.parametrize("meddle", [gone, edited, opened, linked])
@pytest.mark.parametrize("name", ["etc/web/motd", "etc/web/conf"])
def test_a_file_that_was_changed_is_put_right_and_told(
    root: Path, name: str, meddle: object
) -> None:
    """By the next pass, with what it was and since when; no link is followed."""
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    path = root / name
    before = path.stat().st_mode
    assert callable(meddle)
    meddle(path)
    outside = path.readlink() if path.is_symlink() else None
    world.run(PASS_MS)
    assert not path.is_symlink()
    assert path.read_text() == path.name
    assert path.stat().st_mode == before
    (told,) = world.report().drift
    assert (told.path, told.repaired) == (f"/{name}", True)
    assert world.state.history.kept[-1].act is Act.REPAIR
    if outside is not None:
        assert outside.read_text() == "outside"


def test_a_file_that_became_a_directory_is_told_with_the_reason_why_not(root: Path) -> None:
    """A tree of somebody else's is not removed; once it is gone, the file is back."""
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    path = root / "etc/web/motd"
    path.unlink()
    path.mkdir()
    (path / "theirs").write_text("kept")
    world.run(3 * PASS_MS)
    (told,) = world.report().drift
    assert (told.what, told.repaired) == ("was a directory", False)
    assert told.problem is not None
    assert "directory" in told.problem
    assert world.report().state is EntryState.FAILED
    assert (path / "theirs").read_text() == "kept"
    (path / "theirs").unlink()
    path.rmdir()
    world.run(2 * PASS_MS)
    assert path.read_text() == "motd"
    assert world.report().drift[0].repaired


def test_a_directory_that_became_a_link_is_made_again(root: Path, tmp_path: Path) -> None:
    """The link alone is removed, never what it leads to."""
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "theirs").write_text("kept")
    (root / "srv/web").rmdir()
    (root / "srv/web").symlink_to(tmp_path / "elsewhere")
    world.run(PASS_MS)
    assert not (root / "srv/web").is_symlink()
    assert (root / "srv/web").is_dir()
    assert (tmp_path / "elsewhere" / "theirs").read_text() == "kept"
    assert world.report().drift[0].repaired


def test_a_volume_that_became_a_link_is_told_and_left(root: Path, tmp_path: Path) -> None:
    """Somebody moved the data: that is not undone, and the unit does not run into it."""
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    (root / "var/web").rmdir()
    (root / "var/web").symlink_to(tmp_path)
    world.run(2 * PASS_MS)
    assert (root / "var/web").readlink() == tmp_path
    assert not world.report().drift[0].repaired
    assert world.report().state is EntryState.FAILED


def test_an_archive_that_became_a_directory_is_told_and_left(root: Path) -> None:
    world = world_on(root)
    world.offer({WEB: archived(root, world)})
    assert (root / "opt/web/page").read_text() == "page"
    (root / "opt/web").unlink()
    (root / "opt/web").mkdir()
    (root / "opt/web/theirs").write_text("kept")
    world.run(2 * PASS_MS)
    assert (root / "opt/web/theirs").read_text() == "kept"
    assert world.report().state is EntryState.FAILED
    assert not world.report().drift[0].repaired


def test_a_parent_that_became_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    (tmp_path / "elsewhere").mkdir()
    (root / "etc/web").rename(tmp_path / "web")
    (root / "etc/web").symlink_to(tmp_path / "elsewhere")
    world.run(2 * PASS_MS)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert world.report().state is EntryState.FAILED
    assert "is not followed" in str(world.report().cause)


# What was there before.


@pytest.mark.parametrize("path", ["etc/web/motd", "etc/web/conf"])
def test_a_foreign_file_is_refused_by_name_and_kept(root: Path, path: str) -> None:
    (root / "etc/web").mkdir(parents=True)
    (root / path).write_text("theirs")
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    assert world.report().state is EntryState.FAILED
    assert f"/{path}: a file that is not ours was there before" in str(world.report().cause)
    assert world.pid() is None
    world.offer({})
    assert (root / path).read_text() == "theirs"


def test_a_foreign_link_is_refused_and_nothing_is_written_through_it(
    root: Path, tmp_path: Path
) -> None:
    (root / "etc/web").mkdir(parents=True)
    (tmp_path / "theirs").write_text("theirs")
    (root / "etc/web/motd").symlink_to(tmp_path / "theirs")
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    assert "a link that is not ours was there before" in str(world.report().cause)
    world.offer({WEB: whole(adopt=True)})
    assert world.report().state is EntryState.HEALTHY
    assert not (root / "etc/web/motd").is_symlink()
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_an_adopted_file_is_ours_and_goes_with_its_entry(root: Path) -> None:
    """Its former content is gone from the moment it is adopted."""
    (root / "etc/web").mkdir(parents=True)
    (root / "etc/web/motd").write_text("theirs")
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole(adopt=True)})
    assert (root / "etc/web/motd").read_text() == "motd"
    world.offer({})
    assert not (root / "etc/web/motd").exists()


def test_a_directory_that_was_there_is_used_and_stays(root: Path) -> None:
    (root / "srv/web").mkdir(parents=True)
    (root / "srv/web/theirs").write_text("kept")
    world = world_on(root, "motd", "conf")
    world.offer({WEB: whole()})
    assert world.report().state is EntryState.HEALTHY
    world.offer({})
    assert (root / "srv/web/theirs").read_text() == "kept"
    assert (root / "var/web").is_dir()


def test_a_foreign_directory_in_an_archives_place_is_refused(root: Path) -> None:
    (root / "opt/web").mkdir(parents=True)
    (root / "opt/web/theirs").write_text("kept")
    world = world_on(root)
    world.offer({WEB: archived(root, world)})
    assert "/opt/web: a directory that is not ours was there before" in str(world.report().cause)
    world.offer({})
    assert (root / "opt/web/theirs").read_text() == "kept"
