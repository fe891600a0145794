"""Samples of every version that was ever released decode for ever.

A sample is never made again: where one does not decode, the code is wrong. A new version adds
files beside these.
"""

from pathlib import Path

from keyplane import wire
from keyplane.model.declaration import OfferNumber
from keyplane.wire import Answer, Ask, Beat
from tests.unit.wire.values import ALPHA, DECLARATION, KEY, REPORT

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def test_declaration_1() -> None:
    """Every field of a declaration of version 1 is read as it was meant."""
    data = sample("declaration-1.msgpack")
    assert wire.open_declaration(data, key=KEY.verify_key, machine=ALPHA) == DECLARATION


def test_digest_1() -> None:
    """An upgrade of the controller moves no digest, and so offers no machine anything anew."""
    recorded = sample("declaration-1.digest").decode().strip()
    assert wire.digest_of(DECLARATION) == recorded


def test_report_1() -> None:
    assert wire.decode_report(sample("report-1.msgpack"), machine=ALPHA) == REPORT


def test_small_messages_1() -> None:
    offer = OfferNumber(1, 200)
    assert wire.decode_ask(sample("ask-1.msgpack")) == Ask(have=offer, wire=1, boot="b7")
    assert wire.decode_beat(sample("beat-1.msgpack")) == Beat(offer=offer, sequence=70_000)
    assert wire.decode_answer(sample("answer-1.msgpack")) == Answer(
        declaration=b"signed", highest=offer
    )
    assert wire.decode_answer(sample("answer-none-1.msgpack")) == Answer(
        declaration=None, highest=offer
    )
