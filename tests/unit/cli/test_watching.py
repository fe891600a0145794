"""A rollout is watched to its end, whatever becomes of the controller meanwhile."""

import contextlib
import fcntl
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from keyplane.cli import watching
from keyplane.parts import control_messages as messages
from keyplane.parts import embedded, unix_socket
from keyplane.parts.rollout_messages import RolloutRow, RolloutView
from keyplane.parts.state_dir import StateDir
from keyplane.ports.control import ControlUnreachableError

BEGUN = messages.Begun(rollout=4, entries=1)
DONE = messages.Ended(
    outcome="done",
    started=0,
    restarted=1,
    reloaded=0,
    stopped=0,
    untouched=0,
    milliseconds=0,
)
Answer = Callable[[], Iterator[messages.Event]]


def taken() -> Iterator[messages.Event]:
    yield BEGUN
    yield DONE


def closed() -> Iterator[messages.Event]:
    """As a controller that is told to end closes its streams, before it said anything."""
    yield from ()


def killed() -> Iterator[messages.Event]:
    raise ControlUnreachableError("the controller does not answer")
    yield BEGUN


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the control plane is there, from now on."""
    is_so = [True]
    monkeypatch.setattr(embedded, "lives", lambda _: is_so[0])
    monkeypatch.setattr(embedded, "controller", lambda _: None)
    return is_so


@contextlib.contextmanager
def controller(path: Path, told: Mapping[str, Sequence[msgspec.Struct]]) -> Iterator[None]:
    """Answers each question by what it asks, however often that is."""
    ends = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.settimeout(60)
        with connection, connection.makefile("rb") as stream:
            asked = line = stream.readline()
            while line not in (b"\r\n", b""):
                line = stream.readline()
            found = told.get(asked.split()[1].decode(), ()) if asked else ()
            body = b"".join(msgspec.json.encode(each) + b"\n" for each in found)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    def run() -> None:
        with unix_socket.listen(path) as server:
            server.settimeout(0.05)
            while not ends.is_set():
                with contextlib.suppress(OSError):  # who asked went away, or nobody did
                    answer(server.accept()[0])

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def begun_and_lost() -> Iterator[messages.Event]:
    yield BEGUN
    raise ControlUnreachableError("the controller does not answer")


def watch(folder: Path, *answers: Answer) -> tuple[int, list[bool]]:
    """The exit status, and of each time it was asked whether it was said to be a repetition."""
    asked: list[bool] = []

    def begin(*, repeated: bool) -> Iterator[messages.Event]:
        asked.append(repeated)
        return answers[len(asked) - 1]()

    return watching.watch(StateDir(folder), begin, as_json=True), asked


@pytest.mark.usefixtures("lives")
@pytest.mark.parametrize("lost", [closed, killed])
def test_one_that_went_away_before_it_said_anything_is_asked_again(
    tmp_path: Path, lost: Answer
) -> None:
    assert watch(tmp_path, taken) == (0, [False])
    assert watch(tmp_path, lost, taken) == (0, [False, True])
    assert watch(tmp_path, lost, lost, taken) == (0, [False, True, True])


@pytest.mark.usefixtures("lives")
def test_one_that_goes_away_each_time_is_not_asked_for_ever(tmp_path: Path) -> None:
    """What is asked may be what kills it."""
    with pytest.raises(ControlUnreachableError, match="`keyplane history` shows whether it did"):
        watch(tmp_path, closed, killed, killed, taken)


def test_one_that_was_stopped_is_not_waited_for(tmp_path: Path, lives: list[bool]) -> None:
    lives[0] = False
    with pytest.raises(ControlUnreachableError, match="before it said that it took this"):
        watch(tmp_path, closed, taken)


def test_a_supervisor_whose_socket_is_made_anew_is_no_control_plane_that_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known by its lock meanwhile."""
    monkeypatch.setattr(embedded, "controller", lambda _: None)
    with StateDir(tmp_path).supervisor_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert watch(tmp_path, closed, taken) == (0, [False, True])
    with pytest.raises(ControlUnreachableError, match="before it said that it took this"):
        watch(tmp_path, closed, taken)


@pytest.mark.usefixtures("lives")
@pytest.mark.parametrize(
    ("outcome", "exit_status", "said"),
    [("done", 0, ""), ("superseded", 1, "rollout 5 took this one over")],
)
def test_how_it_ended_is_told_though_another_began_meanwhile(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    outcome: Literal["done", "superseded"],
    exit_status: int,
    said: str,
) -> None:
    """Nobody was there to hear it when the controller was away: it is asked for."""
    row = RolloutRow(
        number=4,
        state=outcome,
        open=False,
        who="ada",
        created_ms=0,
        generation="",
        step=1,
        steps=1,
        said="",
    )
    view = RolloutView(rollout=row, machines=[], end=msgspec.structs.replace(DONE, outcome=outcome))
    path = StateDir(tmp_path).control_socket
    path.parent.mkdir(parents=True)
    newer = messages.Begun(rollout=5, entries=1)
    told = {"/v1/rollouts/latest/events": [newer, DONE], "/v1/rollouts/4": [view]}
    with controller(path, told):
        assert watch(tmp_path, begun_and_lost) == (exit_status, [False])
    end = msgspec.json.decode(capsys.readouterr().out.splitlines()[-1])
    assert (end["event"], end["outcome"]) == ("end", outcome)
    assert said in end["why"]
