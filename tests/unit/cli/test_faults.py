"""What is wrong with a command line is said as a diagnostic is: `x MESSAGE`, and its ways out."""

import signal
import sys
from pathlib import Path

import pytest

from keyplane.cli import faults, on_machine, registry


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> "Said":
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KEYPLANE_FLEET", raising=False)
    monkeypatch.delenv("KEYPLANE_STATE", raising=False)
    return Said(monkeypatch, capsys)


class Said:
    """What a command says on stderr, in this process and in an empty directory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, line: str) -> list[str]:
        program, *words = line.split()
        group = registry.keyplane if program == "keyplane" else on_machine.group
        self._monkeypatch.setattr(sys, "argv", [program, *words])
        former = signal.getsignal(signal.SIGINT)
        try:
            with pytest.raises(SystemExit) as ended:
                registry.guarded(group)
        finally:
            signal.signal(signal.SIGINT, former)
        assert ended.value.code == 2, line
        found = self._capsys.readouterr()
        assert found.out == "", line
        return found.err.splitlines()


LINES = [
    *(f"keyplane {name} --nope" for name in registry.COMMANDS),
    *(f"keyplane-agent {name} --nope" for name in on_machine.group.commands),
    "keyplane --nope",
    "keyplane nope",
    "keyplane plan",
    "keyplane plan nope",
    "keyplane apply nope",
    "keyplane apply . nope",
    "keyplane apply --why",
    "keyplane apply --over nope",
    "keyplane apply --volumes nope",
    "keyplane status",
    "keyplane diff nope.json nope.json",
    "keyplane schema nope",
    "keyplane machine nope",
    "keyplane rollout show nope",
    "keyplane events",
    "keyplane push",
    "keyplane-agent nope",
    "keyplane-agent status",
]


@pytest.mark.parametrize("line", LINES)
def test_whatever_is_wrong_is_said_in_one_way(said: Said, line: str) -> None:
    first, *others = said(line)
    assert first.startswith("x "), first
    assert all(each.startswith("  resolution: ") for each in others), others


def test_a_command_line_that_is_written_wrong_is_shown_as_it_is_written(said: Said) -> None:
    line = "keyplane pin [OPTIONS] MACHINE INTERFACE PROVIDER-MACHINE"
    assert said("keyplane pin alpha") == [
        "x missing argument 'INTERFACE'",
        f"  resolution: write `{line}`; `keyplane pin --help` tells of each",
    ]
    assert said("keyplane apply --over nope")[0] == (
        "x invalid value for '--over': 'nope' is no whole number"
    )


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("keyplane stat", "x no command `stat`; did you mean status?"),
        ("keyplane apple", "x no command `apple`; did you mean apply?"),
        ("keyplane un", "x no command `un`; did you mean unassign or unpin or uncordon?"),
        ("keyplane xyzzy", "x no command `xyzzy`"),
        ("keyplane machine shw", "x no command `shw`; did you mean show?"),
        ("keyplane down --unit", "x no option --unit; did you mean --units?"),
    ],
)
def test_what_was_meant_is_named(said: Said, line: str, near: str) -> None:
    """What begins so first: of `stat` the commonest is no longer `start`."""
    assert said(line)[0] == near


def test_nobody_is_sent_to_begin_where_no_fleet_is(said: Said) -> None:
    here = Path()
    nowhere = said("keyplane status")
    assert "no fleet.toml, fleet.json or fleet.star is in it" in nowhere[0]
    (here / "fleet.toml").write_text("")
    assert said("keyplane status")[1:] == ["  resolution: begin with `keyplane up .`"]
    (here / ".keyplane" / "controller").mkdir(parents=True)
    (here / "modules").mkdir()
    assert said("keyplane status modules")[1:] == ["  resolution: name its fleet directory: ."]


def test_a_fault_of_ours_that_is_shown_by_click_looks_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = faults.UnusableError("so it is", "do that")
    error.show()
    assert capsys.readouterr().err == "x so it is\n  resolution: do that\n"


def test_who_names_an_instance_for_its_logs_is_told_how_to_name_all_of_it(said: Said) -> None:
    Path(".keyplane/controller").mkdir(parents=True)
    assert said("keyplane logs") == ["x name an entry, or a part by --part"]
    folder = Path(".keyplane/machines/alpha/log/motd+main@alpha")
    folder.mkdir(parents=True)
    (folder / "page.log").touch()
    assert said("keyplane logs motd") == [
        "x nothing wrote a log as motd here: there are motd:main@alpha",
        "  resolution: write 'motd:*' for all of motd",
    ]
    assert said("keyplane logs modt:main@alpha") == [
        "x nothing wrote a log as modt:main@alpha here; did you mean motd:main@alpha?"
    ]


def test_a_fleet_without_a_local_machine_says_what_to_write(said: Said) -> None:
    Path("fleet.toml").write_text('fleet = "far"\n')
    first, way = said("keyplane up")
    assert "has no machine with `local = true`" in first
    assert way.startswith("  resolution: say `local = true`")
