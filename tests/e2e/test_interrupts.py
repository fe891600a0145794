"""Both commands, interrupted from their first moments on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent
MOMENTS = (
    "keyplane",
    "keyplane.cli",
    "keyplane.cli.registry",
    "click",
    "click.core",
    "difflib",
    "keyplane.ports.errors",
)
"""Modules at whose import it is interrupted."""
HOOK = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


def interrupted(tmp_path: Path, command: str, moment: str, *, ignoring: bool = False):
    """The command, sent SIGINT by itself where it begins to import that module."""
    (tmp_path / "sitecustomize.py").write_text(HOOK)

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    return subprocess.run(
        [SCRIPTS / command, "no-such-command"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPTED_AT": moment},
        preexec_fn=ignore if ignoring else None,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("command", ["keyplane", "keyplane-agent"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_no_moment_of_a_command_shows_a_traceback(
    tmp_path: Path, command: str, moment: str
) -> None:
    """It ends by the signal, or says that it was interrupted."""
    ended = interrupted(tmp_path, command, moment)
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) in (
        (-signal.SIGINT, "", ""),
        (130, "", "keyplane: interrupted"),
    )


def test_an_interrupt_that_is_ignored_changes_nothing(tmp_path: Path) -> None:
    """As behind `&` in a script."""
    ended = interrupted(tmp_path, "keyplane", "keyplane.cli", ignoring=True)
    assert ended.returncode == 2
    assert "no-such-command" in ended.stderr


def test_an_interrupt_at_the_very_end_is_silent(tmp_path: Path) -> None:
    """While the interpreter ends, when all was said."""
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    )
    ended = subprocess.run(
        [SCRIPTS / "keyplane", "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")
