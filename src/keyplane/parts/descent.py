"""What a fleet directory remembers of the revision that its text was made from.

A small file beside the directory's state, written by `apply` and `export`. Without it, or with
one that cannot be read, a directory knows nothing of what others edited.
"""

from pathlib import Path

import msgspec

from keyplane.parts.change_messages import Descent
from keyplane.parts.state_dir import StateDir

_NAME = "base.json"


class _Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    revision: int | None = None
    digest: str = ""
    sent: str | None = None
    control: str | None = None
    """The fleet directory whose control plane this text is of, where that is another."""


def read(state: StateDir) -> Descent | None:
    found = _read(state)
    if found.revision is None:
        return None
    at_ms = int((state.root / _NAME).stat().st_mtime * 1000)
    return Descent(revision=found.revision, digest=found.digest, sent=found.sent, at_ms=at_ms)


def control(state: StateDir) -> Path | None:
    """The fleet directory that the control plane of an exported text runs in."""
    found = _read(state).control
    return None if found is None else Path(found)


def write(state: StateDir, made: Descent, *, of: StateDir, sent: str | None = None) -> None:
    """The directory's text is of that revision, of that control plane.

    `sent` is the digest of the text that is just being sent: the next revision may be that.
    """
    where = None if of == state else str(of.fleet)
    base = _Base(revision=made.revision, digest=made.digest, sent=sent, control=where)
    state.root.mkdir(exist_ok=True, mode=0o711)
    (state.root / ".gitignore").write_text("*\n", encoding="utf-8")
    draft = state.root / f"{_NAME}.new"
    draft.write_bytes(msgspec.json.encode(base))
    draft.replace(state.root / _NAME)


def _read(state: StateDir) -> _Base:
    try:
        return msgspec.json.decode((state.root / _NAME).read_bytes(), type=_Base)
    except (OSError, msgspec.MsgspecError):
        return _Base()
