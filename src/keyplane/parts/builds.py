"""What of its module an entry runs: its version, and a digest of all that was made for it."""

import hashlib
from collections.abc import Iterable, Mapping

from keyplane.model.declaration import Declaration
from keyplane.model.names import Digest, EntryId
from keyplane.ports.inventory import Build
from keyplane.rollout.planned import Planned

SHOWN = 8
"""Of a digest, for people: a module has some tens of builds."""


def carried(declaration: Declaration) -> dict[EntryId, Build]:
    """By entry of a declaration."""
    return {
        name: Build(
            entry.module,
            entry.version,
            _digest(
                [
                    *(unit.archive for unit in entry.units.values() if unit.archive is not None),
                    *(archive.digest for archive in entry.archives.values()),
                ]
            ),
        )
        for name, entry in declaration.entries.items()
    }


def of(planned: Planned) -> Build:
    """Of an entry of a plan: the same as once it is declared."""
    entry = planned.entry
    return Build(entry.module, entry.version, _digest(entry.artifacts.values()))


def told(build: Build) -> str:
    """`web 2 (build 1a2b3c4d)`, and without the latter where nothing is made for it."""
    if build.digest == _digest(()):
        return f"{build.module} {build.version}"
    return f"{build.module} {build.version} (build {build.digest[7 : 7 + SHOWN]})"


def changes(before: Mapping[EntryId, Build], after: Mapping[EntryId, Build]) -> frozenset[EntryId]:
    """Entries that run another build afterwards, or none did before."""
    return frozenset(entry for entry, build in after.items() if before.get(entry) != build)


def _digest(parts: Iterable[str]) -> Digest:
    text = "\n".join(sorted(set(parts)))
    return Digest(f"sha256-{hashlib.sha256(text.encode()).hexdigest()}")
