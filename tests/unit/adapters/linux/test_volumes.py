"""Volumes saved into a store and put in place from there, and what a crash in between leaves."""

import asyncio
import os
import pwd
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import nacl.signing
import pytest

from keyplane.adapters.linux import volumes as linux_volumes
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.adapters.linux.volumes import LinuxVolumes
from keyplane.adapters.oci import upload
from keyplane.adapters.oci.layout import Layout
from keyplane.adapters.oci.pack import Sink
from keyplane.model.names import Digest, EntryId
from keyplane.model.volumes import Saved
from keyplane.parts import unix_socket
from keyplane.ports.host import HostError
from keyplane.ports.store import ArtifactMissingError

from .conftest import needs_root

ENTRY = EntryId("pg:main@alpha")
PATH = "/var/lib/pg"


class Upload:
    """Into a layout beside it, with no line between."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def put(self, entry: EntryId, path: str, number: int, write: Callable[[Sink], str]) -> Saved:
        pieces: list[bytes] = []
        digest = write(pieces.append)

        async def tar():
            for piece in pieces:
                yield piece

        assert asyncio.run(self._layout.take_in(tar())) == digest
        return Saved(digest=Digest(digest), size=sum(map(len, pieces)))


@pytest.fixture
def store(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "store")


@pytest.fixture
def volumes(state: StateRoot, store: Layout) -> LinuxVolumes:
    state.make()
    return LinuxVolumes(state, state.root, store, Upload(store))


def fill(folder: Path, text: str = "one") -> None:
    folder.mkdir(parents=True)
    (folder / "base").mkdir(mode=0o750)
    (folder / "base" / "1259").write_text(text)
    (folder / "base" / "1259").chmod(0o640)
    os.utime(folder / "base" / "1259", (1_000_000_000, 1_000_000_000))
    os.utime(folder / "base", (1_100_000_000, 1_100_000_000))
    (folder / "current").symlink_to("base/1259")
    (folder / "certificate").symlink_to("/etc/ssl/key.pem")
    (folder / ("long" * 60)).write_text("")
    for name in ("current", "certificate"):
        os.utime(folder / name, (1_200_000_000, 1_200_000_000), follow_symlinks=False)


def shown(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that is below, as it looks."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        content = path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes()
        found[str(path.relative_to(folder))] = (
            seen.st_mode,
            seen.st_uid,
            int(seen.st_mtime),
            content,
        )
    return found


async def take(
    volumes: LinuxVolumes, digest: Digest | None, number: int, **given: str | None
) -> str | None:
    how: dict[str, str | None] = {"mode": "0700", "owner": None} | given
    return await volumes.take(PATH, digest, number, **how)


async def test_what_is_saved_is_what_is_taken(volumes: LinuxVolumes, state: StateRoot) -> None:
    """Content, modes, links, times and owners; a socket is no data. Saved again it is the same."""
    fill(state.root / "var/lib/pg")
    before = shown(state.root / "var/lib/pg")
    place = state.root / "var/lib/pg/.s"
    with socket.socket(socket.AF_UNIX) as listener, unix_socket.address(place) as address:
        listener.bind(address)
        saved = await volumes.save(ENTRY, PATH, 1)
    (state.root / "var/lib/pg/.s").unlink()
    assert (await volumes.save(ENTRY, PATH, 2)).digest == saved.digest
    assert await volumes.take("/srv/else", saved.digest, 3, mode="0710", owner=None) is None
    assert shown(state.root / "srv/else") == before
    assert stat.S_IMODE((state.root / "srv/else").stat().st_mode) == 0o710
    again = await volumes.save(ENTRY, "/srv/else", 4)
    assert again == saved


@needs_root
async def test_owners_go_along_by_name(volumes: LinuxVolumes, state: StateRoot) -> None:
    """The volume itself belongs to whom it is declared for."""
    folder = state.root / "var/lib/pg"
    fill(folder)
    daemon, games = pwd.getpwnam("daemon"), pwd.getpwnam("games")
    os.chown(folder / "base", daemon.pw_uid, games.pw_gid)
    os.chown(folder / "base/1259", 54321, 54322)
    saved = await volumes.save(ENTRY, PATH, 1)
    await volumes.take("/srv/else", saved.digest, 2, mode="0700", owner="games")
    made = state.root / "srv/else"
    seen = [(p.stat().st_uid, p.stat().st_gid) for p in (made, made / "base", made / "base/1259")]
    assert seen == [
        (games.pw_uid, games.pw_gid),
        (daemon.pw_uid, games.pw_gid),
        (54321, 54322),
    ]


async def test_what_was_there_is_moved_and_never_removed(
    volumes: LinuxVolumes, state: StateRoot
) -> None:
    folder = state.root / "var/lib/pg"
    fill(folder)
    saved = await volumes.save(ENTRY, PATH, 1)
    (folder / "later").write_text("written since")
    before = shown(folder)
    assert await take(volumes, saved.digest, 5) == f"{PATH}.kept-5"
    assert not (folder / "later").exists()
    assert shown(state.root / "var/lib/pg.kept-5") == before
    assert await take(volumes, None, 6) == f"{PATH}.kept-6"
    assert list(folder.iterdir()) == []
    assert await take(volumes, saved.digest, 7) is None  # nothing was there that could be lost
    assert sorted(p.name for p in folder.parent.iterdir()) == ["pg", "pg.kept-5", "pg.kept-6"]


async def test_a_take_is_done_once_whatever_was_written_since(
    volumes: LinuxVolumes, state: StateRoot, store: Layout
) -> None:
    """Also for an agent that lost its memory, and asks again."""
    folder = state.root / "var/lib/pg"
    fill(folder)
    saved = await volumes.save(ENTRY, PATH, 1)
    await take(volumes, saved.digest, 5)
    (folder / "later").write_text("written since")
    another = LinuxVolumes(state, state.root, store, Upload(store))
    assert await take(another, saved.digest, 5) == f"{PATH}.kept-5"
    assert (folder / "later").read_text() == "written since"


STEPS = ("mkdir", "_sync_file_system", "replace", "rename", "rename 2")


@pytest.mark.parametrize("step", STEPS)
async def test_a_take_that_was_cut_off_leaves_what_was_or_what_was_asked(
    volumes: LinuxVolumes, state: StateRoot, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before each thing that it does; the next try comes to the end, and loses nothing."""
    folder = state.root / "var/lib/pg"
    fill(folder, "saved")
    saved = await volumes.save(ENTRY, PATH, 1)
    wanted = shown(folder)
    (folder / "base/1259").write_text("newer")
    before = shown(folder)
    with monkeypatch.context() as patch:
        _cut(patch, step)
        with pytest.raises(KeyboardInterrupt):
            await take(volumes, saved.digest, 5)
    kept = state.root / "var/lib/pg.kept-5"
    assert before in (
        shown(folder) if folder.exists() else {},
        shown(kept) if kept.exists() else {},
    )
    assert await take(volumes, saved.digest, 5) == f"{PATH}.kept-5"
    assert shown(folder) == wanted
    assert shown(kept) == before
    assert sorted(p.name for p in folder.parent.iterdir()) == ["pg", "pg.kept-5"]


def _cut(patch: pytest.MonkeyPatch, step: str) -> None:
    """End the life of whoever comes to that step, so often as it says."""
    name, _, count = step.partition(" ")
    left = int(count or 1)
    where: object = linux_volumes if name.startswith("_") else os
    where = Path if name == "replace" else where
    real = getattr(where, name)

    def cut(*given: object, **named: object) -> object:
        nonlocal left
        ours = (
            name in ("replace", "_sync_file_system")
            or "keyplane-volume" in f"{given}"
            or (name == "rename" and "kept" in f"{given}")
        )
        if ours:
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return real(*given, **named)

    patch.setattr(where, name, cut)


async def test_data_that_would_not_come_along_is_named(
    volumes: LinuxVolumes, state: StateRoot
) -> None:
    folder = state.root / "var/lib/pg"
    fill(folder)
    (state.root / "mnt/wal").mkdir(parents=True)
    (folder / "pg_wal").symlink_to("/mnt/wal")
    with pytest.raises(HostError, match="pg_wal leads to the directory /mnt/wal"):
        await volumes.save(ENTRY, PATH, 1)
    (folder / "pg_wal").unlink()
    folder.rename(state.root / "mnt/pg")
    folder.symlink_to("/mnt/pg")
    with pytest.raises(HostError, match="is no directory"):
        await volumes.save(ENTRY, PATH, 2)


async def test_a_volume_that_is_not_there_is_saved_as_an_empty_one(
    volumes: LinuxVolumes, state: StateRoot
) -> None:
    saved = await volumes.save(ENTRY, PATH, 1)
    assert await take(volumes, saved.digest, 2) is None
    assert list((state.root / "var/lib/pg").iterdir()) == []


async def test_what_the_store_does_not_have_changes_nothing(
    volumes: LinuxVolumes, state: StateRoot
) -> None:
    folder = state.root / "var/lib/pg"
    fill(folder)
    before = shown(folder)
    with pytest.raises(ArtifactMissingError):
        await take(volumes, Digest("sha256-" + "0" * 64), 2)
    assert shown(folder) == before


def test_a_key_signs_for_its_machine_alone() -> None:
    """What is signed names the machine, the entry, the volume and the order."""
    key = nacl.signing.SigningKey.generate()
    texts = {
        upload.signed(machine, entry, path, number)
        for machine in ("a", "b")
        for entry in ("e", "f")
        for path in ("/p", "/q")
        for number in (1, 2)
    }
    assert len(texts) == 16
    assert all(key.verify_key.verify(text, key.sign(text).signature) for text in texts)
