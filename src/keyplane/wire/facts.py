"""What a machine says of itself, whole each time.

Decoding skips unknown fields, as agents are upgraded one after another. What is said is bounded,
whoever says it: a machine may lie about itself, and not fill the inventory.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from keyplane.wire.refusal import Refused, Why, decode

Json = Any

FACTS_MAX = 1_000
"""Names, where a machine gathers about twenty and a module adds one or two."""
NAME_MAX = 200
TEXT_MAX = 4_096
LIST_MAX = 20_000
"""Modules of a kernel, or commands: a well-filled machine has some six thousand of either."""
SIZE_MAX = 1 << 20
"""Of all of it; such a list is some hundred thousand bytes."""
WHOLE_MAX = 1 << 53
"""Whole numbers beyond it are not the same in every JSON."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, tag="facts"):
    boot: str
    """Names the agent's life."""
    facts: Mapping[str, Json]
    """Texts, numbers, true and false, and lists of texts, by name."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Facts)


def encode_facts(message: Facts) -> bytes:
    return _ENCODER.encode(message)


def decode_facts(data: bytes) -> Facts | Refused:
    if len(data) > SIZE_MAX:
        return Refused(Why.MALFORMED, f"facts: {len(data)} bytes are more than {SIZE_MAX}")
    message = decode(_DECODER, data, "facts")
    if isinstance(message, Refused):
        return message
    if len(message.facts) > FACTS_MAX:
        return Refused(Why.MALFORMED, f"facts: {len(message.facts)} are more than {FACTS_MAX}")
    for name, value in message.facts.items():
        if (problem := fact_fault(name, value)) is not None:
            return Refused(Why.MALFORMED, f"facts: {name[:NAME_MAX]!r} {problem}")
    return message


def fact_fault(name: str, value: Json) -> str | None:
    """Why this is no fact that can be said; None if it can."""
    if not 0 < len(name) <= NAME_MAX or not name.isprintable():
        return "is no name of a fact"
    match value:
        case bool():
            return None
        case int():
            return None if abs(value) <= WHOLE_MAX else "is a number too large"
        case float():
            return None if value - value == 0 else "is no number"
        case str():
            return _text_fault(value)
        case list():
            return _list_fault(cast("list[Json]", value))
        case _:
            return "is neither a text, a number, true, false, nor a list of texts"


def _text_fault(value: str) -> str | None:
    if len(value) > TEXT_MAX:
        return f"is a text of more than {TEXT_MAX} characters"
    if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
        return "is a text that no unit can be given"
    return None


def _list_fault(values: list[Json]) -> str | None:
    if len(values) > LIST_MAX:
        return f"is a list of more than {LIST_MAX}"
    for each in values:
        if not isinstance(each, str):
            return "is a list of something else than texts"
        if (problem := _text_fault(each)) is not None:
            return problem
    return None
