"""From entries of a plan to what one machine is told: everything resolved, nothing left to choose.

Where an agent of this release cannot run something, the answer is rows that name it; an entry is
never declared in part, as what is left out would be taken away.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UnsetType

from keyplane.model.declaration import (
    Declaration,
    DeclaredArchive,
    DeclaredDirectory,
    DeclaredEntry,
    DeclaredFile,
    OfferNumber,
)
from keyplane.model.diagnostic import Diagnostic, Severity, in_order
from keyplane.model.names import Digest, EntryId, MachineName, UnitName, split_entry
from keyplane.model.plan import Entry
from keyplane.rollout import claims, declaring_units, declaring_values
from keyplane.rollout.declaring_units import refusal
from keyplane.rollout.planned import Planned

Json = Any

_GRANTS_MODE, _GRANTS_MODE_SHARED = "0400", "0444"
"""Readable by its one account; by all if the units have several, as no secret stands in it."""
_VOLUME_MODE, _VOLUME_MODE_SHARED = "0700", "0755"
"""Databases refuse a directory that others can read; units of several accounts have to get in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why there is no declaration."""

    rows: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A declared entry, and the bytes of files whose text stands in the plan itself."""

    entry: DeclaredEntry
    contents: Mapping[Digest, bytes]
    rows: tuple[Diagnostic, ...]
    """Warnings: what is done in a plainer way than was asked."""


@dataclass(slots=True)
class _Draft:
    """An entry in the making: what it puts on the machine besides its units."""

    entry_id: EntryId
    entry: Entry
    owner: str | None
    shared: bool
    files: dict[str, DeclaredFile] = field(default_factory=dict[str, DeclaredFile])
    directories: dict[str, DeclaredDirectory] = field(default_factory=dict[str, DeclaredDirectory])
    archives: dict[str, DeclaredArchive] = field(default_factory=dict[str, DeclaredArchive])
    texts: dict[Digest, bytes] = field(default_factory=dict[Digest, bytes])
    rows: list[Diagnostic] = field(default_factory=list[Diagnostic])


def declare(
    machine: MachineName,
    offer: OfferNumber,
    generation: Digest,
    entries: Mapping[EntryId, Planned],
    contents: Mapping[Digest, bytes],
) -> Declaration | Refused:
    """All that the machine is to be. Entries of other machines are passed over.

    It holds just the contents that it names. Contents that are nowhere to be had are refused.
    """
    here = [entry for entry in sorted(entries) if split_entry(entry)[2] == machine]
    declared: dict[EntryId, DeclaredEntry] = {}
    named: dict[Digest, bytes] = {}
    rows: list[Diagnostic] = []
    for entry_id in here:
        made = declare_entry(entry_id, entries[entry_id])
        if isinstance(made, Refused):
            rows.extend(made.rows)
            continue
        declared[entry_id] = made.entry
        for path, digest in _named(made.entry).items():
            content = made.contents.get(digest, contents.get(digest))
            if content is None:
                rows.append(_absent(entry_id, path, digest))
            else:
                named[digest] = content
    if rows:
        return Refused(rows=tuple(in_order(rows)))
    return Declaration(
        machine=machine,
        offer=offer,
        generation=generation,
        entries=declared,
        contents=named,
    )


def declare_entry(entry_id: EntryId, planned: Planned) -> Made | Refused:
    entry = planned.entry
    users = {unit.user for unit in entry.units.values()}
    only = next(iter(users)) if len(users) == 1 else None
    draft = _Draft(entry_id, entry, only if isinstance(only, str) else None, len(users) > 1)
    units = {
        UnitName(name): declaring_units.declare_unit(entry_id, entry, name, draft.rows)
        for name in sorted(entry.units)
    }
    for name, resource in sorted(entry.resources.items()):
        _resource(draft, name, resource)
    for value in entry.volumes.values():
        draft.directories[str(claims.volume_of(value)["path"])] = DeclaredDirectory(
            mode=_VOLUME_MODE_SHARED if draft.shared else _VOLUME_MODE,
            owner=draft.owner,
            keep=True,
        )
    for path, digest in planned.grants.items():
        mode = _GRANTS_MODE_SHARED if draft.shared else _GRANTS_MODE
        draft.files[path] = DeclaredFile(digest=digest, mode=mode, owner=draft.owner)
    draft.rows.extend(_asked_for_more(entry_id, entry))
    rows = tuple(in_order(draft.rows))
    if any(row.severity is Severity.ERROR for row in rows):
        return Refused(rows=rows)
    declared = DeclaredEntry(
        key=Digest(entry.key),
        module=entry.module,
        version=entry.version,
        units={name: unit for name, unit in units.items() if unit is not None},
        files=_sorted(draft.files),
        directories=_sorted(draft.directories),
        archives=_sorted(draft.archives),
        listens=_sorted(entry.listens),
        udp=planned.udp,
        publishes=declaring_values.publications(entry),
    )
    return Made(entry=declared, contents=draft.texts, rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of declaring every entry of a plan, to see whether it can be."""

    rows: tuple[Diagnostic, ...]
    """What the agents of this release cannot run, or run in a plainer way."""
    archives: Mapping[Digest, EntryId]
    """What machines will fetch, and an entry that wants each."""


def check(entries: Mapping[EntryId, Planned]) -> Checked:
    """Asked before a plan is committed; error rows refuse it.

    An entry that waits for a fact is not sent before it is there, and refuses nothing.
    """
    rows: list[Diagnostic] = []
    archives: dict[Digest, EntryId] = {}
    for entry, planned in sorted(entries.items(), key=lambda item: item[0]):
        made = declare_entry(entry, planned)
        told = [row for row in made.rows if row.code != declaring_units.HOLE]
        rows += told
        if any(row.severity is Severity.ERROR for row in told):
            continue
        for digest in _archives(planned.entry):
            archives.setdefault(digest, entry)
    return Checked(rows=tuple(in_order(rows)), archives=archives)


def _archives(entry: Entry) -> Iterator[Digest]:
    named = [unit.archive for unit in entry.units.values()]
    named += [each.get("archive") for each in entry.resources.values()]
    for name in named:
        if isinstance(name, str) and name in entry.artifacts:
            yield Digest(entry.artifacts[name])


def _asked_for_more(entry_id: EntryId, entry: Entry) -> Iterator[Diagnostic]:
    """What needs more of an agent than files and processes.

    Where the units would not find what they were promised the entry is refused; where only
    others would miss it, it is told.
    """
    for name in entry.secrets:
        yield refusal(entry_id, f"secrets.{name}", f"the secret {name}", "secrets")
    for slot in _names(entry.credentials):
        said = f"the credential of {slot}"
        yield refusal(entry_id, f"uses.{slot}", said, "credentials of a consumer's own")
    for name in _names(entry.state):
        yield refusal(entry_id, f"state.{name}", f"the bucket {name}", "buckets")
    for name in _names(entry.reads):
        yield refusal(entry_id, "reads", f"the bucket {name}", "buckets")
    later = {
        "seats": ("seats", _names(entry.seats)),
        "zone": ("zones", ["zone"] if _names(entry.zone) else []),
    }
    for path, (feature, names) in later.items():
        for name in names:
            row = refusal(entry_id, path, name, feature)
            yield msgspec.structs.replace(row, severity=Severity.WARNING)


def _names(value: Iterable[str] | UnsetType) -> list[str]:
    return [] if isinstance(value, UnsetType) else sorted(value)


def _resource(draft: _Draft, name: str, resource: Mapping[str, Json]) -> None:
    kind, place = resource.get("type"), f"resources.{name}"
    path = str(resource.get("path", ""))
    owner, group = _text(resource.get("owner")), _text(resource.get("group"))
    match kind:
        case "file":
            digest = _file_digest(draft, resource)
            if digest is None:
                said = f"the content of {path}"
                draft.rows.append(refusal(draft.entry_id, place, said, "a file with no content"))
                return
            draft.files[path] = DeclaredFile(
                digest=digest,
                mode=_text(resource.get("mode")) or DeclaredFile(digest=digest).mode,
                owner=owner,
                group=group,
                adopt=resource.get("adopt") is True,
            )
        case "directory":
            mode = _text(resource.get("mode")) or DeclaredDirectory().mode
            draft.directories[path] = DeclaredDirectory(mode=mode, owner=owner, group=group)
        case "archive":
            archive = str(resource.get("archive"))
            digest = draft.entry.artifacts.get(archive)
            if digest is None:
                draft.rows.append(declaring_units.unbuilt(draft.entry_id, place, archive))
            else:
                draft.archives[path] = DeclaredArchive(digest=Digest(digest))
        case _:
            said = f"the resource {name} of type {kind}"
            draft.rows.append(refusal(draft.entry_id, place, said, f"resources of type {kind}"))


def _file_digest(draft: _Draft, resource: Mapping[str, Json]) -> Digest | None:
    """Of a shipped file, or of a text that stands in the plan itself."""
    digest, text = resource.get("digest"), resource.get("text")
    if isinstance(text, str):
        content = text.encode()
        digest = Digest("sha256-" + hashlib.sha256(content).hexdigest())
        draft.texts[digest] = content
    return Digest(digest) if isinstance(digest, str) else None


def _named(entry: DeclaredEntry) -> dict[str, Digest]:
    """By path, the digests whose bytes have to travel with the entry."""
    found = {path: file.digest for path, file in entry.files.items()}
    for unit in entry.units.values():
        found.update({path: config.digest for path, config in unit.config.items()})
    return found


def _absent(entry_id: EntryId, path: str, digest: Digest) -> Diagnostic:
    return Diagnostic(
        code="content-missing",
        subject=entry_id,
        path=path,
        message=f"The content of {path} ({digest}) is not in the inventory.",
        resolution=("apply the fleet directory again: its files are then recorded anew",),
    )


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _sorted(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(values.items()))
