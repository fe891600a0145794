"""Reports as bytes. Decoding skips unknown fields: agents are upgraded one after another."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from keyplane.model import declaration as model
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.occurrence import Act, Cause
from keyplane.wire.refusal import Refused, Why, decode


class Unit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: model.UnitState
    digest: Digest
    pid: int | None = None
    start_ticks: int | None = None
    restarts: int = 0
    reloads: int = 0
    last_exit: str | None = None
    cause: str | None = None
    log_tail: tuple[str, ...] = ()
    reaction: str | None = None
    overdue: bool = False
    stale_since_ms: Mapping[str, int] = {}


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    who: str
    since_ms: int


class Drift(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    path: str
    what: str
    since_ms: int
    repaired: bool = False
    problem: str | None = None


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    up: bool
    permit: str | None = None
    held: bool = False


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    digest: Digest
    size: int


class Volumes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    saved: int = 0
    volumes: Mapping[str, Saved] = {}
    problem: str = ""
    given: int = 0
    taken: int = 0


class OldCopy(msgspec.Struct, frozen=True, kw_only=True):
    entry: EntryId
    volume: str
    since_ms: int
    number: int
    why: str


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: model.EntryState
    key: Digest
    units: Mapping[UnitName, Unit] = {}
    cause: str | None = None
    notes: tuple[str, ...] = ()
    stopped: Stop | None = None
    drift: tuple[Drift, ...] = ()
    member: Member | None = None
    volumes: Volumes | None = None
    tries: int = 0


class Occurrence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    number: int
    at_ms: int
    entry: EntryId
    unit: UnitName
    act: Act
    cause: Cause
    detail: str = ""
    who: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="report"):
    machine: MachineName
    offer: model.OfferNumber
    settled: model.OfferNumber
    sequence: int
    boot: str
    entries: Mapping[EntryId, Entry] = {}
    refused: str | None = None
    refused_offer: model.OfferNumber | None = None
    history: str = ""
    occurrences: tuple[Occurrence, ...] = ()
    copies: Mapping[str, OldCopy] = {}


_ENCODER = msgspec.msgpack.Encoder(order="sorted")
_DECODER = msgspec.msgpack.Decoder(Report)


def encode_report(report: model.Report) -> bytes:
    message = msgspec.convert(report, Report, from_attributes=True)
    try:
        return _ENCODER.encode(message)
    except UnicodeEncodeError:
        # Log lines and file names may hold bytes that are no text; a report goes out in any case.
        return _ENCODER.encode(_plain(msgspec.to_builtins(message)))


def _plain(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {_plain(name): _plain(inner) for name, inner in pairs}
        case list() | tuple():
            return [_plain(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def decode_report(data: bytes, *, machine: MachineName) -> model.Report | Refused:
    """The report of that machine: the bus says whose it is, and the report may not differ."""
    message = decode(_DECODER, data, "report")
    if isinstance(message, Refused):
        return message
    if message.machine != machine:
        return Refused(
            Why.MACHINE, f"the report of machine {machine} says that it is of {message.machine}"
        )
    return msgspec.convert(message, model.Report, from_attributes=True)
