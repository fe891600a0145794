"""The machine's cache of unpacked archives: fetched, verified, moved into place when whole.

What stands under a digest was hashed as it was unpacked, and is not written again: it is
readable by every account and writable by none.
"""

import asyncio
import contextlib
import ctypes
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from keyplane.adapters.linux import host_errors
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.adapters.oci import tar_stream, unpack
from keyplane.adapters.oci.descriptors import is_archive_digest
from keyplane.model.names import Digest
from keyplane.ports.host import HostError
from keyplane.ports.store import ArtifactCorruptError, ArtifactStore


class ArtifactCache:
    """`ports.host.Artifacts` before a store."""

    def __init__(self, state: StateRoot, store: ArtifactStore) -> None:
        self._folder = state.artifacts
        self._store = store
        for left in self._folder.glob(".*"):  # of a fetch or removal that was killed
            _delete(left)

    def present(self) -> frozenset[Digest]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return frozenset()
        return frozenset(Digest(name) for name in names if is_archive_digest(name))

    async def fetch(self, digest: Digest) -> None:
        if not is_archive_digest(digest):
            raise HostError(f"`{digest}` is no digest of an archive")
        if (self._folder / digest).is_dir():
            return
        # Taken whole before it is unpacked: a store that stalls holds no thread.
        with (
            host_errors.about(f"archive {digest} in {self._folder}"),
            tempfile.TemporaryFile(dir=self._folder, prefix=".") as file,
        ):
            async for piece in self._store.read(digest):
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(self._unpack, digest, file)

    def remove(self, digest: Digest) -> None:
        if not is_archive_digest(digest):
            return
        gone = self._folder / f".gone-{digest}"
        with host_errors.about(f"archive {digest}"), contextlib.suppress(FileNotFoundError):
            # First from its name, so that half of it is never taken for the whole.
            (self._folder / digest).rename(gone)
            _delete(gone)

    def _unpack(self, digest: Digest, file: IO[bytes]) -> None:
        made = Path(tempfile.mkdtemp(prefix=f".new-{digest}-", dir=self._folder))
        try:
            _unpack_verified(digest, file, made)
            _sync(made)
            made.rename(self._folder / digest)
        except BaseException:
            _delete(made)
            raise


def _unpack_verified(digest: Digest, file: IO[bytes], made: Path) -> None:
    file.seek(0)
    try:
        found = unpack.unpack(file, made, unpack.Bounds())
    except tar_stream.TornArchiveError as error:
        raise ArtifactCorruptError(f"archive {digest} is damaged: {error}") from error
    except tar_stream.UnsafeArchiveError as error:
        if error.digest in (digest, None):
            raise HostError(f"archive {digest} is not safe: {error}") from error
        found = error.digest
    if found != digest:
        raise ArtifactCorruptError(f"what the store gave as {digest} is {found}")


def _sync(folder: Path) -> None:
    """The whole file system at once: a sync for each of thousands of files takes minutes."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ctypes.CDLL(None).syncfs(directory)
    finally:
        os.close(directory)


def _delete(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for folder, _, _ in os.walk(path):
        Path(folder).chmod(0o700)  # its folders may be written by none
    shutil.rmtree(path, ignore_errors=True)
