"""What a trace may say, and what `keyplane react` makes of one that it may not."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from keyplane.cli.react import command
from keyplane.converge import reaction_trace
from keyplane.model.fleet import Rates
from tests.unit.converge.reaction_traces import ENTRY, export, lines, read, trace, value

V = {"V": value("v")}
V1 = {"v": "1"}


def react(tmp_path: Path, document: Any, *options: str) -> Result:
    file = tmp_path / "trace.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return CliRunner().invoke(command, [str(file), *options])


def with_contract(**fields: Any) -> dict[str, Any]:
    return trace({"V": {**value("v"), **fields}}, V1, "10:v=2")


def with_event(**event: Any) -> dict[str, Any]:
    return {**trace(V, V1, ""), "events": [event]}


BROKEN = {
    "no JSON": ("nope", "the document"),
    "no table": ("[]", "no table"),
    "NaN": ('{"until": NaN}', "NaN"),
    "a key twice": ('{"until": "1s", "until": "2s"}', "twice"),
    "nothing": ("{}", "`entries` is missing"),
    "field": ({**trace(V, V1, ""), "util": "1s"}, "the nearest is `until`"),
    "rates": ({**trace(V, V1, ""), "rates": {"bounce": {}}}, "`debounce`"),
    "burst": ({**trace(V, V1, ""), "rates": {"debounce": {"burst": 0}}}, "less than 1"),
    "duration": ({**trace(V, V1, ""), "until": "1 minute"}, "no duration"),
    "zero": (with_event(at="0s", export="e", value="1"), "no duration"),
    "a duration past all counting": (
        {**trace(V, V1, ""), "until": "9" * 5_000 + "d"},
        "no duration",
    ),
    "event field": (with_event(at="1s", export="e", value="1", by="x"), "`by`"),
    "neither": (with_event(at="1s", export="e"), "one of value, missing"),
    "both": (with_event(at="1s", export="e", value="1", missing=True), "exclude"),
    "not missing": (with_event(at="1s", export="e", missing=False), "not true"),
    "null": (with_event(at="1s", export="e", value=None), "null"),
    "contract field": (with_contract(stale="1m"), "`stale`"),
    "a window in a contract": (with_contract(window="1m"), "`rates`"),
    "reaction": (with_contract(reaction="reboot"), "restart, reload, live"),
    "onMissing": (with_contract(onMissing="panic"), "keep-last, stop"),
    "no source": (with_contract(**{"from": []}), "at least 1"),
    "template": (with_contract(template="no reference"), "references"),
    "initial": ({**trace(V, V1, ""), "initial": {"e": {}}}, "a table"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_trace_is_refused_with_the_reason(tmp_path: Path, name: str):
    """Exit status 2, on stderr the path and what is wrong, nothing on stdout."""
    document, reason = BROKEN[name]
    found = react(tmp_path, document, "--json")
    assert (found.exit_code, found.stdout) == (2, "")
    assert reason in found.stderr
    assert "trace.json" in found.stderr


def test_every_fault_is_told_at_once(tmp_path: Path):
    found = react(tmp_path, {**trace(V, V1, ""), "a": 1, "until": 3}, "--json")
    assert "  a: " in found.stderr
    assert "  until: " in found.stderr


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    found = CliRunner().invoke(command, [str(tmp_path / "none.json")])
    assert found.exit_code == 2
    assert "none.json" in found.stderr


def test_the_rows_as_json(tmp_path: Path):
    """Durations in the largest unit that leaves a whole number; `overdue` where it applies."""
    strict = {"V": value("v", maxStaleness="1m")}
    document = trace(strict, V1, "10:v=2 90:v=3", until="90m")
    document["rates"]["restartBudget"]["perUnit"] = 1
    found = react(tmp_path, document, "--json")
    assert found.exit_code == 0
    row = {"entry": ENTRY, "unit": "web"}
    stale = {
        **row,
        "action": "none",
        "collapsed": 1,
        "state": "running-stale",
        "values": {"V": "2"},
    }
    acted = {**row, "action": "restart", "collapsed": 1, "state": "running"}
    assert json.loads(found.stdout) == [
        {**acted, "at": "40s", "values": {"V": "2"}},
        {**stale, "at": "2m"},
        {**stale, "at": "3m", "overdue": True},
        {**acted, "at": "3640s", "values": {"V": "3"}},
    ]


def test_the_rows_for_people(tmp_path: Path):
    found = react(tmp_path, trace(V, V1, "10:v=2"))
    assert "40s" in found.stdout
    assert "V=2" in found.stdout
    assert react(tmp_path, trace(V, V1, "")).stdout == "nothing would be done\n"


def test_an_export_that_no_unit_reads_is_pointed_at(tmp_path: Path):
    found = react(tmp_path, trace(V, V1, "10:x=2"), "--json")
    assert (found.exit_code, found.stdout) == (0, "[]\n")
    assert export("x") in found.stderr


def test_what_is_not_said_has_the_defaults_of_a_fleet():
    """Rates, `onMissing`, no `maxStaleness`; nothing at the start and no events."""
    found = read({"entries": {ENTRY: {"web": V}}, "until": "1m"})
    assert found.rates == Rates()
    assert (found.initial, found.events) == ({}, ())
    assert lines(trace(V, V1, "10:v!")) == ["10 none running-stale V=1 (1)"]


def test_a_contract_may_be_copied_from_a_plan():
    """With its transport, and a list of sources with their template."""
    copied = value(
        ["a", "b"], transport="bus", template="${results.s.a}$${results.s.b}", maxStaleness="5m"
    )
    assert lines(trace({"T": copied}, {"a": "1"}, "10:b=2")) == ["10 start running T=1$2 (1)"]


@pytest.mark.parametrize(
    ("value_", "text"),
    [(5, "5"), (True, "true"), (2.0, "2"), (0.5, "0.5"), (["a", "b"], "a b"), ("x", "x")],
)
def test_values_become_what_a_unit_is_given(value_: Any, text: str):
    assert reaction_trace.as_text(value_) == text


def test_the_same_text_is_the_same_value():
    """A number and its text are told apart by no unit."""
    document = trace(V, {"v": 5}, "10:v=5")
    assert lines(document) == []
