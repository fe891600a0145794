"""A volume as one tar: as any archive, and with owners, modes and times of change.

Sockets and pipes are left out: they are nothing without the processes that made them. A link is
kept as it is written, and refused where it leads to a directory elsewhere: that holds data which
would not come along.
"""

import functools
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from keyplane.adapters.oci import pack
from keyplane.adapters.oci.pack import Attributes, Directory, File, Link, Member, Sink


def pack_volume(directory: Path, sink: Sink, *, root: Path) -> str:
    """Send the tar of what is in it; its digest. `root` is where absolute links begin."""
    try:
        return pack.write(_members(directory, root), sink)
    except OSError as error:
        raise pack.UnpackableError(f"{error.filename or directory}: {error.strerror}") from error


def _members(directory: Path, root: Path) -> Iterator[Member]:
    waiting = [(pack.entries_of(os.fspath(directory)), "")]
    while waiting:
        entries, prefix = waiting[-1]
        entry = next(entries, None)
        if entry is None:
            waiting.pop()
            continue
        name = prefix + entry.name
        found = entry.stat(follow_symlinks=False)
        attributes = _attributes(found)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(entry.path)  # noqa: PTH115 - Path rewrites targets
            _check(name, target, entry.path, root)
            yield Link(name=name, target=target, attributes=attributes)
        elif stat.S_ISDIR(found.st_mode):
            yield Directory(name=name, attributes=attributes)
            waiting.append((pack.entries_of(entry.path), name + "/"))
        elif stat.S_ISREG(found.st_mode):
            yield File(
                name=name,
                executable=False,
                size=found.st_size,
                open=functools.partial(pack.Plain, entry.path),
                attributes=attributes,
            )
        elif not (stat.S_ISSOCK(found.st_mode) or stat.S_ISFIFO(found.st_mode)):
            raise pack.UnpackableError(f"{name} is a device, which is no data")


def _check(name: str, target: str, path: str, root: Path) -> None:
    if not pack.leads_out(name, target):
        return
    beside = Path(path).parent
    where = Path(f"{root}{target}") if target.startswith("/") else beside / target
    if where.is_dir():
        raise pack.UnpackableError(
            f"the link {name} leads to the directory {target}, outside of the volume: what it holds "
            "would not come along; declare that as a volume too, or have the data inside"
        )


def _attributes(found: os.stat_result) -> Attributes:
    return Attributes(
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        gid=found.st_gid,
        user=_user(found.st_uid),
        group=_group(found.st_gid),
        seconds=int(found.st_mtime),
    )


@functools.lru_cache(maxsize=256)
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


@functools.lru_cache(maxsize=256)
def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""
