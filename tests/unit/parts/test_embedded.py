"""Commands wait for parts of a control plane that are on their way."""

from pathlib import Path
from typing import Any

import pytest

from keyplane.parts import embedded
from keyplane.parts.embedded import StartError
from keyplane.parts.state_dir import StateDir
from keyplane.ports.control import ControlUnreachableError


class Waiting:
    """A controller that answers once it was asked some times, by a supervisor that says this of it."""

    def __init__(self, patch: pytest.MonkeyPatch, pid: int | None) -> None:
        self.left = 3
        part = {"pid": pid, "starts": 2, "problem": "ended with status 1"}
        patch.setattr(embedded, "TROUBLE_S", 0.0)
        patch.setattr(embedded, "ask_supervisor", lambda *_: {"controller": part})
        patch.setattr(embedded, "ControlClient", lambda *_, **__: self)

    def ready(self) -> Any:
        self.left -= 1
        if self.left > 0:
            raise ControlUnreachableError("nobody listens")


def test_one_that_runs_again_is_waited_for_although_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes to come to its socket."""
    waiting = Waiting(monkeypatch, pid=1)
    embedded.controller(StateDir(tmp_path))
    assert waiting.left == 0


def test_one_that_does_not_run_is_named_with_its_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Waiting(monkeypatch, pid=None)
    with pytest.raises(StartError, match="controller: ended with status 1"):
        embedded.controller(StateDir(tmp_path))
