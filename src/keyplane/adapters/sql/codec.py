"""Values as the bytes of a row, and back. Decides no order and no meaning."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from keyplane.model.declaration import Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.plan import Plan
from keyplane.ports import inventory, ordering
from keyplane.ports.fact_order import StoredFact

Json = Any

_encoder = msgspec.json.Encoder(order="deterministic")
_entry = msgspec.json.Decoder(inventory.PlannedEntry)
_report = msgspec.json.Decoder(Report)
_lives = msgspec.json.Decoder(tuple[ordering.Life, ...])
_facts = msgspec.json.Decoder(dict[str, StoredFact])
_builds = msgspec.json.Decoder(dict[EntryId, inventory.Build])


_HEAD = ("format", "fleet", "generation")
"""The fields of a plan that are columns of its row."""

_sections = {
    field.name: msgspec.json.Decoder(field.type)
    for field in msgspec.structs.fields(Plan)
    if field.name not in (*_HEAD, "entries")
}
"""The other fields of a plan but its entries: each is a body of its own."""


class DamagedError(Exception):
    """Bytes are not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One part of a plan as it is kept: an entry, a section of its document, or a content."""

    kind: str
    name: str
    digest: str
    body: bytes


def encode(value: object) -> bytes:
    """Raw bytes are kept as they are; anything else becomes JSON with sorted keys."""
    return value if isinstance(value, bytes) else _encoder.encode(value)


def digest(value: object) -> Digest:
    return Digest(f"sha256-{hashlib.sha256(encode(value)).hexdigest()}")


def parts(stored: inventory.StoredPlan) -> dict[tuple[str, str], object]:
    """The values of all items of a plan, by kind and name."""
    plan = stored.plan
    found: dict[tuple[str, str], object] = {
        ("section", name): getattr(plan, name) for name in _sections
    }
    found.update((("entry", entry), planned) for entry, planned in stored.entries.items())
    found.update((("content", name), content) for name, content in stored.contents.items())
    return found


def digests(values: Mapping[Any, object]) -> dict[Any, Digest]:
    """The digest of each value's bytes; slow for a large fleet, so called off the loop."""
    return {key: digest(value) for key, value in values.items()}


def _checked(items: Iterable[Item], kind: str) -> Iterator[tuple[str, bytes]]:
    # SQLite keeps no checksums, and what is read here is what machines will run.
    for item in items:
        if item.kind == kind:
            if digest(item.body) != item.digest:
                raise DamagedError(item.name)
            yield item.name, item.body


def entries(items: Iterable[Item]) -> dict[EntryId, inventory.PlannedEntry]:
    return {EntryId(name): _entry.decode(body) for name, body in _checked(items, "entry")}


def stored_plan(head: Mapping[str, Any], items: Sequence[Item]) -> inventory.StoredPlan:
    """A plan from its row and its items."""
    planned = entries(items)
    sections = {name: _sections[name].decode(body) for name, body in _checked(items, "section")}
    plan = Plan(
        **{name: head[name] for name in _HEAD},
        entries={str(name): each.entry for name, each in planned.items()},
        **sections,
    )
    contents = {Digest(name): body for name, body in _checked(items, "content")}
    return inventory.StoredPlan(
        plan=plan, revision=head["revision"], entries=planned, contents=contents
    )


def reports(rows: Iterable[tuple[int, bytes]]) -> dict[MachineName, inventory.StoredReport]:
    found = (
        inventory.StoredReport(report=_report.decode(body), received_ms=received_ms)
        for received_ms, body in rows
    )
    return {each.report.machine: each for each in found}


def lives(body: bytes) -> tuple[ordering.Life, ...]:
    return _lives.decode(body)


def facts(body: bytes) -> dict[str, StoredFact]:
    return _facts.decode(body)


def builds(body: bytes) -> dict[EntryId, inventory.Build]:
    return _builds.decode(body)


def json(body: bytes) -> Json:
    return msgspec.json.decode(body)
