"""Tables for people, on terminals of every width."""

import pytest

from keyplane.cli import rows

HEADS = ("ENTRY", "UNITS", "VALUE")
LINES = [("web:main@alpha", "first second third", "x" * 30), ("db:main@beta", "", "y")]
WORDS = {word for line in LINES for cell in line for word in cell.split()}


def shown(columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    rows.table("title", HEADS, LINES)
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", [20, 40, 50, 60, 65, 70, 80, 200])
def test_no_word_is_broken_on_any_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is cut in two can be neither read nor copied."""
    assert set(shown(columns, capsys, monkeypatch).split()) >= WORDS


def test_a_terminal_wide_enough_gets_a_line_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "web:main@alpha   first second third   xxx" in shown(80, capsys, monkeypatch)


def test_a_narrow_terminal_gets_a_block_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty cell is left out of it."""
    lines = [line.strip() for line in shown(40, capsys, monkeypatch).splitlines()]
    assert "ENTRY  db:main@beta" in lines
    assert sum(line.startswith("UNITS") for line in lines) == 1


@pytest.mark.parametrize("times", [1, 1000])
def test_no_line_ends_in_blanks(times: int) -> None:
    """A table is copied into texts, and compared."""
    made = list(rows.tabled("title", HEADS, LINES * times))
    assert len(made) == 3 + len(LINES) * times
    assert made == [line.rstrip() for line in made]
