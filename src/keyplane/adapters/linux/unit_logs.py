"""Reads what shims wrote: lines of a time and a text, over rotations."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

from keyplane.adapters.linux.log_following import Following
from keyplane.model.host import LogLine

_BLOCK = 65_536
LOOK_S = 0.1
"""How often a followed log is looked at: a person does not see the difference."""


def last_lines(log: Path, count: int, end: int | None = None) -> list[LogLine]:
    """The last lines, oldest first; of the newest file only what stands before `end`."""
    found: list[LogLine] = []
    if count <= 0:
        return found
    for text in backwards(log, end):
        found.append(parse(text))
        if len(found) == count:
            break
    return found[::-1]


def mark(log: Path) -> str:
    """Where a log ends now, for `lines_of_life`."""
    try:
        place = log.stat()
    except OSError:
        return ""
    return f"{place.st_ino} {place.st_size}"


def lines_of_life(log: Path, begin: str, count: int) -> list[LogLine]:
    """The last lines after a mark, oldest first; the last of all where there is no mark."""
    inode, _, offset = begin.partition(" ")
    if not offset.isdecimal():
        return last_lines(log, count)
    found: list[LogLine] = []
    for number in range(1 << 10):
        path = log if number == 0 else log.with_name(f"{log.name}.{number}")
        try:
            with path.open("rb") as file:
                place = os.fstat(file.fileno())
                is_marked = str(place.st_ino) == inode
                first = int(offset) if is_marked else 0
                for text in _lines_backwards(file.fileno(), place.st_size, first):
                    found.append(parse(text))
                    if len(found) == count:
                        return found[::-1]
        except FileNotFoundError:
            break
        if is_marked:
            break
    return found[::-1]


def lines_since(log: Path, since_ms: int, most: int) -> list[LogLine]:
    """The last lines that are not older, `most` of them, oldest first."""
    since = datetime.fromtimestamp(since_ms / 1000, UTC)
    bound = since.strftime("%Y-%m-%dT%H:%M:%S.") + f"{since_ms % 1000:03d}Z"
    found: list[LogLine] = []
    for line in map(parse, backwards(log)):
        if line.at < bound or len(found) == most:
            break
        found.append(line)
    return found[::-1]


async def follow(log: Path, lines: int) -> AsyncIterator[LogLine]:
    """The last lines, and each that comes, for ever."""
    following = Following(log)
    try:
        # Lines are read up to where we begin to follow, so that none is missed or told twice.
        for line in last_lines(log, lines, following.begin):
            yield line
        while True:
            for text in following.read():
                yield parse(text)
            await asyncio.sleep(LOOK_S)
    finally:
        following.close()


def parse(text: bytes) -> LogLine:
    at, _, words = text.decode("utf-8", "replace").partition(" ")
    return LogLine(at=at, text=words)


def backwards(log: Path, newest_end: int | None = None) -> Iterator[bytes]:
    """Every line, the newest first; of the newest file only what stands before `newest_end`."""
    read: set[int] = set()
    number = 0
    while True:
        path = log if number == 0 else log.with_name(f"{log.name}.{number}")
        number += 1
        try:
            with path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode in read:
                    continue  # it was rotated to here since
                read.add(inode)
                end = file.seek(0, os.SEEK_END)
                if number == 1 and newest_end is not None:
                    end = min(end, newest_end)
                yield from _lines_backwards(file.fileno(), end)
        except FileNotFoundError:
            if number > 1:
                return


def _lines_backwards(file: int, end: int, begin: int = 0) -> Iterator[bytes]:
    rest = b""
    while end > begin:
        start = max(begin, end - _BLOCK)
        first, *whole = (os.pread(file, end - start, start) + rest).split(b"\n")
        yield from (text for text in reversed(whole) if text)
        rest, end = first, start
    if rest:
        yield rest
