"""Unpacks a volume's archive: with owners, as far as the machine has them, modes and times.

An account goes by its name, which machines share where numbers differ; by its number if the
machine has nobody of that name. Who is not root makes everything his own.
"""

import functools
import grp
import os
import pwd
from pathlib import Path
from typing import IO

from keyplane.adapters.oci import unpack
from keyplane.adapters.oci.tar_stream import Header

BOUNDS = unpack.Bounds(bytes_max=1 << 44, members_max=100_000_000)
"""What a file system of today holds: a volume is as large as it is, and came from a machine."""


def unpack_volume(source: IO[bytes], target: Path) -> str:
    """The digest of the tar; `target` is there, and empty."""
    return unpack.unpack(source, target, BOUNDS, _Volume)


class _Volume(unpack.Tree):
    """The folder being filled. Nothing is made through a link, so any link may be kept."""

    def __init__(self, target: Path, bounds: unpack.Bounds) -> None:
        super().__init__(target, bounds)
        self._named: dict[bytes, Header] = {}
        self._is_root = os.geteuid() == 0

    def begin_directory(self, name: bytes, header: Header) -> None:
        self._named[name] = header

    def finish_directory(self, name: bytes) -> None:
        header = self._named.get(name)
        if header is None:
            return  # the volume itself, or a parent that the archive does not name
        path = self.base + name
        if self._is_root:
            os.chown(path, *_owner(header))
        os.chmod(path, header.mode & 0o7777)  # noqa: PTH101 - bytes
        os.utime(path, (header.seconds, header.seconds))

    def finish_file(self, file: int, header: Header) -> None:
        if self._is_root:
            os.fchown(file, *_owner(header))
        os.fchmod(file, header.mode & 0o7777)
        os.utime(file, (header.seconds, header.seconds))

    def check_link(self, name: bytes, link: bytes) -> None:
        """Any is kept as it was written."""

    def finish_link(self, name: bytes, header: Header) -> None:
        path = self.base + name
        if self._is_root:
            os.chown(path, *_owner(header), follow_symlinks=False)
        os.utime(path, (header.seconds, header.seconds), follow_symlinks=False)


def _owner(header: Header) -> tuple[int, int]:
    return _uid(header.user, header.uid), _gid(header.group, header.gid)


@functools.lru_cache(maxsize=256)
def _uid(name: bytes, number: int) -> int:
    try:
        return pwd.getpwnam(name.decode()).pw_uid if name else number
    except (KeyError, ValueError):
        return number


@functools.lru_cache(maxsize=256)
def _gid(name: bytes, number: int) -> int:
    try:
        return grp.getgrnam(name.decode()).gr_gid if name else number
    except (KeyError, ValueError):
        return number
