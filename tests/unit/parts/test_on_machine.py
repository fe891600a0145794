"""A command on a machine whose agent is between two lives."""

import fcntl
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from keyplane.model.declaration import NO_OFFER, Report
from keyplane.model.names import EntryId, MachineName
from keyplane.parts import agent_socket, unix_socket
from keyplane.parts.main.on_machine import AgentSilentError, OnMachine

WEB = EntryId("web:main@alpha")
REPORT = Report(
    machine=MachineName("alpha"), offer=NO_OFFER, settled=NO_OFFER, sequence=1, boot="b", entries={}
)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Of a machine whose agent has its lock, and listens nowhere yet."""
    root = tmp_path / "alpha"
    (root / "agent").mkdir(parents=True)
    lock = os.open(root / "agent" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield root
    os.close(lock)


def asked_of(root: Path, monkeypatch: pytest.MonkeyPatch, *then: Callable[[], None]) -> None:
    """Do one thing after each time that the agent was asked in vain."""
    left = list(then)
    ask = agent_socket.ask

    def asked(path: Path, request: dict[str, object]) -> bytes | None:
        try:
            answer = ask(path, request)
        except OSError:
            left.pop(0)()
            raise
        if answer is None:
            left.pop(0)()
        return answer

    monkeypatch.setattr(agent_socket, "ask", asked)


def serve(root: Path, *answers: bytes) -> Callable[[], None]:
    """Listen, and give each caller one of the answers; an empty one is none."""

    def answer(listener: socket.socket) -> None:
        with listener:
            for each in answers:
                client, _ = listener.accept()
                with client:
                    client.makefile("rb").readline()
                    client.sendall(each)

    def begin() -> None:
        listener = unix_socket.listen(root / "agent" / agent_socket.NAME)
        listener.settimeout(60)
        threading.Thread(target=answer, args=(listener,), daemon=True).start()

    return begin


def test_an_agent_that_is_just_started_is_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = msgspec.json.encode(REPORT) + b"\n"
    asked_of(root, monkeypatch, lambda: None, serve(root, told, b"true\n"))
    machine = OnMachine(root)
    assert machine.status() == (REPORT, True)
    assert machine.say(WEB, stop=True) == (True, True)


def test_one_that_ends_before_it_answers_is_asked_again_in_its_next_life(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of(root, monkeypatch, serve(root, b""), serve(root, json.dumps(False).encode() + b"\n"))
    assert OnMachine(root).say(WEB, stop=True) == (False, True)


def test_one_that_never_listens_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyplane.parts.main.on_machine.COMES_S", 0.0)
    with pytest.raises(AgentSilentError, match="the agent of alpha runs, and does not answer"):
        OnMachine(root).status()


def test_whoever_looks_keeps_nobody_from_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No agent runs, and somebody else just looks whether one does: it is no agent by that."""
    root = tmp_path / "alpha"
    (root / "agent").mkdir(parents=True)
    look = os.open(root / "agent" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(look, fcntl.LOCK_SH)
    machine = OnMachine(root)
    asked_of(root, monkeypatch, lambda: None, lambda: os.close(look))
    assert machine.say(WEB, stop=True) == (False, False)
