"""Writes the text of a revision back as a directory, beside what people edited there.

Each file is judged by three texts: the one that the directory descends from, the one that stands in
it, and the one that is written. What was edited here alone stays; what was edited there alone is
taken; a file that was edited on both sides is merged line by line, or nothing is written at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keyplane.adapters import directory, revision
from keyplane.documents import comparing


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    executable: bool


@dataclass(frozen=True, slots=True)
class _Link:
    target: str


@dataclass(frozen=True, slots=True)
class _Folder:
    """With nothing in it."""


_Node = _File | _Link | _Folder


class ExportRefusedError(Exception):
    """Nothing was written; the paths are of what stands in the way."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__(", ".join(paths))
        self.paths = paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    written: tuple[str, ...]
    removed: tuple[str, ...]
    merged: tuple[str, ...]
    """Written with the edits of both sides."""
    kept: tuple[str, ...]
    """Edited or removed here, and left so."""


def export(
    path: Path, files: Mapping[str, bytes], base: Mapping[str, bytes] | None, *, force: bool
) -> Exported:
    """Make a directory the text of a revision; `base` is the one that it descends from, if any.

    With `force` what stands in the way is written over. Raises ExportRefusedError, and
    `directory.DirectoryUnreadableError`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        found = _nodes(directory.read_revision(path))
        made, done = _joined(found, _nodes(base or {}), _nodes(files), force=force)
        _write(path, found, made)
    except OSError as error:
        raise directory.DirectoryUnreadableError(
            f"{error.filename or path}: {error.strerror}"
        ) from error
    return done


def _nodes(files: Mapping[str, bytes]) -> dict[str, _Node]:
    shape = revision.read_shape(files)
    found: dict[str, _Node] = {
        name: _File(data, name in shape.executable)
        for name, data in files.items()
        if name != revision.SHAPE
    }
    found.update({name: _Link(target) for name, target in shape.links.items()})
    found.update({name: _Folder() for name in shape.empty})
    return found


def _joined(
    found: Mapping[str, _Node],
    base: Mapping[str, _Node],
    wanted: Mapping[str, _Node],
    *,
    force: bool,
) -> tuple[dict[str, _Node], Exported]:
    made: dict[str, _Node] = {}
    written: list[str] = []
    removed: list[str] = []
    merged: list[str] = []
    kept: list[str] = []
    refused: list[str] = []
    for name in sorted({*found, *base, *wanted}):
        here, before, there = found.get(name), base.get(name), wanted.get(name)
        result = there
        if here == there:
            pass
        elif before == there and not (force and there is not None):
            result = here
            kept.append(name)
        elif here == before or force:
            (removed if there is None else written).append(name)
        elif (both := _merged(before, here, there)) is not None:
            result = both
            merged.append(name)
        else:
            refused.append(name)
        if result is not None:
            made[name] = result
    if refused:
        raise ExportRefusedError(tuple(refused))
    done = Exported(
        written=tuple(written), removed=tuple(removed), merged=tuple(merged), kept=tuple(kept)
    )
    return made, done


def _merged(before: _Node | None, here: _Node | None, there: _Node | None) -> _Node | None:
    if not (isinstance(before, _File) and isinstance(here, _File) and isinstance(there, _File)):
        return None
    data = comparing.merge(before.data, here.data, there.data)
    return None if data is None else _File(data, there.executable)


def _write(root: Path, found: Mapping[str, _Node], made: Mapping[str, _Node]) -> None:
    """Bring the directory from what was found to what is wanted; other files are not touched."""
    changed = [name for name in sorted({*found, *made}) if found.get(name) != made.get(name)]
    for name in changed:
        _inside(root, name)  # a name that leads out is refused before anything is done
    for name in changed:
        at = _inside(root, name)
        if name in found and (name not in made or type(found[name]) is not type(made[name])):
            at.rmdir() if isinstance(found[name], _Folder) else at.unlink()
            _remove_empty(root, at.parent)
    for name in changed:
        if name in made:
            _put(root, name, made[name])


def _put(root: Path, name: str, node: _Node) -> None:
    at = _inside(root, name)
    at.parent.mkdir(parents=True, exist_ok=True)
    match node:
        case _Folder():
            at.mkdir(exist_ok=True)
        case _Link():
            at.unlink(missing_ok=True)
            at.symlink_to(node.target)
        case _File():
            draft = at.with_name(f".{at.name}.keyplane-new")
            draft.write_bytes(node.data)
            draft.chmod(0o755 if node.executable else 0o644)
            draft.replace(at)


def _remove_empty(root: Path, folder: Path) -> None:
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _inside(root: Path, name: str) -> Path:
    """The place of a revision's file; one that leads out of the directory is refused."""
    parts = name.split("/")
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise directory.DirectoryUnreadableError(
            f"the revision holds a file {name!r}, which leads out of it"
        )
    at = root
    for part in parts[:-1]:
        at = at / part
        if at.is_symlink():
            raise directory.DirectoryUnreadableError(
                f"{at} is a link: nothing is written through it"
            )
    return root.joinpath(*parts)
