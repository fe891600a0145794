"""A directory as one deterministic tar: equal trees give equal bytes on every machine.

GNU format, sorted, no times, owners or names; a file's mode says only whether its owner may run
it, but for volumes (`pack_volume`), which keep all that. A link is kept where it stays inside the tree, and refused where it leads out. Headers are
written here: digests must not move with a release of Python, and `tarfile` takes half the time
of a whole pack for them.
"""

import functools
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from keyplane.ports.errors import PermanentError

Sink = Callable[[bytes], object]
"""Takes the tar, piece by piece."""

_PIECE = 1 << 20
"""Bytes held at once: larger pieces were no faster."""
_BLOCK = 512
_RECORD = 20 * _BLOCK
"""What GNU tar pads an archive to."""
_SIZE_MAX = 8 << 30
"""Bytes of one tree: read within a minute. A sparse file says any size that it likes."""
_NAME_MAX = 100
_OCTAL_MAX = 8**11
"""Sizes from here on are written in binary."""


class UnpackableError(PermanentError):
    """Something in the tree cannot be packed; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Whose something is, and what may be done with it: kept of volumes alone."""

    mode: int
    uid: int
    gid: int
    user: str
    """The account's name; empty where it has none."""
    group: str
    seconds: int
    """When it was last changed, by the Unix epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    name: str
    """The path in the tree, with `/`."""
    attributes: Attributes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    executable: bool
    size: int
    open: Callable[[], "Opened"]
    attributes: Attributes | None = None


class Opened(Protocol):
    """What a file's content is read from."""

    def read(self, count: int, /) -> bytes: ...
    def close(self) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    name: str
    target: str
    attributes: Attributes | None = None


Member = Directory | File | Link


def pack(directory: Path, sink: Sink, without: Collection[str] = ()) -> str:
    """Send the tar of a directory; its digest, `sha256-…`. Memory does not grow with the tree.

    `without` are names directly in it that are left out.
    """
    try:
        return write((one for one in members(directory) if one.name not in without), sink)
    except OSError as error:
        raise UnpackableError(f"{error.filename or directory}: {error.strerror}") from error


def members(directory: Path) -> Iterator[Member]:
    """All that is below a directory, each folder before what is in it. Depth is of no account."""
    size = 0
    waiting = [(entries_of(os.fspath(directory)), "")]
    while waiting:
        entries, prefix = waiting[-1]
        entry = next(entries, None)
        if entry is None:
            waiting.pop()
            continue
        name = prefix + entry.name
        member = _member(entry, name)
        if isinstance(member, File):
            size += member.size
            if size > _SIZE_MAX:
                raise UnpackableError(f"it holds more than {_SIZE_MAX >> 30} GiB")
        yield member
        if isinstance(member, Directory):
            waiting.append((entries_of(entry.path), name + "/"))


def write(tree: Iterable[Member], sink: Sink) -> str:
    """Send the tar of these members, which come sorted; its digest."""
    gather = _Gather(sink)
    for member in tree:
        gather.send(_header(member))
        if isinstance(member, File):
            _content(member, gather.send)
    gather.send(bytes(2 * _BLOCK))
    gather.send(bytes(-gather.sent % _RECORD))
    return gather.finish()


class _Gather:
    """Puts small pieces together: hashed and sent one by one, they cost more than their bytes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._digest = hashlib.sha256()
        self._pieces: list[bytes] = []
        self._waiting = 0
        self.sent = 0

    def send(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.sent += len(piece)
        self._waiting += len(piece)
        if self._waiting >= _PIECE:
            self._flush()

    def finish(self) -> str:
        self._flush()
        return f"sha256-{self._digest.hexdigest()}"

    def _flush(self) -> None:
        whole = b"".join(self._pieces)
        self._digest.update(whole)
        self._sink(whole)
        self._pieces.clear()
        self._waiting = 0


def leads_out(name: str, target: str) -> bool:
    """Whether a link of this name would leave the tree."""
    if target.startswith("/"):
        return True
    depth = name.count("/")
    for part in target.split("/"):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1
        if depth < 0:
            return True
    return False


def entries_of(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as scanned:
        found = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
    return iter(found)


def _member(entry: os.DirEntry[str], name: str) -> Member:
    if entry.is_symlink():
        target = os.readlink(entry.path)  # noqa: PTH115 - Path rewrites targets
        if leads_out(name, target):
            raise UnpackableError(f"the link {name} leads out of the tree (to {target})")
        return Link(name=name, target=target)
    if entry.is_dir(follow_symlinks=False):
        return Directory(name=name)
    if entry.is_file(follow_symlinks=False):
        return _file(entry, name)
    raise UnpackableError(f"{name} is neither a file nor a directory nor a link")


def _file(entry: os.DirEntry[str], name: str) -> File:
    found = entry.stat(follow_symlinks=False)
    return File(
        name=name,
        executable=bool(found.st_mode & stat.S_IXUSR),
        size=found.st_size,
        open=functools.partial(Plain, entry.path),
    )


class Plain:
    """A file with nothing around it: `FileIO` asks the kernel for twice as much."""

    __slots__ = ("_file",)

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def read(self, count: int) -> bytes:
        return os.read(self._file, count)

    def close(self) -> None:
        os.close(self._file)


def _header(member: Member) -> bytes:
    name = member.name.encode("utf-8", "surrogateescape")
    match member:
        case Directory():
            return _long(name + b"/", b"L") + _block(
                name + b"/", b"0000755", b"5", of=member.attributes
            )
        case Link():
            target = member.target.encode("utf-8", "surrogateescape")
            long = _long(target, b"K") + _long(name, b"L")
            return long + _block(name, b"0000777", b"2", link=target, of=member.attributes)
        case File():
            mode = b"0000755" if member.executable else b"0000644"
            return _long(name, b"L") + _block(
                name, mode, b"0", size=member.size, of=member.attributes
            )


def _long(name: bytes, kind: bytes) -> bytes:
    """What comes before the header of a name that does not fit into it."""
    if len(name) <= _NAME_MAX:
        return b""
    content = name + b"\0"
    block = _block(b"././@LongLink", b"0000000", kind, size=len(content))
    return block + content + bytes(-len(content) % _BLOCK)


def _block(  # noqa: PLR0913  # what a header says
    name: bytes,
    mode: bytes,
    kind: bytes,
    *,
    size: int = 0,
    link: bytes = b"",
    of: Attributes | None = None,
) -> bytes:
    owner, time, magic = _NOBODY, _NO_TIME, _GNU
    if of is not None:
        mode, time = b"%07o" % of.mode, _count(max(0, of.seconds))
        owner = _id(of.uid) + _id(of.gid)
        magic = b"ustar  \0" + _name(of.user) + _name(of.group) + bytes(_BLOCK - 329)
    before = name[:_NAME_MAX].ljust(_NAME_MAX, b"\0") + mode + b"\0" + owner + _count(size) + time
    after = kind + link[:_NAME_MAX].ljust(_NAME_MAX, b"\0") + magic
    # The checksum is taken over eight spaces in its own place.
    check = b"%06o\0 " % (sum(before) + 8 * 32 + sum(after))
    return before + check + after


def _count(number: int) -> bytes:
    return b"%011o\0" % number if number < _OCTAL_MAX else b"\x80" + number.to_bytes(11, "big")


def _id(number: int) -> bytes:
    return b"%07o\0" % number if number < 8**7 else b"\x80" + number.to_bytes(7, "big")


def _name(account: str) -> bytes:
    return account.encode("utf-8", "surrogateescape")[:31].ljust(32, b"\0")


_ZEROS = bytes(_BLOCK)
_NOBODY = b"0000000\0" * 2
_NO_TIME = b"00000000000\0"
_GNU = b"ustar  \0".ljust(_BLOCK - 257, b"\0")


def _content(member: File, send: Sink) -> None:
    left = member.size
    source = member.open()
    try:
        # One byte more than there should be: most files are read to their end by one call.
        while piece := source.read(min(left, _PIECE) + 1):
            left -= len(piece)
            if left < 0:
                raise UnpackableError(f"{member.name} became longer while it was read")
            send(piece)
            if left == 0:
                break
    finally:
        source.close()
    if left > 0:
        raise UnpackableError(f"{member.name} became shorter while it was read")
    if padding := -member.size % _BLOCK:
        send(_ZEROS[:padding])
