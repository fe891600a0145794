"""`keyplane react --plot` and `--record`."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from click.testing import CliRunner

from keyplane.cli.react import command

PEER = "vpn:node@alpha/provides/peer/address"
TRACE = {
    "rates": {"debounce": {"window": "30s", "burst": 1}},
    "entries": {
        "game:main@alpha": {"main": {"PEER": {"from": PEER, "reaction": "restart"}}},
    },
    "initial": {PEER: "<10.9.0.1>"},
    "events": [
        {"at": "10s", "export": PEER, "value": "10.9.0.2"},
        {"at": "50s", "export": PEER, "value": "10.9.0.3"},
        {"at": "5m", "export": PEER, "missing": True},
    ],
    "until": "10m",
}


def test_the_picture_has_the_values_the_windows_and_what_was_done(tmp_path: Path) -> None:
    """Well-formed, the same bytes each time, and beside the rows, which stay as they are."""
    trace, plot = tmp_path / "trace.json", tmp_path / "plot.svg"
    trace.write_text(json.dumps(TRACE))
    plain = CliRunner().invoke(command, [str(trace), "--json"])
    drawn = CliRunner().invoke(command, [str(trace), "--json", "--plot", str(plot)])
    assert (drawn.exit_code, drawn.stdout) == (0, plain.stdout)
    first = plot.read_text()
    said = [each.text for each in ET.fromstring(first).iter() if each.text]
    assert {PEER, "<10.9.0.1>", "windows of alpha", "restart", "missing"} <= set(said)
    assert "running-stale" in said
    assert said.count("a window, closed after 30s") == 3
    CliRunner().invoke(command, [str(trace), "--plot", str(plot)])
    assert plot.read_text() == first


def test_what_cannot_be_drawn_or_recorded_is_said(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps(TRACE))
    for words, said in [
        ([str(trace), "--plot", str(tmp_path / "no" / "x.svg")], "No such file"),
        ([], "name a TRACE.json"),
        ([str(trace), "--record", "a:b@c"], "name a TRACE.json"),
        (["--record", "a:b@c", "--plot", "x"], "--plot draws a replay"),
    ]:
        ran = CliRunner().invoke(command, words)
        assert ran.exit_code == 2, words
        assert said in ran.stderr
