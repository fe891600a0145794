"""A command line outlives the controller that it speaks to."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from keyplane.parts import agent_socket, control_client, embedded, unix_socket
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import ControlClient
from keyplane.parts.state_dir import StateDir
from keyplane.ports.control import ControlUnreachableError

READY = msgspec.json.encode(messages.Ready(machines=["alpha"], generation=None))


def answer(connection: socket.socket) -> None:
    with connection:
        connection.recv(65536)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(READY)}\r\n\r\n"
        connection.sendall(head.encode() + READY)


def hang_up(connection: socket.socket) -> None:
    with connection:
        connection.recv(65536)


@contextlib.contextmanager
def controllers(path: Path, *lives: Callable[[socket.socket], None]) -> Iterator[list[int]]:
    """One after the other on one path, each for one question; counts how many were asked.

    Nobody looks whether one still lives: that would be a question, too.
    """
    asked: list[int] = []

    def run() -> None:
        for number, live in enumerate(lives):
            with unix_socket.listen(path) as server:
                server.settimeout(60)
                connection, _ = server.accept()
                asked.append(number)
                live(connection)

    thread = threading.Thread(target=run)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_client, "TELL_S", 60.0)
        yield asked
    thread.join(60)
    assert not thread.is_alive()


def test_one_that_is_started_meanwhile_is_waited_for(tmp_path: Path) -> None:
    """Its socket refuses at first: nothing was said yet."""
    path = tmp_path / "control.sock"
    unix_socket.listen(path).close()
    tries: list[None] = []

    def comes_back() -> bool:
        tries.append(None)
        if len(tries) == 3:
            held.enter_context(controllers(path, answer))
        return True

    with contextlib.ExitStack() as held:
        assert ControlClient(path, comes_back=comes_back).ready().machines == ["alpha"]
    assert len(tries) >= 3


def test_what_changes_nothing_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with controllers(path, hang_up, hang_up, answer) as asked:
        client = ControlClient(path, comes_back=lambda: True)
        assert client.ready().machines
    assert asked == [0, 1, 2]


def test_an_apply_that_was_heard_is_not_said_twice(tmp_path: Path) -> None:
    """Whoever asked is told that it is not known what came of it."""
    path = tmp_path / "control.sock"
    apply = messages.Apply(
        asked=changes.Directory(files={}), parent=None, revision=None, generation=""
    )
    with controllers(path, hang_up) as asked:
        client = ControlClient(path, comes_back=lambda: True)
        with pytest.raises(ControlUnreachableError):
            list(client.apply(apply))
    assert asked == [0]


def test_an_answer_is_heard_of_one_that_takes_no_more_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may answer its last just when it is looked at whether it lives."""
    path = tmp_path / "control.sock"
    looked = threading.Event()
    connect = unix_socket.connect

    def watched(path: Path) -> socket.socket:
        try:
            return connect(path)
        except OSError:
            looked.set()
            raise

    def answers_late() -> None:
        with unix_socket.listen(path) as server:
            listens.set()
            server.settimeout(60)
            connection, _ = server.accept()
        assert looked.wait(60)
        answer(connection)

    monkeypatch.setattr(unix_socket, "connect", watched)
    monkeypatch.setattr(control_client, "TELL_S", 0.05)
    listens = threading.Event()
    thread = threading.Thread(target=answers_late)
    thread.start()
    assert listens.wait(60)
    looked.clear()
    assert ControlClient(path).ready().machines == ["alpha"]
    thread.join(60)


def break_off(connection: socket.socket) -> None:
    """In the midst of a line."""
    with connection:
        connection.recv(65536)
        half = b'{"event": "beg'
        head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + f"{len(half):x}\r\n".encode() + half + b"\r\n")


def test_half_an_event_tells_of_a_controller_that_ended(tmp_path: Path) -> None:
    """And not of one of another version."""
    path = tmp_path / "control.sock"
    with controllers(path, break_off):
        client = ControlClient(path, comes_back=lambda: True)
        with pytest.raises(ControlUnreachableError):
            list(client.follow())


def test_half_an_answer_of_a_part_is_none(tmp_path: Path) -> None:
    """It ended meanwhile."""
    state = StateDir(tmp_path / ".keyplane")
    path = state.supervisor_socket
    path.parent.mkdir(parents=True)

    def ask_agent() -> None:
        with pytest.raises(OSError, match="closed the connection"):
            agent_socket.ask(path, {"do": "status"})

    for ask in (lambda: embedded.ask_supervisor(state, {"do": "parts"}), ask_agent):
        with unix_socket.listen(path) as server, ThreadPoolExecutor() as pool:
            asked = pool.submit(ask)
            server.settimeout(60)
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b'{"bus": {"pid": 1')
            assert asked.result(60) is None


def test_one_that_does_not_come_back_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(ControlUnreachableError, match="does not answer"):
        ControlClient(tmp_path / "control.sock").ready()
