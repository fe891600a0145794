"""An OCI image layout on disk as artifact store.

Blobs first, then the manifest, then `index.json` by a rename: whatever is killed in between
leaves a store as it was, and a temporary file. The next intake takes that away, and what was put
in place for it. Several processes may write one layout.
"""

import asyncio
import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import zstandard

from keyplane.adapters.oci import descriptors, halves, pack, record
from keyplane.adapters.oci.descriptors import Blob
from keyplane.adapters.oci.record import Record
from keyplane.model.names import Digest
from keyplane.ports.store import (
    ArtifactCorruptError,
    ArtifactMissingError,
    Holding,
    Pack,
    StoreUnavailableError,
)

_LEVEL = 3
"""zstd's default: higher levels cost builders more than machines gain."""
_PIECE = 1 << 20
_MARKER = b'{"imageLayoutVersion":"1.0.0"}'


class Layout:
    """`ports.store.ArtifactStore`, `ArtifactIntake` and `ArtifactShelf`, in one folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._blobs = path / "blobs" / "sha256"
        self._temporary = path / "tmp"
        self._known: tuple[object, dict[Digest, Blob], list[Any]] = (None, {}, [])
        self._sound: dict[str, object] = {}
        """Blobs that were read and found right, by what their files looked like then."""

    async def has(self, digest: Digest) -> bool:
        """Whether it is there, and is what its digests say."""
        return await asyncio.to_thread(self._is_whole, digest)

    async def put(self, digest: Digest, send: Pack) -> None:
        if not await self.has(digest):
            await asyncio.to_thread(self._put, digest, send)

    def _put(self, digest: Digest, send: Pack) -> None:
        with _about(self._path), self._intake() as intake:
            send(intake.write)
            if intake.content() != digest:
                raise ArtifactCorruptError(f"{intake.content()} was given as {digest}")
            self._keep(digest, intake)

    async def take_in(self, tar: AsyncIterator[bytes]) -> Digest:
        """Keep an uncompressed tar, whatever it is; its digest. Nothing unless all of it came."""
        with _about(self._path), self._intake() as intake:
            async for piece in tar:
                await _to_its_end(intake.write, piece)
            digest = intake.content()
            if not await self.has(digest):
                await _to_its_end(self._keep, digest, intake)
        return digest

    def put_directory(self, directory: Path) -> Digest:
        """Pack a directory and keep it."""
        with _about(self._path), self._intake() as intake:
            digest = Digest(pack.pack(directory, intake.write))
            if not self._is_whole(digest):
                self._keep(digest, intake)
        return digest

    def clear(self) -> None:
        """Take away what packers left that were killed."""
        with _about(self._path), contextlib.suppress(FileNotFoundError), self._locked():
            halves.clear(self._temporary, self._blobs, self._reached_now)

    async def read(self, digest: Digest) -> AsyncIterator[bytes]:
        with _about(self._path):
            document = self.manifest(digest)
            if document is None:
                raise ArtifactMissingError(f"the store has no {digest}")
            layer = self.blob(descriptors.layer_of(document, digest).digest)
            if layer is None:
                raise ArtifactCorruptError(
                    f"the store has lost the layer of {digest}: `keyplane apply` packs it again"
                )
            with layer.open("rb", buffering=0) as file:
                while piece := await asyncio.to_thread(file.read, _PIECE):
                    yield piece

    def archives(self) -> dict[Digest, Blob]:
        """The manifests by what they hold; read again only if the index was replaced."""
        return self._index()[1]

    def _index(self) -> tuple[object, dict[Digest, Blob], list[Any]]:
        """With what others put beside ours. One that is damaged is as good as none."""
        try:
            with (self._path / "index.json").open("rb") as file:
                version = _look(file.fileno())
                if self._known[0] != version:
                    self._known = (version, *descriptors.read_index(file.read()))
        except FileNotFoundError:
            return None, {}, []
        except ArtifactCorruptError:
            return None, {}, []
        except OSError as error:
            raise StoreUnavailableError(f"{self._path}: {error.strerror}") from error
        return self._known

    def _is_whole(self, digest: Digest) -> bool:
        known = self.archives().get(digest)
        if known is None or not self._is_sound(known):
            return False
        document = self.manifest(digest)
        try:
            return document is not None and self._is_sound(descriptors.layer_of(document, digest))
        except ArtifactCorruptError:
            return False

    def _is_sound(self, blob: Blob) -> bool:
        """Read once for as long as its file stays as it is."""
        path = self.blob(blob.digest)
        try:
            if path is None or path.stat().st_size != blob.size:
                return False
            with path.open("rb") as file:
                seen = _look(file.fileno())
                if self._sound.get(blob.digest) != seen:
                    if f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" != blob.digest:
                        return False
                    self._sound[blob.digest] = seen
        except OSError:
            return False
        return True

    def manifest(self, reference: str) -> bytes | None:
        """By an archive's digest, or by the manifest's own."""
        known = self.archives()
        found = known.get(Digest(reference))
        digest = reference if found is None else found.digest
        if found is None and digest not in {blob.digest for blob in known.values()}:
            return None
        path = self.blob(digest)
        return None if path is None else path.read_bytes()

    def blob(self, digest: str) -> Path | None:
        """Where it stands."""
        if not descriptors.is_blob_digest(digest):
            return None
        path = self._blobs / digest.removeprefix("sha256:")
        return path if path.is_file() else None

    @contextlib.contextmanager
    def _intake(self) -> Generator["_Intake", None, None]:
        """A temporary file, ours by its lock; those whose writers were killed are taken away."""
        self._blobs.mkdir(parents=True, exist_ok=True)
        self._temporary.mkdir(exist_ok=True)
        with self._locked():
            halves.clear(self._temporary, self._blobs, self._reached_now)
            number, name = tempfile.mkstemp(dir=self._temporary)
            fcntl.flock(number, fcntl.LOCK_EX)
        intake = _Intake(number, Path(name), self._blobs)
        try:
            yield intake
        finally:
            try:
                if not intake.is_kept:
                    with self._locked():
                        halves.take_back(number, self._blobs, self._reached_now)
                Path(name).unlink(missing_ok=True)
            finally:
                os.close(number)

    @property
    def automatic(self) -> bool:
        return record.read(self._path).automatic

    def set_automatic(self, *, automatic: bool) -> None:
        with _about(self._path):
            self._path.mkdir(parents=True, exist_ok=True)
            with self._locked():
                made = record.read(self._path)
                self._write_record(dataclasses.replace(made, automatic=automatic))

    def holdings(self) -> list[Holding]:
        made = record.read(self._path).made
        return [
            Holding(digest=digest, size=self._size_of(digest), made_ms=made.get(digest))
            for digest in sorted(self.archives())
        ]

    def _size_of(self, digest: Digest) -> int:
        document = self.manifest(digest)
        with contextlib.suppress(ArtifactCorruptError):
            return 0 if document is None else descriptors.layer_of(document, digest).size
        return 0

    def remove(self, digest: Digest) -> bool:
        """Let go of an archive that was packed here: its manifest first, then what no other needs.

        False for one that is not in the record: somebody else's.
        """
        with _about(self._path), self._locked():
            made = record.read(self._path)
            if digest not in made.made:
                return False
            _, known, others = self._index()
            blob = known.get(digest)
            reached = self._reached([blob.digest.encode()] if blob else [])
            rest = descriptors.index({k: v for k, v in known.items() if k != digest}, others)
            self._write(self._path / "index.json", rest)
            for digits in reached - self._reached([rest]):
                (self._blobs / digits).unlink(missing_ok=True)
            left = {name: at for name, at in made.made.items() if name != digest}
            self._write_record(dataclasses.replace(made, made=left))
        return True

    def _reached(self, documents: list[bytes]) -> set[str]:
        return record.named_by(documents, self._blobs)

    def _reached_now(self) -> set[str]:
        _, known, others = self._index()
        return self._reached([descriptors.index(known, others)])

    def _write_record(self, made: Record) -> None:
        self._write(self._path / record.NAME, made.encode())

    def _keep(self, digest: Digest, intake: "_Intake") -> None:
        layer = intake.finish()
        document = descriptors.manifest(digest, layer)
        manifest = Blob(digest=descriptors.blob_digest(document), size=len(document))
        with self._locked():
            placed = [self._place(content) for content in (descriptors.EMPTY_BLOB, document)]
            self._write(self._path / "oci-layout", _MARKER)
            made = record.read(self._path)
            at_ms = time.time_ns() // 1_000_000
            self._write_record(dataclasses.replace(made, made={**made.made, digest: at_ms}))
            _, known, others = self._index()
            index = descriptors.index({**known, digest: manifest}, others)
            self._write(self._path / "index.json", index)
            for path in placed:
                path.unlink(missing_ok=True)
        intake.is_kept = True

    def _place(self, content: bytes) -> Path:
        """Put a small blob in its place; its temporary name."""
        name = descriptors.blob_digest(content).removeprefix("sha256:")
        made, blob = self._temporary / name, self._blobs / name
        if not _is(blob, content):
            _write_through(made, content)
            halves.place(made, blob)
            _sync(self._blobs)
        return made

    def _write(self, path: Path, content: bytes) -> None:
        """Under the layout's lock, so that the temporary name is ours."""
        if not _is(path, content):
            self._temporary.mkdir(exist_ok=True)
            made = self._temporary / f"{path.name}.new"
            _write_through(made, content)
            made.replace(path)
            _sync(path.parent)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None, None, None]:
        """Held for moments alone: never while something is packed or sent."""
        file = os.open(self._path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


class _Intake:
    """A layer being written: compressed on the way, moved to its place when it is whole."""

    def __init__(self, file: int, path: Path, blobs: Path) -> None:
        self._file = file
        self._path = path
        self._blobs = blobs
        self._tar = hashlib.sha256()
        self._layer = hashlib.sha256()
        self._size = 0
        self.is_kept = False
        threads = min(4, os.cpu_count() or 1)
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=threads).compressobj()

    def write(self, piece: bytes) -> None:
        self._tar.update(piece)
        self._store(self._compressor.compress(piece))

    def content(self) -> Digest:
        return Digest(f"sha256-{self._tar.hexdigest()}")

    def finish(self) -> Blob:
        self._store(self._compressor.flush())
        os.fchmod(self._file, 0o644)
        os.fsync(self._file)
        halves.place(self._path, self._blobs / self._layer.hexdigest())
        _sync(self._blobs)
        return Blob(digest=f"sha256:{self._layer.hexdigest()}", size=self._size)

    def _store(self, compressed: bytes) -> None:
        self._layer.update(compressed)
        self._size += len(compressed)
        rest = memoryview(compressed)
        while rest:
            rest = rest[os.write(self._file, rest) :]


async def _to_its_end(call: Callable[..., None], *given: object) -> None:
    """In a thread, which whoever is cancelled waits for: it has a file that is about to be closed."""
    thread = asyncio.ensure_future(asyncio.to_thread(call, *given))
    try:
        await asyncio.shield(thread)
    except asyncio.CancelledError:
        await asyncio.wait([thread])
        raise


def _look(file: int) -> object:
    """Another where the file was replaced or written."""
    seen = os.fstat(file)
    return seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size


def _is(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _write_through(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def _about(folder: Path) -> Generator[None, None, None]:
    """What the disk refuses, with which one it is."""
    try:
        yield
    except OSError as error:
        why = "its disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
        raise StoreUnavailableError(f"the artifact store {folder}: {why}") from error
