"""Follows a log that others write: over any number of rotations, and where it is cut off."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_BLOCK = 1 << 20
_PENDING_MAX = 1 << 20
"""A line that has not ended by then is told in parts."""


class Following:
    """Lines that come, from a place in the newest file on. `close` it."""

    def __init__(self, log: Path) -> None:
        """Begin at the end of what is there now; a log that is not there yet is read from its start."""
        self._log = log
        self._file: BinaryIO | None = None
        self._rest = b""
        self.lost = False
        """A file may have been rotated away before it was read."""
        self.begin = 0
        """Where in the newest file that is."""
        self._old: frozenset[int] = frozenset()
        """Files from before, where the newest had no name just then."""
        try:
            self._file = log.open("rb", buffering=0)
        except FileNotFoundError:
            self._old = frozenset(self._files().values())
        else:
            self.begin = self._file.seek(0, os.SEEK_END)

    def read(self) -> list[bytes]:
        """Whole lines that came since the last call, without their ends."""
        self.lost = False
        found = list(self._drain())
        while (newer := self._newer()) is not None:
            # What was written between our last read and the rotation.
            found += self._drain()
            if self._rest:
                found.append(self._rest)
                self._rest = b""
            self.close()
            self._file = newer
            found += self._drain()
        return found

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _drain(self) -> Iterator[bytes]:
        if self._file is None:
            return
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)  # cut off, and begun anew
            self._rest = b""
        while chunk := self._file.read(_BLOCK):
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            yield from whole
            if len(self._rest) > _PENDING_MAX:
                yield self._rest
                self._rest = b""

    def _newer(self) -> BinaryIO | None:
        """The file that was begun after ours; None if ours is the newest."""
        while True:
            files = self._files()
            if self._file is None:
                newer = [number for number, inode in files.items() if inode not in self._old]
            else:
                ours = os.fstat(self._file.fileno()).st_ino
                at = next((number for number, inode in files.items() if inode == ours), None)
                newer = [number for number in files if at is None or number < at]
                self.lost = self.lost or (at is None and bool(files))
            number = max(newer, default=None)
            if number is None:
                return None
            opened = self._open(number, files[number])
            if opened is not None:
                return opened

    def _files(self) -> dict[int, int]:
        """The inode of each file there is, by its number: 0 is the newest."""
        found: dict[int, int] = {}
        number = missing = 0
        # In the midst of a rotation one of them has no name.
        while missing < 2:
            try:
                found[number] = _name(self._log, number).stat().st_ino
                missing = 0
            except FileNotFoundError:
                missing += 1
            number += 1
        return found

    def _open(self, number: int, inode: int) -> BinaryIO | None:
        """None if another stands there by now: the names are looked at anew."""
        try:
            file = _name(self._log, number).open("rb", buffering=0)
        except FileNotFoundError:
            return None
        if os.fstat(file.fileno()).st_ino == inode:
            return file
        file.close()
        return None


def _name(log: Path, number: int) -> Path:
    return log if number == 0 else log.with_name(f"{log.name}.{number}")
