"""What a machine says of itself, as bytes: bounded, whoever says it."""

from typing import Any

import msgspec
import pytest

from keyplane import wire
from keyplane.wire import facts

SAID = {
    "os.id": "debian",
    "cpu.count": 4,
    "load": 0.5,
    "gpu": False,
    "addresses": ["10.0.0.3", "fd00::1"],
}


def said(values: object) -> bytes:
    return msgspec.msgpack.encode({"type": "facts", "boot": "b", "facts": values, "later": 1})


def test_facts_come_back_as_they_were_said() -> None:
    """What a later release adds to the message is skipped."""
    message = wire.Facts(boot="b", facts=SAID)
    assert wire.decode_facts(wire.encode_facts(message)) == message
    assert wire.decode_facts(said(SAID)) == message


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"x" * 201: 1}, "no name"),
        ({"": 1}, "no name"),
        ({"a\nb": 1}, "no name"),
        ({"a": None}, "neither a text"),
        ({"a": {"b": 1}}, "neither a text"),
        ({"a": [1]}, "something else than texts"),
        ({"a": ["b"] * 20_001}, "a list of more than"),
        ({"a": "x" * 4_097}, "more than 4096"),
        ({"a": "b\0c"}, "no unit can be given"),
        ({"a": float("nan")}, "no number"),
        ({"a": float("inf")}, "no number"),
        ({"a": 2**60}, "too large"),
        ({f"fact{number}": 1 for number in range(1_001)}, "1001 are more"),
        ({"a": ["x" * 4_000] * 300}, "bytes are more"),
        ([1], "Expected"),
    ],
)
def test_what_is_no_fact_is_refused(values: Any, why: str) -> None:
    """All of it, with the reason."""
    found = wire.decode_facts(said(values))
    assert isinstance(found, wire.Refused)
    assert why in found.reason


def test_bytes_that_are_no_message_are_refused() -> None:
    assert isinstance(wire.decode_facts(b"\xc1"), wire.Refused)
    assert isinstance(wire.decode_facts(b""), wire.Refused)
    assert facts.fact_fault("kernel.release", "6.1.0") is None
