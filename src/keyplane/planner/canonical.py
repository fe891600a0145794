"""Canonical JSON and the hashes over it: UTF-8, keys by code point, no white space.

Whole numbers have no fraction, others are their shortest round trip.
"""

import json
from hashlib import sha256

import msgspec

from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Json

encode_plain = msgspec.json.Encoder(order="sorted").encode
"""The canonical form of a value that holds no float: about ten times as fast as `encode`."""


def encode(value: Json) -> bytes:
    if not _holds_float(value):
        return encode_plain(value)
    return json.dumps(
        settle(value), sort_keys=True, ensure_ascii=False, separators=(",", ":")
    ).encode()


def digest(data: bytes) -> str:
    return "sha256-" + sha256(data).hexdigest()


def digest_of(value: Json) -> str:
    return digest(encode(value))


def settle(value: Json) -> Json:
    """The value with every whole float an integer, as canonical JSON prints it."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if is_table(value):
        return {key: settle(item) for key, item in value.items()}
    if is_list(value):
        return [settle(item) for item in value]
    return value


def text(value: Json) -> str:
    """The value as it stands in a command, a variable or a text."""
    if isinstance(value, str):
        return value
    if is_list(value):
        return " ".join(text(item) for item in value)
    return encode(value).decode()


def in_order(items: list[Json]) -> list[Json]:
    """A list whose order means nothing, in the order of its canonical JSON."""
    return sorted(items, key=encode)


def _holds_float(value: Json) -> bool:
    if isinstance(value, str):
        return False
    if is_table(value):
        return any(map(_holds_float, value.values()))
    if is_list(value):
        return any(map(_holds_float, value))
    return isinstance(value, float)
