"""What a machine heard, kept and replayed."""

from typing import Any

import msgspec

from keyplane.converge import reaction_record, reaction_replay, reaction_trace
from keyplane.converge.reaction_record import Heard, Record
from keyplane.model.declaration import Declaration, OfferNumber
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import Digest, MachineName
from keyplane.model.reaction import Contract, DeclaredRates
from tests.unit.converge.world import WEB, entry, unit

PEER, SIZE = "vpn:node@beta/provides/peer/address", "vpn:node@beta/provides/peer/size"


def declared(**fields: Any) -> Declaration:
    contract = Contract(
        sources=(PEER, SIZE),
        parts=("at ", 0, " of ", 1, "; ", 0),
        reaction=ReactionKind.RESTART,
        on_missing=OnMissing.DEFAULT,
        default="none",
        max_staleness_ms=300_000,
    )
    one = unit(dynamic={"PEER": contract})
    return Declaration(
        machine=MachineName("alpha"),
        offer=OfferNumber(1, 1),
        generation=Digest("g"),
        entries={WEB: entry(units={"server": one})},
        rates=DeclaredRates(window_ms=2_000, burst=2, restarts_per_unit=4, budget_ms=60_000),
        **fields,
    )


def recorded(*words: tuple[int, str, str | None]) -> Record:
    record = Record()
    for at_ms, export, value in words:
        record = reaction_record.add(record, Heard(at_ms=at_ms, export=export, value=value))
    return record


def test_a_record_is_a_trace_that_replays_what_happened() -> None:
    """With the machine's rates and contracts; another window is one edit of the trace."""
    record = recorded(
        (9_000, PEER, "a"), (9_000, SIZE, "1"), (20_000, PEER, "b"), (21_000, PEER, "c")
    )
    document = reaction_record.trace(record, declared())
    assert document["rates"]["debounce"] == {"window": "2s", "burst": 2}
    rows = replayed(document)
    assert [(row.at_ms, row.action.value) for row in rows] == [(1, "start"), (13_001, "restart")]
    assert rows[-1].values == {"PEER": "at c of 1; c"}
    document["rates"]["debounce"]["window"] = "500ms"
    assert [row.action.value for row in replayed(document)] == ["start", "restart", "restart"]


def replayed(document: Any):
    trace = reaction_trace.read(msgspec.json.encode(document), file="t")
    assert isinstance(trace, reaction_trace.Trace), trace
    return reaction_replay.replay(trace)


def test_missing_is_recorded_as_that() -> None:
    document = reaction_record.trace(recorded((1, PEER, "a"), (5, PEER, None)), declared())
    assert document["events"][1] == {"at": "5ms", "export": PEER, "missing": True}


def test_a_record_is_bounded_and_what_falls_out_is_what_was_known_before() -> None:
    record = recorded(*((at, PEER, str(at)) for at in range(reaction_record.KEPT_MAX + 3)))
    assert len(record.words) == reaction_record.KEPT_MAX
    assert record.initial == {PEER: "2"}
    assert reaction_record.decode(reaction_record.encode(record)) == record
    assert reaction_record.decode(b"torn") == reaction_record.decode(None) == Record()


def test_windows_are_told_of_each_machine() -> None:
    record = recorded((1_000, PEER, "a"), (1_000, SIZE, "1"), (20_000, PEER, "b"))
    trace = reaction_trace.read(
        msgspec.json.encode(reaction_record.trace(record, declared())), file="t"
    )
    assert isinstance(trace, reaction_trace.Trace)
    assert [(w.machine, w.opened_ms, w.closed_ms) for w in reaction_replay.windows(trace)] == [
        ("alpha", 1, 2_001),
        ("alpha", 19_001, 21_001),
    ]
