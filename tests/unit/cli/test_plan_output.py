"""What `keyplane plan` prints of a large plan: the same bytes, and tables that people can read."""

import msgspec
import pytest

from keyplane.cli import plan as command
from keyplane.cli import rows
from tests.unit.planner import fleets as f

MANY = f.machines(*(f"m{number:03}" for number in range(12)))
READERS = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "all"')


@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_a_plan_in_pieces_is_the_plan(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(command, "_PIECE", piece)
    fleets = [MANY + f.instance("db", "db") + f.instance("app", "app"), "", "nonsense = 1\n"]
    for fleet in fleets:
        made = f.plan_of(fleet, {"db": f.PROVIDER, "app": READERS}, f.STORE)
        whole = msgspec.json.encode(made, order="sorted") + b"\n"
        assert b"".join(command.encoded(made)) == whole


def test_of_many_providers_a_table_names_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = MANY + f.instance("db", "db") + f.instance("app", "app", "m000")
    command.show(f.plan_of(fleet, {"db": f.PROVIDER, "app": READERS}, f.STORE))
    edges = capsys.readouterr().out.partition("edges")[2].splitlines()[3:]
    assert [line.split() for line in edges] == [
        ["app:main@m000", "store", "db:main@m000", "and", "11", "more", "store", "only"]
    ]


def test_a_long_table_looks_as_a_short_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [("one", "a word"), ("another", "b")]
    rows.table("title", ("HEAD", "TAIL"), lines)
    short = capsys.readouterr().out
    monkeypatch.setattr(rows, "_LONG", 1)
    rows.table("title", ("HEAD", "TAIL"), lines)
    long = capsys.readouterr().out
    assert [line.rstrip() for line in long.splitlines()] == [
        line.rstrip() for line in short.splitlines()
    ]
