"""Finds a path's parent directory, one component at a time, so that no link leads elsewhere.

Below a local machine's root no link is followed at all. On a machine of its own, `/var/run` and
`/lib` are links of the system: one is followed if only root could have made it.
"""

import contextlib
import os
import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from keyplane.ports.host import HostError

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS_MAX = 8
"""The system's own links are one or two deep; more is a loop."""


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a directory that is open; valid inside its `with` alone."""

    directory: int
    name: str

    def stat(self) -> os.stat_result | None:
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, flags: int, mode: int = 0o600) -> int:
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.name, flags, mode, dir_fd=self.directory)


@contextlib.contextmanager
def parent_of(root: Path, path: str, *, make: bool) -> Generator[Place | None, None, None]:
    """Where `path` stands below `root`; None if a parent is missing and not to be made.

    A link that is not followed, or a file, in a parent's place is a missing parent for a look,
    and an error where one is to be made.
    """
    *parents, name = _components(path)
    directory = os.open(root, _DIRECTORY)
    try:
        waiting, links = parents[::-1], 0
        while waiting:
            part = waiting.pop()
            found = _descend(directory, part, make=make)
            if found is None:
                yield None
                return
            if isinstance(found, int):
                os.close(directory)
                directory = found
                continue
            links += 1
            if root != Path("/") or links > _LINKS_MAX or not _of_system(directory, part):
                if make:
                    raise HostError(f"{path}: `{part}` is a symbolic link, which is not followed")
                yield None
                return
            if found.startswith("/"):
                os.close(directory)
                directory = os.open(root, _DIRECTORY)
            waiting += [each for each in PurePosixPath(found).parts if each != "/"][::-1]
        yield Place(directory, name)
    finally:
        os.close(directory)


def _components(path: str) -> list[str]:
    parts = path.split("/")[1:]
    if not path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise HostError(f"`{path}` is no plain absolute path")
    return parts


def _descend(directory: int, name: str, *, make: bool) -> int | str | None:
    """The directory, opened; the text of a link; or None."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            return None
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=directory)
        made = os.open(name, _DIRECTORY, dir_fd=directory)
        os.chmod(f"/proc/self/fd/{made}", 0o755)  # noqa: PTH101, S103 - whatever our umask is; accounts pass through
        return made
    except NotADirectoryError:
        if not stat.S_ISLNK(os.lstat(name, dir_fd=directory).st_mode):
            if make:
                raise
            return None
        return os.readlink(name, dir_fd=directory)


def _of_system(directory: int, name: str) -> bool:
    holder, link = os.fstat(directory), os.lstat(name, dir_fd=directory)
    return holder.st_uid == 0 and link.st_uid == 0 and not holder.st_mode & 0o022
