"""Files of mode 0600, whole and durable or not there at all."""

import contextlib
import os
import secrets
from pathlib import Path


def create(path: Path, content: bytes) -> None:
    """Make the file, unless somebody else made it meanwhile: then theirs stays."""
    draft = _write_draft(path, content)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    _sync_directory(path.parent)


def replace(path: Path, content: bytes) -> None:
    draft = _write_draft(path, content)
    draft.replace(path)
    _sync_directory(path.parent)


def _write_draft(path: Path, content: bytes) -> Path:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as sink:
        sink.write(content)
        sink.flush()
        os.fsync(sink.fileno())
    return draft


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
