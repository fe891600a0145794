"""The whole text of a fleet as a map of files: what is recorded, and planned from again.

A map of bytes says nothing of executable bits, links and empty folders, which digests of archives
depend on; one more file says it, in a place where no fleet has files of its own.
"""

import io
import json
import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keyplane.adapters.oci import pack as tars
from keyplane.documents.text import Unreadable

SHAPE = ".keyplane/tree.json"
"""The file of the revision that holds what bytes cannot say."""
LEFT_OUT = (".keyplane", ".git")
"""Folders at the top that are no text of the fleet: its state, and its history."""


def shape_file(
    executable: list[str], links: Mapping[str, str], empty: list[str]
) -> dict[str, bytes]:
    """The file for `SHAPE`; none where there is nothing to say."""
    said = {"empty": empty, "executable": executable, "links": dict(links)}
    if not any(said.values()):
        return {}
    return {SHAPE: json.dumps(said, sort_keys=True).encode()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the bytes of a revision's files do not say."""

    executable: frozenset[str]
    links: Mapping[str, str]
    empty: tuple[str, ...]


def read_shape(files: Mapping[str, bytes]) -> Shape:
    said: dict[str, Any] = json.loads(files.get(SHAPE, b"{}"))
    return Shape(
        executable=frozenset(said.get("executable", ())),
        links=said.get("links", {}),
        empty=tuple(said.get("empty", ())),
    )


class RevisionTree:
    """A recorded revision, read as `documents.reading.Tree`."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        shape = read_shape(files)
        self._files = {path: data for path, data in files.items() if path != SHAPE}
        self._executable = shape.executable
        self._links = shape.links
        self._folders: dict[str, set[str]] = {"": set()}
        for path in (*self._files, *self._links):
            self._enter(path)
        for folder in shape.empty:
            self._enter(folder)
            self._folders.setdefault(folder, set())

    def names(self, folder: str) -> tuple[str, ...] | Unreadable:
        at = self._target(folder.rstrip("/"))
        if isinstance(at, Unreadable):
            return at
        if at in self._files:
            return Unreadable("not a directory")
        return tuple(sorted(self._folders.get(at, ())))

    def read(self, path: str) -> bytes | Unreadable | None:
        at = self._target(path)
        if isinstance(at, Unreadable):
            return at
        if at in self._folders:
            return Unreadable("a directory, not a file")
        return self._files.get(at)

    def shipped(self, folder: str, path: str) -> bytes | Unreadable:
        at = self._inside(folder, path)
        if isinstance(at, Unreadable):
            return at
        if at in self._folders:
            return Unreadable(f"{path} is a directory, not a file")
        return self._files.get(at, Unreadable(f"there is no file {path}"))

    def digest(self, folder: str, path: str, without: Collection[str] = ()) -> str | Unreadable:
        return self.pack(folder, path, _nowhere, without)

    def pack(
        self, folder: str, path: str, sink: tars.Sink, without: Collection[str] = ()
    ) -> str | Unreadable:
        """Send the deterministic tar of a directory to the sink; its digest."""
        at = self._inside(folder, path)
        if isinstance(at, Unreadable):
            return at
        if at not in self._folders:
            return Unreadable(f"there is no directory {path}")
        try:
            members = self._members(at, "")
            return tars.write((one for one in members if one.name not in without), sink)
        except tars.UnpackableError as error:
            return Unreadable(str(error))

    def _enter(self, path: str) -> None:
        while path:
            folder, _, name = path.rpartition("/")
            self._folders.setdefault(folder, set()).add(name)
            path = folder

    def _target(self, path: str) -> str | Unreadable:
        """The path with its links followed; a link has to lead to something."""
        at = self._followed(path)
        dangles = path in self._links and at not in self._files and at not in self._folders
        if at is None or dangles:
            return Unreadable("a link that leads nowhere in the fleet directory")
        return at

    def _followed(self, path: str) -> str | None:
        """The path with its links followed; None if they lead out, or round in a circle."""
        for _ in range(8):
            parts = path.split("/")
            for end in range(1, len(parts) + 1):
                head = "/".join(parts[:end])
                if head in self._links:
                    target = self._links[head]
                    if tars.leads_out(head, target):
                        return None
                    base = posixpath.join(posixpath.dirname(head), target)
                    path = posixpath.normpath(posixpath.join(base, *parts[end:]))
                    break
            else:
                return path
        return None

    def _inside(self, folder: str, path: str) -> str | Unreadable:
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts:
            return Unreadable(f"{path} leads out of the module")
        at = self._followed(folder)
        if at is None:
            return Unreadable(f"{folder} is a link that leads out of the fleet directory")
        for part in parts:
            at = f"{at}/{part}"
            if at in self._links:
                return Unreadable(f"{path} is reached by a link")
        return at

    def _members(self, folder: str, prefix: str) -> Iterator[tars.Member]:
        for base in sorted(
            self._folders[folder], key=lambda name: name.encode(errors="surrogateescape")
        ):
            at, name = f"{folder}/{base}", prefix + base
            if at in self._links:
                if tars.leads_out(name, self._links[at]):
                    message = f"the link {name} leads out of the tree (to {self._links[at]})"
                    raise tars.UnpackableError(message)
                yield tars.Link(name=name, target=self._links[at])
            elif at in self._folders:
                yield tars.Directory(name=name)
                yield from self._members(at, name + "/")
            else:
                data = self._files[at]
                yield tars.File(
                    name=name,
                    executable=at in self._executable,
                    size=len(data),
                    open=lambda data=data: io.BytesIO(data),
                )


def _nowhere(piece: bytes) -> None:
    """Only the digest is wanted."""
