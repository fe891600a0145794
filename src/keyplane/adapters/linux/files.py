"""Declared paths and the agent's own state, on the disk: whole, atomic, exact.

Nothing is decided here: what may be replaced or removed is the caller's to know. An archive at a
path is a link into the artifact cache, so that it is replaced in one step, seen replaced by what
runs, and told from any other directory.
"""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from keyplane.adapters.linux import accounts, host_errors, walk
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.host import ObservedPath, PathKind
from keyplane.model.names import Digest
from keyplane.ports.host import HostError

_DIGEST = re.compile(r"sha256-[0-9a-f]{64}", re.ASCII)
_STATE_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}", re.ASCII)
_ABSENT = ObservedPath(kind=PathKind.ABSENT)
_CHUNK = 1 << 20
_FLEETING = "/run/"
"""What stands below it is made anew after the power was cut, so nobody waits for the disk."""


class LinuxFiles:
    """`ports.host.Files`, below `root`: `/` on a machine of its own, else the state's `root`."""

    def __init__(self, state: StateRoot, root: Path) -> None:
        self._state = state
        self._root = root

    def observe(self, path: str) -> ObservedPath:
        with (
            host_errors.about(path),
            walk.parent_of(self._root, path, make=False) as place,
        ):
            seen = None if place is None else place.stat()
            if place is None or seen is None:
                return _ABSENT
            return self._observed(path, place, seen)

    def write(
        self, path: str, content: bytes, *, mode: str, owner: str | None, group: str | None
    ) -> None:
        with host_errors.about(path), walk.parent_of(self._root, path, make=True) as place:
            assert place is not None
            if self._is_archive(path, place):
                raise HostError(f"{path}: an unpacked archive is there")
            made = _temporary(place)
            file = made.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                _write_whole(file, content)
                _own(file, owner, group)
                os.fchmod(file, _mode(mode))
                lasts = not path.startswith(_FLEETING)
                if lasts:
                    os.fsync(file)
                _rename(made, place, lasts=lasts)
            except BaseException:
                _discard(made)
                raise
            finally:
                os.close(file)

    def make_directory(self, path: str, *, mode: str, owner: str | None, group: str | None) -> None:
        with host_errors.about(path), walk.parent_of(self._root, path, make=True) as place:
            assert place is not None
            with contextlib.suppress(FileExistsError):
                os.mkdir(place.name, 0o700, dir_fd=place.directory)
            directory = place.open(os.O_RDONLY | os.O_DIRECTORY)
            try:
                _own(directory, owner, group)
                os.fchmod(directory, _mode(mode))
            finally:
                os.close(directory)

    def unpack(self, digest: Digest, path: str) -> None:
        if not (self._state.artifacts / digest).is_dir():
            raise HostError(f"{path}: archive {digest} is not on this machine")
        with host_errors.about(path), walk.parent_of(self._root, path, make=True) as place:
            assert place is not None
            kind = self.observe(path).kind
            if kind not in {PathKind.ABSENT, PathKind.ARCHIVE}:
                raise HostError(f"{path}: a {kind} is there, which was not unpacked")
            made = _temporary(place)
            os.symlink(self._link(path, digest), made.name, dir_fd=made.directory)
            try:
                _rename(made, place, lasts=True)
            except BaseException:
                _discard(made)
                raise

    def remove(self, path: str) -> None:
        with (
            host_errors.about(path),
            walk.parent_of(self._root, path, make=False) as place,
        ):
            seen = None if place is None else place.stat()
            if place is None or seen is None:
                return
            if stat.S_ISDIR(seen.st_mode):
                os.rmdir(place.name, dir_fd=place.directory)
            else:
                os.unlink(place.name, dir_fd=place.directory)

    def read_state(self, name: str) -> bytes | None:
        try:
            sealed = self._state_file(name).read_bytes()
        except FileNotFoundError:
            return None
        digest, _, content = sealed.partition(b"\n")
        return content if digest == _seal(content) else None

    def write_state(self, contents: Mapping[str, bytes]) -> None:
        paths = {name: self._state_file(name) for name in contents}
        for name, path in paths.items():
            with host_errors.about(str(path)):
                try:
                    _write_beside(path, contents[name])
                except FileNotFoundError:
                    self._state.make()
                    _write_beside(path, contents[name])
        with host_errors.about(str(self._state.agent)):
            for path in paths.values():
                _beside(path).replace(path)
            directory = os.open(self._state.agent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def _observed(self, path: str, place: walk.Place, seen: os.stat_result) -> ObservedPath:
        digest: Digest | None = None
        if stat.S_ISREG(seen.st_mode):
            kind, digest = PathKind.FILE, _digest_of(place)
        elif stat.S_ISDIR(seen.st_mode):
            kind = PathKind.DIRECTORY
        elif stat.S_ISLNK(seen.st_mode):
            digest = self._archive_at(path, os.readlink(place.name, dir_fd=place.directory))
            return ObservedPath(
                kind=PathKind.LINK if digest is None else PathKind.ARCHIVE, digest=digest
            )
        else:
            kind = PathKind.OTHER
        root = accounts.is_root()
        return ObservedPath(
            kind=kind,
            digest=digest,
            mode=f"{stat.S_IMODE(seen.st_mode):04o}",
            owner=accounts.user_name(seen.st_uid) if root else None,
            group=accounts.group_name(seen.st_gid) if root else None,
        )

    def _link(self, path: str, digest: str) -> str:
        """The link's text; relative below a local root.

        A private root has `root` and `artifacts` side by side too, but elsewhere.
        """
        target = self._state.artifacts / digest
        if self._root == Path("/"):
            return str(target)
        return os.path.relpath(target, Path(f"{self._root}{path}").parent)

    def _is_archive(self, path: str, place: walk.Place) -> bool:
        seen = place.stat()
        if seen is None or not stat.S_ISLNK(seen.st_mode):
            return False
        link = os.readlink(place.name, dir_fd=place.directory)
        return self._archive_at(path, link) is not None

    def _archive_at(self, path: str, link: str) -> Digest | None:
        name = link.rpartition("/")[2]
        ours = _DIGEST.fullmatch(name) is not None and link == self._link(path, name)
        return Digest(name) if ours else None

    def _state_file(self, name: str) -> Path:
        if _STATE_NAME.fullmatch(name) is None:
            raise HostError(f"`{name}` is no name of a saved state")
        return self._state.agent / name


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _write_beside(path: Path, content: bytes) -> None:
    file = os.open(_beside(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write_whole(file, _seal(content) + b"\n" + content)
        os.fsync(file)
    finally:
        os.close(file)


def _seal(content: bytes) -> bytes:
    return f"sha256-{hashlib.sha256(content).hexdigest()}".encode()


def _temporary(place: walk.Place) -> walk.Place:
    """Beside it, under the same name each time: what a crash left behind is taken away here."""
    name = f".keyplane-{hashlib.sha256(place.name.encode()).hexdigest()[:16]}"
    made = walk.Place(place.directory, name)
    _discard(made)
    return made


def _discard(place: walk.Place) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place.name, dir_fd=place.directory)


def _rename(made: walk.Place, place: walk.Place, *, lasts: bool) -> None:
    os.rename(made.name, place.name, src_dir_fd=made.directory, dst_dir_fd=place.directory)
    if not lasts:
        return
    directory = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place.directory)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write_whole(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _own(file: int, owner: str | None, group: str | None) -> None:
    """An owner without a group brings its own. Not root: paths stay ours, and it is not told."""
    if not accounts.is_root() or (owner is None and group is None):
        return
    account = None if owner is None else accounts.account(owner)
    gid = accounts.group_id(group) if group is not None else account.gid if account else -1
    os.fchown(file, -1 if account is None else account.uid, gid)


def _mode(text: str) -> int:
    if re.fullmatch(r"[0-7]{3,4}", text, re.ASCII) is None:
        raise HostError(f"`{text}` is no mode such as `0644`")
    return int(text, 8)


def _digest_of(place: walk.Place) -> Digest | None:
    file = place.open(os.O_RDONLY | os.O_NONBLOCK)
    hashed = hashlib.sha256()
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        while chunk := os.read(file, _CHUNK):
            hashed.update(chunk)
    finally:
        os.close(file)
    return Digest(f"sha256-{hashed.hexdigest()}")
