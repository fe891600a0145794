"""The edge that reads a fleet directory, and the text of a revision from one and back.

Follows no link out of the fleet, and none at all inside a module.
"""

import contextlib
import errno
import gc
import os
import stat
from collections.abc import Collection, Generator, Iterator, Mapping
from pathlib import Path

from keyplane.adapters import revision
from keyplane.adapters.oci import pack
from keyplane.documents import reading
from keyplane.documents.evaluation import Run
from keyplane.documents.reading import Reading
from keyplane.documents.text import Unreadable

_READ_MAX = 64 << 20
"""Bytes of one document or shipped file: more belongs into an artifact."""
_REVISION_MAX = 256 << 20
"""Bytes of a revision: it is kept in the inventory for as long as a generation names it."""


class DirectoryUnreadableError(Exception):
    """There is no fleet to read at all; the message is for a person."""


def read(path: Path, facts: Path | None, run: Run) -> Reading:
    """The documents of a fleet directory. `facts` reads the snapshots from elsewhere."""
    if not path.is_dir():
        raise DirectoryUnreadableError(f"{path} is no directory")
    tree = DirectoryTree(path)
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise DirectoryUnreadableError(f"{path}: {error.strerror}") from error
    if not any(f"fleet.{spelling}" in names for spelling in reading.SPELLINGS):
        raise DirectoryUnreadableError(
            f"{path} holds no fleet.toml, fleet.json or fleet.star: name the directory that has one"
        )
    with _uncollected():
        snapshots = _own_snapshots(tree) if facts is None else _other_snapshots(path, facts)
        return reading.read(tree, snapshots, run)


def documents_of(files: Mapping[str, bytes], run: Run) -> Reading:
    """The documents of a recorded revision, with the snapshots that are in its text."""
    tree = revision.RevisionTree(files)
    with _uncollected():
        return reading.read(tree, _own_snapshots(tree), run)


def read_revision(path: Path) -> dict[str, bytes]:
    """The whole text of a fleet directory, for `documents_of` and `export`."""
    files: dict[str, bytes] = {}
    executable: list[str] = []
    links: dict[str, str] = {}
    empty: list[str] = []
    size = 0
    try:
        for name, entry in _walk(path):
            if entry.is_symlink():
                links[name] = os.readlink(entry.path)  # noqa: PTH115 - Path rewrites targets
            elif entry.is_dir(follow_symlinks=False):
                if not any(Path(entry.path).iterdir()):
                    empty.append(name)
            elif entry.is_file(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                size += found.st_size
                if size > _REVISION_MAX:
                    raise DirectoryUnreadableError(
                        f"{path} holds more than {_REVISION_MAX >> 20} MiB"
                    )
                files[name] = Path(entry.path).read_bytes()
                if found.st_mode & stat.S_IXUSR:
                    executable.append(name)
    except OSError as error:
        raise DirectoryUnreadableError(f"{error.filename or path}: {error.strerror}") from error
    return {**files, **revision.shape_file(executable, links, empty)}


class DirectoryTree:
    """A fleet directory, read as `documents.reading.Tree`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real = root.resolve()

    def names(self, folder: str) -> tuple[str, ...] | Unreadable:
        at = self._root / folder
        if not os.path.lexists(at):
            return ()
        complaint = self._link_complaint(at)
        if complaint is not None:
            return complaint
        try:
            return tuple(sorted(entry.name for entry in at.iterdir()))
        except NotADirectoryError:
            return Unreadable("not a directory")
        except OSError as error:
            return Unreadable(error.strerror or "unreadable")

    def read(self, path: str) -> bytes | Unreadable | None:
        at = self._root / path
        if not os.path.lexists(at):
            return None
        return self._link_complaint(at) or read_file(at)

    def shipped(self, folder: str, path: str) -> bytes | Unreadable:
        at = self._below(folder, path)
        return at if isinstance(at, Unreadable) else read_file(at)

    def digest(self, folder: str, path: str, without: Collection[str] = ()) -> str | Unreadable:
        at = self._below(folder, path)
        if isinstance(at, Unreadable):
            return at
        if not at.is_dir():
            return Unreadable(f"{path} is no directory")
        try:
            return pack.pack(at, _nowhere, without)
        except pack.UnpackableError as error:
            return Unreadable(str(error))

    def _link_complaint(self, at: Path) -> Unreadable | None:
        try:
            if not at.resolve(strict=True).is_relative_to(self._real):
                return Unreadable("a link that leads out of the fleet directory")
        except (OSError, RuntimeError):
            return Unreadable("a link that leads nowhere")
        return None

    def _below(self, folder: str, path: str) -> Path | Unreadable:
        """The place of a path below a folder, each step of it there and no link."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts:
            return Unreadable(f"{path} leads out of the module")
        at = self._root / folder
        for part in parts:
            at = at / part
            try:
                found = at.lstat()
            except (OSError, ValueError):
                return Unreadable(f"there is no {path} in {folder}")
            if stat.S_ISLNK(found.st_mode):
                return Unreadable(f"{path} is reached by a link")
        return at


def read_file(path: Path) -> bytes | Unreadable:
    """The bytes of a regular file."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return Unreadable(f"{path.name} is no regular file")
        if found.st_size > _READ_MAX:
            return Unreadable(f"{found.st_size} bytes, more than {_READ_MAX >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        return Unreadable(error.strerror or errno.errorcode.get(error.errno or 0, "unreadable"))


@contextlib.contextmanager
def _uncollected() -> Generator[None]:
    """Without the cycle collector.

    Reading makes no cycles, and the collector would walk the growing tree over and over, which is
    half of the time that a large fleet takes.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _own_snapshots(tree: reading.Tree) -> dict[str, bytes | Unreadable]:
    """The facts files of the fleet itself, by the path that rows name them with."""
    names = tree.names("facts")
    if isinstance(names, Unreadable):
        return {"facts": names}
    read = {f"facts/{name}": tree.read(f"facts/{name}") for name in names if _is_snapshot(name)}
    return {path: data for path, data in read.items() if data is not None}


def _other_snapshots(root: Path, facts: Path) -> dict[str, bytes | Unreadable]:
    """Those of a folder that somebody named."""
    if not facts.is_dir():
        raise DirectoryUnreadableError(f"{facts} is no directory of facts")
    try:
        names = sorted(entry.name for entry in facts.iterdir())
    except OSError as error:
        raise DirectoryUnreadableError(f"{facts}: {error.strerror}") from error
    label = _label(root, facts)
    return {f"{label}/{name}": read_file(facts / name) for name in names if _is_snapshot(name)}


def _is_snapshot(name: str) -> bool:
    return name.endswith(".json")


def _label(root: Path, facts: Path) -> str:
    """A folder inside the fleet is named from there, another as it was said."""
    try:
        return facts.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return facts.as_posix()


def _walk(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All that is below a fleet directory but what no revision keeps, by its path there."""
    waiting = [(_entries(os.fspath(root)), "")]
    while waiting:
        entries, prefix = waiting[-1]
        entry = next(entries, None)
        if entry is None:
            waiting.pop()
        elif prefix or entry.name not in revision.LEFT_OUT:
            yield prefix + entry.name, entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append((_entries(entry.path), f"{prefix}{entry.name}/"))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as scanned:
        return iter(sorted(scanned, key=lambda entry: entry.name))


def _nowhere(piece: bytes) -> None:
    """Only the digest is wanted."""
