"""Contributions files in the middle of a rollout: of base and target together.

A provider that switches learns of its new consumers before they switch, and keeps the old ones
until they have switched too: nobody loses an access that it still uses. A row of both is the
target's. The step that tightens an entry gives it the target's file alone.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from keyplane.model.names import Digest

Json = Any


class _Contributions(msgspec.Struct, frozen=True, omit_defaults=True):
    consumers: list[dict[str, Json]] = []


@dataclass(frozen=True, slots=True)
class Merged:
    digest: Digest
    content: bytes | None = None
    """None where it is a file that either plan has already."""


def merge(base: Digest, target: Digest, contents: Mapping[Digest, bytes]) -> Merged:
    """The file that grants what either grants.

    One that cannot be read as contributions is taken as it is in the target: a file that
    something else wrote has no rows to keep.
    """
    old, new = _rows(contents.get(base)), _rows(contents.get(target))
    if old is None or new is None:
        return Merged(target)
    rows = old | new
    if rows == new:
        return Merged(target)
    if rows == old:
        return Merged(base)
    content = msgspec.json.encode(
        {"consumers": [rows[name] for name in sorted(rows)]}, order="sorted"
    )
    return Merged(Digest("sha256-" + hashlib.sha256(content).hexdigest()), content)


def _rows(content: bytes | None) -> dict[tuple[str, ...], dict[str, Json]] | None:
    if content is None:
        return None
    try:
        read = msgspec.json.decode(content, type=_Contributions)
    except msgspec.DecodeError:
        return None
    return {
        tuple(str(row.get(name, "")) for name in ("instance", "role", "slot", "machine")): row
        for row in read.consumers
    }
