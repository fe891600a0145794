"""What parts of a control plane wrote about themselves: their own journal, the bus's, tracebacks.

A journal's line is `TIME key=value …`. nats-server has its own form, `[PID] DATE TIME [INF] …`; and
a line without a time belongs to the one before it.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from keyplane.model.host import LogLine

_OURS = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (.*)", re.ASCII | re.DOTALL)
_NATS = re.compile(
    r"\[\d+\] (\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d\.\d{3})\d* (.*)", re.ASCII | re.DOTALL
)
_KEY = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)(?: |$)', re.ASCII)
_COPY = 1 << 20


def parse(text: bytes) -> LogLine:
    """`at` is empty where the line has no time."""
    line = text.decode("utf-8", "replace")
    if found := _OURS.fullmatch(line):
        return LogLine(at=found[1], text=found[2])
    if found := _NATS.fullmatch(line):
        return LogLine(at=f"{found[1]}-{found[2]}-{found[3]}T{found[4]}Z", text=found[5])
    return LogLine(at="", text=line)


def timed(lines: Iterable[LogLine], at: str = "") -> Iterator[LogLine]:
    """Each with the time of the one before it where it has none of its own."""
    for line in lines:
        at = line.at or at
        yield line if line.at else LogLine(at=at, text=line.text)


def keys(text: str) -> dict[str, str]:
    """The keys of a journal's line; none of anything else."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        key = _KEY.match(text, at)
        if key is None:
            return {}
        value = key[2]
        try:
            found[key[1]] = json.loads(value) if value.startswith('"') else value
        except ValueError:
            return {}
        at = key.end()
    return found


def bound(log: Path, bytes_max: int) -> None:
    """Begin a log anew that has grown past so many bytes; its last content is kept beside it.

    Its writers go on in the same file, and are not told: what one of them writes in the instant
    between the last look and the cut is lost.
    """
    try:
        size = log.stat().st_size
        if size <= bytes_max:
            return
        kept = log.with_name(f"{log.name}.1")
        draft = log.with_name(f".{log.name}.new")
        with log.open("r+b") as source:
            try:
                _copy_end(source, draft, 2 * bytes_max)
                draft.replace(kept)
            except OSError:
                draft.unlink(missing_ok=True)
                if size <= 2 * bytes_max:
                    return  # a full disk: this much stays until there is room
            source.truncate(0)
    except OSError:
        return


def _copy_end(source: BinaryIO, target: Path, most: int) -> None:
    source.seek(max(0, source.seek(0, os.SEEK_END) - most))
    with target.open("wb") as copy:
        while piece := source.read(_COPY):
            copy.write(piece)
