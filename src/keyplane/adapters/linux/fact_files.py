"""Facts that people and modules add: files below one folder, each named by its fact.

A file of the folder itself, or of a folder in it: a module declares such a folder as its own, and
its unit writes there. What is written under another name and renamed is never seen half done.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from keyplane import wire
from keyplane.adapters.linux import walk
from keyplane.journal import Journal
from keyplane.ports.errors import PortError

log = Journal(__name__.removeprefix("keyplane."))

Json = Any

FOLDER = "/etc/keyplane/facts.d"
FILES_MAX = 500
"""Of all folders together; half of what a machine may say."""
BYTES_MAX = 16 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FactFiles:
    """Those of one machine, whose declared paths stand below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._told: frozenset[str] = frozenset()
        """Problems that were logged already."""

    def are_there(self) -> bool:
        """False where a read is a few calls; what is wrong with the folder is for a read to tell."""
        try:
            with walk.parent_of(self._root, f"{FOLDER}/x", make=False) as place:
                return place is not None
        except (OSError, PortError):
            return True

    def read(self) -> dict[str, Json]:
        """By name; of two files with one name the first by its path counts."""
        found: dict[str, Json] = {}
        problems: set[str] = set()
        try:
            with walk.parent_of(self._root, f"{FOLDER}/x", make=False) as place:
                if place is not None:
                    _read_folder(place.directory, FOLDER, found, problems)
        except (OSError, PortError) as error:
            problems.add(f"{FOLDER}: {error}")
        for problem in sorted(problems - self._told):
            log.warning("a fact cannot be read", problem=problem)
        self._told = frozenset(problems)
        return found


def _read_folder(
    directory: int, path: str, found: dict[str, Json], problems: set[str], *, deeper: bool = True
) -> None:
    # A descriptor that only names a folder cannot be listed.
    listed = os.open(".", _DIRECTORY, dir_fd=directory)
    try:
        for name in sorted(os.listdir(listed)):  # noqa: PTH208 - of a descriptor
            if not _NAME.fullmatch(name):
                continue
            where = f"{path}/{name}"
            with suppress(FileNotFoundError):
                kind = os.stat(name, dir_fd=listed, follow_symlinks=False).st_mode
                if stat.S_ISDIR(kind) and deeper:
                    below = os.open(name, _DIRECTORY, dir_fd=listed)
                    try:
                        _read_folder(below, where, found, problems, deeper=False)
                    finally:
                        os.close(below)
                elif stat.S_ISREG(kind):
                    for problem in _take(listed, name, where, found):
                        problems.add(problem)
                else:
                    problems.add(f"{where} is no regular file")
    except OSError as error:
        problems.add(f"{path}: {error.strerror or error}")
    finally:
        os.close(listed)


def _take(directory: int, name: str, where: str, found: dict[str, Json]) -> Iterator[str]:
    """Read one; yields what is wrong with it."""
    if name in found:
        yield f"{where}: the fact {name} is said in another file already"
        return
    if len(found) >= FILES_MAX:
        yield f"{where}: there are more than {FILES_MAX}"
        return
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(name, flags, dir_fd=directory)
    except OSError as error:
        yield f"{where}: {error.strerror or error}"
        return
    try:
        content = os.read(file, BYTES_MAX + 1)
    except OSError as error:
        yield f"{where}: {error.strerror or error}"
        return
    finally:
        os.close(file)
    if len(content) > BYTES_MAX:
        yield f"{where} is larger than {BYTES_MAX} bytes"
        return
    value = parsed(content)
    fault = None if value is None else wire.fact_fault(name, value)
    if fault is not None:
        yield f"{where} {fault}"
    elif value is not None:
        found[name] = value


def parsed(content: bytes) -> Json:
    """A value of JSON as what it is, anything else as a text; None for nothing at all."""
    text = content.decode("utf-8", "replace").strip()
    try:
        value: Json = msgspec.json.decode(text.encode())
    except (msgspec.MsgspecError, RecursionError):
        return text or None
    if isinstance(value, list):
        listed = cast("list[Json]", value)
        return listed if all(isinstance(each, str) for each in listed) else text
    return text if isinstance(value, dict) else value
