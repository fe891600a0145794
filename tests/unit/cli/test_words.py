"""One vocabulary: what is to happen is said alike by every command, in words of the glossary."""

from pathlib import Path

import pytest
from click import unstyle

from keyplane.cli import diff as diff_command
from keyplane.cli import progress, words
from keyplane.model.plan import Diff, Move, Retag

GLOSSARY = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text()
DIFF = Diff(
    activate=["new:main@a", "app:main@a", "file:main@a"],
    deactivate=["old:main@a", "app:main@a", "file:main@a"],
    reload=["conf:main@a"],
    rewire=["live:main@a"],
    untouched=["rest:main@a"],
    moves=[Move(entry="db:main", from_="a", to="b")],
    retags=[
        Retag(
            export="mesh:node/provides/peer/address",
            from_="static/routable",
            to="dynamic/routable",
            consumers=["app:main@a"],
        )
    ],
    units={"app:main@a": ["web", "worker"]},
    why={"app:main@a": ["env.web.A"], "file:main@a": ["dependency db:main@b"]},
)


@pytest.mark.parametrize("act", words.Act)
def test_what_can_happen_is_in_the_glossary(act: words.Act) -> None:
    assert f"**{act.value}**" in GLOSSARY


def test_diff_and_apply_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    applied = [unstyle(line) for line in progress.difference(DIFF)]
    diff_command.show(DIFF)
    shown = capsys.readouterr().out
    told = {line.entry: line.told for line in words.lines(DIFF)}
    assert told == {
        "app:main@a": "restart web, worker",
        "conf:main@a": "reload",
        "file:main@a": "apply, with no restart",
        "live:main@a": "apply live",
        "new:main@a": "start",
        "old:main@a": "stop",
    }
    for entry, words_of_it in told.items():
        assert any(entry in line and words_of_it in line for line in applied)
        assert any(entry in line and words_of_it in line for line in shown.splitlines())
    assert any("is retagged from static/routable to dynamic/routable" in line for line in applied)
    assert "is retagged from static/routable to dynamic/routable" in shown


def test_the_sum_leaves_out_what_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    diff_command.show(DIFF)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "1 start, 1 stop, 1 restart, 1 apply, with no restart, 1 reload, 1 apply live, "
        "1 of 2 keys moved by the cascade alone, 1 untouched"
    )
    empty = Diff(
        activate=[], deactivate=[], reload=[], rewire=[], untouched=["a:b@c"], moves=[],
        retags=[], units={}, why={},
    )  # fmt: skip
    diff_command.show(empty)
    assert capsys.readouterr().out == "no difference, 1 untouched\n"
