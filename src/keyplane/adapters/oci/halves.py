"""What a packer has begun in a layout, and what is left of it when the packer was killed.

Its temporary file is its own by a lock, for as long as it lives. A blob stands in its place under
two names, the temporary one too, until an index names it: so whoever finds a temporary file with
no lock can tell which blob was put in place for it and is named by nothing.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def place(made: Path, blob: Path) -> None:
    """Put a whole file in its place, and keep its temporary name where the disk has hard links."""
    try:
        os.link(made, blob)
    except OSError:  # one is there, damaged perhaps; or no hard links
        made.replace(blob)


def clear(temporary: Path, blobs: Path, reached: Callable[[], set[str]]) -> None:
    """Take away what dead packers left. Under the layout's lock.

    `reached` gives the blobs that the index names, by their digits.
    """
    for left in temporary.iterdir():
        with contextlib.suppress(OSError):
            file = os.open(left, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                take_back(file, blobs, reached)
                left.unlink()
            finally:
                os.close(file)


def take_back(file: int, blobs: Path, reached: Callable[[], set[str]]) -> None:
    """Take away the blob that was put in place of an open temporary file. Under the layout's lock."""
    seen = os.fstat(file)
    if seen.st_nlink == 1:  # it has its temporary name alone
        return
    with os.scandir(blobs) as found:
        placed = [each for each in found if each.inode() == seen.st_ino]
    named = reached()
    for each in placed:
        if each.name not in named:
            Path(each.path).unlink()
