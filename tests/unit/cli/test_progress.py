"""What an apply shows."""

import pytest

from keyplane.cli import progress, status_view
from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.plan import NO_DIFFERENCE, Diff
from keyplane.parts import freezing
from keyplane.parts.control_messages import (
    Begun,
    Ended,
    EntryMoved,
    Failure,
    Proposal,
    RolloutStatus,
    Stepped,
)
from keyplane.parts.volume_messages import Inherited


def shown(severity: Severity, capsys: pytest.CaptureFixture[str]) -> str:
    row = Diagnostic(code="x", subject="web:main", path="", message="wrong", severity=severity)
    diff = Diff(
        deactivate=["web:main@alpha"],
        activate=[],
        reload=[],
        rewire=[],
        untouched=[],
        moves=[],
        retags=[],
        units={},
        why={},
    )
    progress.show_proposal(
        Proposal(
            fleet="f",
            revision=None,
            digest="",
            parent=None,
            generation="g",
            diagnostics=[row],
            diff=diff,
            entries=0,
        )
    )
    return capsys.readouterr().out


def test_errors_are_shown_without_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is applied, and an entry that only lacks its plan would be shown as stopped."""
    assert "web:main@alpha  stop" not in shown(Severity.ERROR, capsys)


def test_warnings_are_shown_before_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(Severity.WARNING, capsys)
    assert 0 <= out.index("x wrong") < out.index("- web:main@alpha  stop")


def test_a_log_is_shown_with_its_lines_cut_and_nothing_in_them_obeyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a failed unit printed hides neither the cause above it nor the sum below it."""
    failure = Failure(entry="web:main@alpha", cause="page is failed", log=["y" * 8000, "\x1b[2J"])
    progress.show_end(
        Ended(
            outcome="failed",
            started=0,
            restarted=0,
            reloaded=0,
            stopped=0,
            untouched=0,
            milliseconds=0,
            failures=[failure],
        )
    )
    err = capsys.readouterr().err
    assert "keyplane logs web:main@alpha" in err
    assert max(len(line) for line in err.splitlines()) < 500
    assert "\x1b[2J" not in err
    assert "\\x1b[2J" in err


def test_nothing_that_a_machine_says_is_obeyed_by_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The holder of a port has whatever command line it likes."""
    odd = "port 7 is held by pid 9 (x\x1b[2J\ny)"
    end = Ended(
        outcome="failed",
        started=0,
        restarted=0,
        reloaded=0,
        stopped=0,
        untouched=0,
        milliseconds=0,
        failures=[Failure(entry="web:main@alpha", cause=odd)],
        why=odd,
    )
    step = Stepped(step=1, steps=1, phase="waiting", machines=["alpha"], said=odd)
    moved = EntryMoved(entry="web:main@alpha", state="failed", detail=odd)
    progress.show_events([moved, step, end])
    shown = capsys.readouterr()
    told = [line for line in (shown.out + shown.err).splitlines() if "port 7" in line]
    assert len(told) == 4
    assert all("x\\x1b[2J\\ny)" in line for line in told)


def test_what_was_applied_with_no_restart_stands_in_the_sum() -> None:
    end = Ended(
        outcome="done",
        started=0,
        restarted=1,
        reloaded=0,
        applied=2,
        stopped=0,
        untouched=4,
        milliseconds=1300,
    )
    told = "1 restarted, 0 reloaded, 2 applied with no restart, 4 untouched, 1.3 s"
    assert progress.sum_line(end) == told


@pytest.mark.parametrize(
    ("paused", "way"),
    [
        (freezing.pause("by ann: until: monday"), "`keyplane thaw` lets it go on"),
        ("by ann", "`keyplane rollout resume 7` lets it go on"),
        ("by ann: the fleet is frozen ", "`keyplane rollout resume 7` lets it go on"),
    ],
)
def test_whoever_watches_a_paused_rollout_is_told_what_ends_that(
    paused: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f"paused before step 1 of 1: {paused}"
    step = Stepped(step=1, steps=1, phase="paused", machines=["alpha"], said=said)
    progress.show_events([Begun(rollout=7, entries=1), step])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [said.strip(), way]


def test_a_paused_rollout_is_said_to_be_so_once() -> None:
    why = "paused before step 1 of 1: by ann"
    rollout = RolloutStatus(number=7, state="paused", why=why, paused="by ann")
    assert next(status_view.rollout_lines(rollout)) == f"rollout 7 is {why}"


def test_what_is_done_is_said_once_it_has_begun(capsys: pytest.CaptureFixture[str]) -> None:
    """Before what comes of it; and not where nothing began."""
    step = Stepped(step=1, steps=1, phase="sending", machines=["alpha"], said="step 1 of 1")
    progress.show_events([Begun(rollout=7, entries=1), step], ["so it is"])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "so it is",
        "step 1 of 1",
    ]
    progress.show_events([], ["so it is"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("former", [None, "tutorial"])
def test_another_name_of_the_fleet_is_a_difference(
    former: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.show_proposal(
        Proposal(
            fleet="mine",
            former=former,
            revision=1,
            digest="",
            parent="g",
            generation="g",
            diagnostics=[],
            diff=NO_DIFFERENCE,
            entries=0,
        )
    )
    told = "no difference" if former is None else "> fleet tutorial  changes its name to mine"
    assert capsys.readouterr().out.splitlines() == [told, "  0 untouched"]


def test_whose_data_an_entry_starts_on_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    progress.show_proposal(
        Proposal(
            fleet="f",
            revision=1,
            digest="",
            parent="g",
            generation="h",
            diagnostics=[],
            diff=NO_DIFFERENCE,
            entries=1,
            inherited=[
                Inherited(
                    entry="db:main@alpha", of="pg:main@alpha", volumes={"data": "/var/lib/pg"}
                )
            ],
        )
    )
    told = "> db:main@alpha  starts on the data of pg:main@alpha (data in /var/lib/pg)"
    assert capsys.readouterr().out.splitlines()[-1] == told
