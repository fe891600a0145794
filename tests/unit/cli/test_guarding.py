"""Whatever is said to a command, and whatever becomes of it: a word, a status, and no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from keyplane.cli import registry
from tests.unit.cli.test_offline_commands import APP, FLEET, write


def ran(*words: str | bytes | Path, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "keyplane.cli", *words],
        capture_output=True,
        check=False,
        cwd=cwd,
        text=True,
    )


def guarded(command: click.Command, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of a group with that one command."""
    group = click.Group("keyplane", commands={"it": command})
    monkeypatch.setattr(sys, "argv", ["keyplane", "it"])
    former = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            registry.guarded(group)
    finally:
        signal.signal(signal.SIGINT, former)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(click.Command("it", callback=interrupt), monkeypatch) == 130
    assert capsys.readouterr().err == "\nkeyplane: interrupted\n"


def test_an_interrupt_that_a_library_makes_an_error_of_is_one_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Python does where it comes while a class is made."""

    def wrapped() -> None:
        try:
            interrupt()
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    assert guarded(click.Command("it", callback=wrapped), monkeypatch) == 130
    assert capsys.readouterr().err == "keyplane: interrupted\n"


def test_where_interrupts_are_ignored_they_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert guarded(click.Command("it", callback=interrupt), monkeypatch) == 0
    finally:
        signal.signal(signal.SIGINT, former)


def test_a_fault_of_ours_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong() -> None:
        raise RuntimeError("so")

    assert guarded(click.Command("it", callback=wrong), monkeypatch) == 70
    assert "a fault of keyplane itself: RuntimeError: so" in capsys.readouterr().err


def test_a_word_that_is_no_text_is_refused(tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP)
    for words in (
        ("explain", fleet, b"app\xff"),
        ("plan", b"fleet\xff"),
        ("set", b"app.size", b"\xff"),
    ):
        ended = ran(*words)
        assert ended.returncode == 2, words
        assert "\\udcff' is no UTF-8 text" in ended.stderr, words
        assert "Traceback" not in ended.stderr, words


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    """The one that the shell stands in."""
    gone = tmp_path / "gone"
    gone.mkdir()
    ended = subprocess.run(
        ["sh", "-c", f'rmdir "$PWD"; exec {sys.executable} -P -m keyplane.cli status'],
        capture_output=True,
        check=False,
        cwd=gone,
        text=True,
    )
    assert ended.returncode == 1
    assert ended.stderr == "x the directory that you stand in: No such file or directory\n"


def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    fleet = write(tmp_path / "fleet", FLEET + APP)
    plan = tmp_path / "plan.json"
    assert ran("plan", fleet, "-o", plan).returncode == 0
    for words in (
        ("diff", "/dev/zero", plan),
        ("diff", plan, "/dev/zero"),
        ("plan", fleet, "--previous", "/dev/zero"),
        ("explain", fleet, "app:main@alpha", "--previous", "/dev/zero"),
        ("graph", fleet, "--previous", "/dev/zero"),
        ("react", "/dev/zero"),
    ):
        ended = ran(*words)
        assert ended.returncode == 2, words
        assert ended.stderr == "x /dev/zero is neither a file nor a pipe\n", words


@pytest.mark.parametrize("command", [("diff", "x.json", "x.json"), ("react", "x.json")])
def test_a_file_that_is_nested_too_deep_is_refused(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    """In a field that nobody knows, too."""
    (tmp_path / "x.json").write_text('{"unknown": ' + "[" * 50_000)
    ended = ran(*command, cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert "x.json" in ended.stderr
    assert "fault of keyplane" not in ended.stderr


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    """As a shell's `<(…)` makes one; of a trace that is too large no more than its limit."""
    fleet = write(tmp_path / "fleet", FLEET + APP)
    made = ran("plan", fleet, "--json").stdout
    ended = subprocess.run(
        [sys.executable, "-m", "keyplane.cli", "diff", "/dev/stdin", "/dev/fd/0"],
        capture_output=True,
        check=False,
        input=made,
        text=True,
    )
    assert "is no plan" in ended.stderr  # read once, it is empty the second time
    (tmp_path / "trace.json").write_bytes(b" " * ((64 << 20) + 1))
    ended = ran("react", tmp_path / "trace.json")
    assert (ended.returncode, ended.stderr) == (
        2, f"x {tmp_path}/trace.json holds more than 64 MiB\n",
    )  # fmt: skip
