"""Reads a compressed tar whose bytes are not trusted: pieces, headers, and the digest of all.

Takes what our packer writes: GNU's long names, and neither pax headers nor sparse files.
"""

import hashlib
import queue
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import zstandard

BLOCK = 512
_PIECE = 4 << 20
"""Decompressed at once: with four such pieces waiting, hashing and writing overlap."""
_WAITING = 4
_WINDOW_MAX = 1 << 27
"""zstd's own bound for what a decompressor should take without being told more."""
_NAME_MAX = 65_536


class UnsafeArchiveError(Exception):
    """The tar holds what is never unpacked, or is no tar; the message says what."""

    digest: str | None = None
    """Of the whole tar, where it was read to its end all the same."""


class TornArchiveError(Exception):
    """The compressed stream is damaged, or ends before its end."""


@dataclass(slots=True)
class Header:
    name: bytes
    kind: bytes
    size: int
    executable: bool
    link: bytes
    block: bytes
    """As it was read; what only volumes keep is looked up where it is wanted."""

    @property
    def mode(self) -> int:
        return _number(self.block[100:108])

    @property
    def uid(self) -> int:
        return _number(self.block[108:116])

    @property
    def gid(self) -> int:
        return _number(self.block[116:124])

    @property
    def user(self) -> bytes:
        """Empty where the archive keeps no owners."""
        return self.block[265:297].partition(b"\0")[0]

    @property
    def group(self) -> bytes:
        return self.block[297:329].partition(b"\0")[0]

    @property
    def seconds(self) -> int:
        return _number(self.block[136:148])


class Stream:
    """Decompresses and hashes in a thread of its own, a few pieces ahead."""

    def __init__(self, source: IO[bytes], bytes_max: int) -> None:
        """More than `bytes_max` is no archive: a few bytes may say that they are terabytes."""
        self._source = source
        self._bytes_left = bytes_max
        self._hash = hashlib.sha256()
        self._pieces: queue.Queue[bytes | BaseException] = queue.Queue(_WAITING)
        self._abandoned = False
        self._piece = b""
        self._at = 0
        self._ended = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="unpack", daemon=True)
        self._thread.start()

    def take(self, count: int) -> bytes:
        """So many bytes, or fewer at the end."""
        end = self._at + count
        if end <= len(self._piece):
            taken = self._piece[self._at : end]
            self._at = end
            return taken
        return b"".join(self.parts(count))

    def parts(self, count: int) -> Iterator[memoryview]:
        """The next bytes as they lie; fewer at the end."""
        while count > 0 and (self._at < len(self._piece) or self._next()):
            part = memoryview(self._piece)[self._at : self._at + count]
            self._at += len(part)
            count -= len(part)
            yield part

    def digest(self) -> str:
        """Of everything; what was not taken yet is passed over."""
        while self._next():
            pass
        return f"sha256-{self._hash.hexdigest()}"

    def abandon(self) -> None:
        self._abandoned = True
        while self._next_or_error():
            pass

    def _next_or_error(self) -> bool:
        try:
            return self._next()
        except Exception:  # noqa: BLE001 - another error is being told already
            return False

    def _next(self) -> bool:
        if self._failure is not None:
            raise self._failure
        if self._ended:
            return False
        piece = self._pieces.get()
        if isinstance(piece, BaseException):
            self._ended = True
            self._failure = piece
            raise piece
        self._piece, self._at = piece, 0
        self._ended = not piece
        return not self._ended

    def _count(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise UnsafeArchiveError("more bytes than any archive may have")

    def _run(self) -> None:
        try:
            decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_MAX)
            with decompressor.stream_reader(self._source, read_size=1 << 20) as reader:
                while not self._abandoned and (piece := reader.read(_PIECE)):
                    self._count(len(piece))
                    self._hash.update(piece)
                    self._pieces.put(piece)
            self._pieces.put(b"")
        except zstandard.ZstdError as error:
            self._pieces.put(TornArchiveError(str(error)))
        except BaseException as error:  # noqa: BLE001 - told in the thread that takes pieces
            self._pieces.put(error)


def headers(stream: Stream) -> Iterator[Header]:
    long_name = long_link = None
    while True:
        block = stream.take(BLOCK)
        if len(block) < BLOCK:
            raise UnsafeArchiveError("ends without the mark of its end")
        if block.count(0) == BLOCK:
            return
        header = _header(block)
        if header.kind in (b"L", b"K"):  # GNU's way to say what is longer than 100 bytes
            if header.size > _NAME_MAX:
                raise UnsafeArchiveError("a name is too long")
            text = stream.take(header.size).rstrip(b"\0")
            stream.take(-header.size % BLOCK)
            if header.kind == b"L":
                long_name = text
            else:
                long_link = text
            continue
        header.name = header.name if long_name is None else long_name
        header.link = header.link if long_link is None else long_link
        long_name = long_link = None
        if header.kind not in (b"0", b"\0") and header.size:
            raise UnsafeArchiveError(f"{shown(header.name)} has content, and is no file")
        yield header


def _header(block: bytes) -> Header:
    if _number(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * 32:
        raise UnsafeArchiveError("the checksum of a header is wrong")
    name = block[:100].partition(b"\0")[0]
    if block[257:263] == b"ustar\0":
        prefix = block[345:500].partition(b"\0")[0]
        name = prefix + b"/" + name if prefix else name
    return Header(
        name=name,
        kind=block[156:157],
        size=_number(block[124:136]),
        executable=bool(_number(block[100:108]) & stat.S_IXUSR),
        link=block[157:257].partition(b"\0")[0],
        block=block,
    )


def _number(field: bytes) -> int:
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    try:
        return int(field.strip(b"\0 ") or b"0", 8)
    except ValueError:
        raise UnsafeArchiveError("a number in a header is none") from None


def shown(name: bytes) -> str:
    return name[:200].decode("utf-8", "backslashreplace")
