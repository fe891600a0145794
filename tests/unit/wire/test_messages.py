"""The messages around declarations, and bytes that are no message at all."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyplane import wire
from keyplane.model.declaration import NO_OFFER, EntryReport, EntryState, OfferNumber, Report
from keyplane.model.names import EntryId, MachineName
from keyplane.wire import Answer, Ask, Beat, Refused, Why
from tests.unit.wire.values import ALPHA, REPORT, digest, reports


def decode_report(data: bytes) -> Report | Refused:
    return wire.decode_report(data, machine=ALPHA)


DECODERS: list[Callable[[bytes], Any]] = [
    wire.decode_ask,
    wire.decode_answer,
    wire.decode_beat,
    decode_report,
]


@given(reports)
def test_reports_round_trip(report: Report) -> None:
    assert wire.decode_report(wire.encode_report(report), machine=report.machine) == report


@given(st.integers(0, 2**53), st.integers(0, 2**53), st.none() | st.binary(max_size=9))
def test_small_messages_round_trip(epoch: int, counter: int, signed: bytes | None) -> None:
    offer = OfferNumber(epoch, counter)
    ask = Ask(have=offer, wire=1, boot="b")
    answer = Answer(declaration=signed, highest=offer)
    beat = Beat(offer=offer, sequence=counter)
    assert wire.decode_ask(wire.encode(ask)) == ask
    assert wire.decode_answer(wire.encode(answer)) == answer
    assert wire.decode_beat(wire.encode(beat)) == beat


def test_one_message_is_not_taken_for_another() -> None:
    """Each says what it is."""
    ask = wire.encode(Ask(have=NO_OFFER, wire=1, boot="b"))
    assert isinstance(wire.decode_ask(ask), Ask)
    for decode in (wire.decode_answer, wire.decode_beat, decode_report):
        assert isinstance(decode(ask), Refused)


def with_more(value: Any) -> Any:
    """The same with a field of a later release in every map of fields."""
    if isinstance(value, list):
        return [with_more(each) for each in value]
    if not isinstance(value, dict):
        return value
    more = {name: with_more(inner) for name, inner in value.items()}
    is_fields = not any(":" in name or name == "server" for name in value)
    return more | {"later": {"deep": [1, {"x": b"y"}]}} if is_fields else more


def test_unknown_fields_of_reports_and_small_messages_are_skipped() -> None:
    """A later release's agents report to a controller that is not upgraded yet."""
    later = with_more(msgspec.msgpack.decode(wire.encode_report(REPORT)))
    entry = later["entries"]["shop:web@alpha"]
    assert "later" in later
    assert "later" in entry
    assert "later" in entry["units"]["server"]
    assert decode_report(msgspec.msgpack.encode(later)) == REPORT
    beat = Beat(offer=NO_OFFER, sequence=4)
    later = with_more(msgspec.msgpack.decode(wire.encode(beat)))
    assert wire.decode_beat(msgspec.msgpack.encode(later)) == beat


def test_a_report_in_another_machines_name_is_refused() -> None:
    """Whose it is says the bus, and a machine cannot speak for another."""
    found = wire.decode_report(wire.encode_report(REPORT), machine=MachineName("beta"))
    assert found == Refused(Why.MACHINE, "the report of machine beta says that it is of alpha")


def test_a_report_with_bytes_that_are_no_text_goes_out() -> None:
    """A file name or log line in no known encoding costs its own letters, not the report."""
    broken = EntryReport(state=EntryState.FAILED, key=digest("1"), cause="no \udcff here")
    report = Report(
        machine=ALPHA,
        offer=NO_OFFER,
        settled=NO_OFFER,
        sequence=1,
        boot="b",
        entries={EntryId("a:b@alpha"): broken},
    )
    found = decode_report(wire.encode_report(report))
    assert isinstance(found, Report)
    assert found.entries[EntryId("a:b@alpha")].cause == "no ? here"


@pytest.mark.parametrize("decode", DECODERS)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_answered_with_a_value(decode: Callable[[bytes], Any], data: bytes) -> None:
    """Machines may send anything."""
    assert isinstance(decode(data), Refused)


@given(st.data())
def test_a_damaged_report_is_answered_with_a_value(data: st.DataObject) -> None:
    broken = bytearray(wire.encode_report(REPORT))
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    assert isinstance(decode_report(bytes(broken)), Report | Refused)


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1x", b"\x81\xa5later"])
def test_deep_nesting_is_refused(decode: Callable[[bytes], Any], opening: bytes) -> None:
    """A few kilobytes do not exhaust the stack."""
    assert isinstance(decode(opening * 100_000), Refused)
