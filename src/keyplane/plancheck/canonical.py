"""Canonical JSON and the hash over it, as CONTRACT §3 says them."""

import hashlib
import json
from typing import Any, cast

import msgspec

Json = Any


class _FloatError(Exception):
    """A number with a point was met."""


def _found(_text: str) -> None:
    raise _FloatError


_encode = msgspec.json.Encoder(order="sorted").encode
_read = msgspec.json.Decoder(float_hook=_found).decode
"""Made once: a plan is hashed in a million parts."""


def digest(value: Json) -> str:
    return "sha256-" + hashlib.sha256(canonical(value)).hexdigest()


def canonical(value: Json) -> bytes:
    """Of plain JSON values, or of a plan's structs.

    The fast encoder sorts keys as the contract does and differs in numbers with a point alone;
    reading its text back tells whether there is one.
    """
    encoded = _encode(value)
    try:
        _read(encoded)
    except _FloatError:
        pass
    else:
        return encoded
    plain = _whole(msgspec.to_builtins(value))
    return json.dumps(
        plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode()


def _whole(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        items = cast("dict[str, Json]", value).items()
        return {key: _whole(item) for key, item in items}
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[Json]", value)]
    return value
