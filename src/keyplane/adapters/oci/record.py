"""What Keyplane itself put into a layout, and when: nothing else is ever taken out of it again."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from keyplane.adapters.oci.descriptors import is_archive_digest
from keyplane.model.names import Digest

NAME = "keyplane.json"
_DIGESTS = re.compile(rb"sha256:([0-9a-f]{64})", re.ASCII)
_DOCUMENT_MAX = 4 << 20
"""Manifests and indexes are kilobytes; what is larger is a layer, and names nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    made: dict[Digest, int] = field(default_factory=dict[Digest, int])
    """When each archive was packed, in milliseconds since 1970."""
    automatic: bool = False
    """Whether what nothing names goes after each apply."""

    def encode(self) -> bytes:
        said = {"automatic": self.automatic, "made": dict(sorted(self.made.items()))}
        return json.dumps(said, indent=1).encode()


def read(path: Path) -> Record:
    """One that cannot be read names nothing: then nothing is taken out."""
    try:
        said = cast("dict[str, Any]", json.loads((path / NAME).read_bytes()))
        made = {
            Digest(name): at
            for name, at in said["made"].items()
            if is_archive_digest(name) and isinstance(at, int)
        }
        return Record(made=made, automatic=said["automatic"] is True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Record()


def named_by(documents: Iterable[bytes], blobs: Path) -> set[str]:
    """Every blob that is reached from these documents, by its 64 digits."""
    found: set[str] = set()
    waiting = list(documents)
    while waiting:
        for digits in map(bytes.decode, _DIGESTS.findall(waiting.pop())):
            if digits in found:
                continue
            found.add(digits)
            path = blobs / digits
            if path.is_file() and path.stat().st_size <= _DOCUMENT_MAX:
                waiting.append(path.read_bytes())
    return found
