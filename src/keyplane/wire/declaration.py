"""What a declaration says, as bytes of wire version 1. Strict: an unknown field refuses it whole.

Mirrors `model.declaration` field by field, so that the model may change without changing a byte.
Fields at their default are left out: a field added later changes no digest where it is unused.
Its number and generation stand in the envelope (`signed`) and not here: a machine is offered
something new only when what it should be has changed.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from keyplane.model import declaration as model
from keyplane.model.interface import ValueType
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.reaction import DeclaredRates
from keyplane.wire.refusal import Refused, decode


class _Strict(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    pass


class Health(_Strict, frozen=True):
    http: str | None = None
    tcp: str | None = None
    command: tuple[str, ...] | None = None
    interval_ms: int = 1_000
    timeout_ms: int = 5_000
    retries: int = 3
    start_period_ms: int = 30_000


class Reload(_Strict, frozen=True):
    signal: str | None = None
    command: tuple[str, ...] | None = None


class ConfigFile(_Strict, frozen=True):
    digest: Digest
    mode: str | None = None


class Contract(_Strict, frozen=True):
    sources: tuple[str, ...]
    reaction: ReactionKind
    parts: tuple[str | int, ...] = (0,)
    on_missing: OnMissing = OnMissing.KEEP_LAST
    default: str | None = None
    max_staleness_ms: int | None = None


class Publication(_Strict, frozen=True):
    type: ValueType = ValueType.STRING
    file: str | None = None
    command: tuple[str, ...] | None = None
    every_ms: int | None = None
    published: bool = False


class Rates(_Strict, frozen=True):
    window_ms: int = 30_000
    burst: int = 3
    restarts_per_unit: int = 5
    budget_ms: int = 3_600_000


class Unit(_Strict, frozen=True):
    digest: Digest
    kind: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    config: Mapping[str, ConfigFile] = {}
    archive: Digest | None = None
    user: str | None = None
    working_directory: str | None = None
    limits: Mapping[str, model.Json] = {}
    run_once: bool = False
    health: Health | None = None
    reload: Reload | None = None
    restart: model.Restart = model.Restart.ALWAYS
    stop_timeout_ms: int = 10_000
    dynamic: Mapping[str, Contract] = {}
    start_first: bool = False
    replaces: UnitName | None = None


class File(_Strict, frozen=True):
    digest: Digest
    mode: str = "0644"
    owner: str | None = None
    group: str | None = None
    adopt: bool = False


class Directory(_Strict, frozen=True):
    mode: str = "0755"
    owner: str | None = None
    group: str | None = None
    keep: bool = False


class Archive(_Strict, frozen=True):
    digest: Digest


class Word(_Strict, frozen=True):
    number: int
    stop: bool
    who: str
    at_ms: int


class SaveOrder(_Strict, frozen=True):
    number: int
    paths: tuple[str, ...]
    gives: bool = False
    to: str = ""


class TakeOrder(_Strict, frozen=True):
    number: int
    contents: Mapping[str, Digest | None] | None = None
    keeps: bool = False
    source: str = ""


class Entry(_Strict, frozen=True):
    key: Digest
    module: str
    version: str
    units: Mapping[UnitName, Unit] = {}
    files: Mapping[str, File] = {}
    directories: Mapping[str, Directory] = {}
    archives: Mapping[str, Archive] = {}
    listens: Mapping[str, int] = {}
    udp: tuple[str, ...] = ()
    word: Word | None = None
    publishes: Mapping[str, Publication] = {}
    guarded: bool = False
    save: SaveOrder | None = None
    take: TakeOrder | None = None


class Body(_Strict, frozen=True):
    """A declaration without its machine, number and generation."""

    entries: Mapping[EntryId, Entry] = {}
    contents: Mapping[Digest, bytes] = {}
    rates: Rates | None = None
    address: str | None = None
    frozen: bool = False


_ENCODER = msgspec.msgpack.Encoder(order="sorted")
_DECODER = msgspec.msgpack.Decoder(Body)


def encode_body(declaration: model.Declaration) -> bytes:
    """The same bytes for equal declarations, in whatever order their mappings were built."""
    body = msgspec.convert(declaration, Body, from_attributes=True)
    if body.rates == Rates():
        body = msgspec.structs.replace(body, rates=None)  # a struct is not left out by itself
    return _ENCODER.encode(body)


def decode_body(data: bytes) -> Body | Refused:
    return decode(_DECODER, data, "declaration")


def entries_of(body: Body) -> Mapping[EntryId, model.DeclaredEntry]:
    return msgspec.convert(
        body.entries, Mapping[EntryId, model.DeclaredEntry], from_attributes=True
    )


def rates_of(body: Body) -> DeclaredRates:
    return msgspec.convert(body.rates or Rates(), DeclaredRates, from_attributes=True)


def digest_of_body(data: bytes) -> Digest:
    return Digest(f"sha256-{hashlib.sha256(data).hexdigest()}")


def digest_of(declaration: model.Declaration) -> Digest:
    """Moves when what the machine should be changes; its number and generation do not count."""
    return digest_of_body(encode_body(declaration))
