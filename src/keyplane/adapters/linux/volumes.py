"""A machine's volumes, saved into the store and put in place from there.

What a volume is to hold is unpacked beside it and renamed into its place once it is whole. For which
order is written down between the two, so that a call that comes again after a crash, or after
the agent lost its memory, does nothing twice. What stood there is renamed too, and nothing is ever removed.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import IO, Protocol

from keyplane.adapters.linux import accounts, host_errors, walk
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.adapters.oci import pack, pack_volume, tar_stream, unpack_volume
from keyplane.model.names import Digest, EntryId
from keyplane.model.volumes import Saved
from keyplane.ports.host import HostError
from keyplane.ports.store import ArtifactCorruptError, ArtifactStore


class Upload(Protocol):
    """The way of a volume's content into the store."""

    def put(self, entry: EntryId, path: str, number: int, write: "Write") -> Saved: ...


class Write(Protocol):
    def __call__(self, sink: pack.Sink, /) -> str:
        """Send it all; its digest."""
        ...


class LinuxVolumes:
    """`ports.host.Volumes`."""

    def __init__(self, state: StateRoot, root: Path, store: ArtifactStore, upload: Upload) -> None:
        self._state = state
        self._root = root
        self._store = store
        self._upload = upload

    async def save(self, entry: EntryId, path: str, number: int) -> Saved:
        return await asyncio.to_thread(self._save, entry, path, number)

    def _save(self, entry: EntryId, path: str, number: int) -> Saved:
        with host_errors.about(path), self._opened(path) as folder:

            def write(sink: pack.Sink) -> str:
                return pack_volume.pack_volume(folder, sink, root=self._root)

            try:
                return self._upload.put(entry, path, number, write)
            except pack.UnpackableError as error:
                raise HostError(f"{path} cannot be saved: {error}") from error

    @contextlib.contextmanager
    def _opened(self, path: str) -> Generator[Path]:
        """The directory at the path, whatever is renamed meanwhile; an empty one if none is there."""
        with walk.parent_of(self._root, path, make=False) as place:
            seen = None if place is None else place.stat()
            if place is None or seen is None:
                with tempfile.TemporaryDirectory() as empty:
                    yield Path(empty)
                return
            if not stat.S_ISDIR(seen.st_mode):
                raise HostError(
                    f"{path} is no directory: where it leads, its data is not Keyplane's to move"
                )
            directory = place.open(os.O_RDONLY | os.O_DIRECTORY)
            try:
                yield Path(f"/proc/self/fd/{directory}")
            finally:
                os.close(directory)

    async def take(
        self, path: str, digest: Digest | None, number: int, *, mode: str | None, owner: str | None
    ) -> str | None:
        self._state.make()
        with (
            host_errors.about(path),
            tempfile.TemporaryFile(dir=self._state.artifacts, prefix=".") as file,
        ):
            if digest is not None and not self._is_done(path, number):
                async for piece in self._store.read(digest):
                    await asyncio.to_thread(file.write, piece)
            return await asyncio.to_thread(self._take, path, digest, number, file, mode, owner)

    def _take(  # noqa: PLR0913, PLR0917  # what it is to be
        self,
        path: str,
        digest: Digest | None,
        number: int,
        file: IO[bytes],
        mode: str | None,
        owner: str | None,
    ) -> str | None:
        with walk.parent_of(self._root, path, make=True) as place:
            assert place is not None
            made = walk.Place(place.directory, _draft_name(path))
            kept = walk.Place(place.directory, f"{place.name}.kept-{number}")
            if not self._is_done(path, number):
                self._make(made, digest, file, mode, owner)
                self._note(path, number)
            if made.stat() is not None:
                if _holds_something(place) and kept.stat() is None:
                    _rename(path, place, kept)
                elif place.stat() is not None:
                    os.rmdir(place.name, dir_fd=place.directory)
                _rename(path, made, place)
            return None if kept.stat() is None else f"{path}.kept-{number}"

    def _make(
        self,
        made: walk.Place,
        digest: Digest | None,
        file: IO[bytes],
        mode: str | None,
        owner: str | None,
    ) -> None:
        folder = Path(f"/proc/self/fd/{made.directory}/{made.name}")
        if made.stat() is not None:
            shutil.rmtree(folder)  # half of it, by a call that was cut off
        os.mkdir(made.name, 0o700, dir_fd=made.directory)
        if digest is not None:
            file.seek(0)
            try:
                found = unpack_volume.unpack_volume(file, folder)
            except tar_stream.TornArchiveError as error:
                raise ArtifactCorruptError(f"archive {digest} is damaged: {error}") from error
            except tar_stream.UnsafeArchiveError as error:
                raise HostError(f"archive {digest} is not safe: {error}") from error
            if found != digest:
                raise ArtifactCorruptError(f"what the store gave as {digest} is {found}")
        directory = made.open(os.O_RDONLY | os.O_DIRECTORY)
        try:
            if owner is not None and accounts.is_root():
                account = accounts.account(owner)
                os.fchown(directory, account.uid, account.gid)
            os.fchmod(directory, int(mode or "0700", 8))
            _sync_file_system(directory)
        finally:
            os.close(directory)

    def _is_done(self, path: str, number: int) -> bool:
        """Whether a directory was made for that number: it stands beside the volume, or is it."""
        try:
            return self._note_file(path).read_bytes() == b"%d" % number
        except FileNotFoundError:
            return False

    def _note(self, path: str, number: int) -> None:
        file = self._note_file(path)
        draft = file.with_suffix(".new")
        with draft.open("wb") as out:
            out.write(b"%d" % number)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
        directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _note_file(self, path: str) -> Path:
        return self._state.agent / f"volume-{_short(path)}.taken"


def _short(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:16]


def _draft_name(path: str) -> str:
    """Beside the volume, under the same name each time."""
    return f".keyplane-volume-{_short(path)}"


def _holds_something(place: walk.Place) -> bool:
    """Whether anything is there that could be lost: a link or a file is something too."""
    seen = place.stat()
    if seen is None:
        return False
    if not stat.S_ISDIR(seen.st_mode):
        return True
    directory = place.open(os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(directory) as found:
            return next(found, None) is not None
    finally:
        os.close(directory)


def _rename(path: str, old: walk.Place, new: walk.Place) -> None:
    try:
        os.rename(old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise HostError(
                f"{path} is a mount point, which cannot be put aside: unmount it, or move what it "
                "holds away"
            ) from error
        raise
    directory = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=new.directory)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _sync_file_system(directory: int) -> None:
    import ctypes

    ctypes.CDLL(None).syncfs(directory)
