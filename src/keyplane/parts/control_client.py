"""Speaks to a controller over its Unix socket. Used by the command line.

On the standard library's client: a command is started for each question, and pays for what it
imports.
"""

import contextlib
import http.client
import select
import socket
import sys
import time
import urllib.parse
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from keyplane.parts import change_messages as changes
from keyplane.parts import (
    collection_messages,
    occurrence_messages,
    rollout_messages,
    unix_socket,
    volume_messages,
)
from keyplane.parts import control_messages as messages
from keyplane.ports.control import (
    ControlRefusedError,
    ControlSilentError,
    ControlUnreachableError,
)

T = TypeVar("T")

TIMEOUT_S = 30.0
"""A plan of a large fleet takes seconds; more means that nobody is working on it."""
COMES_BACK_S = 60.0
"""A controller that was killed is back in a second, on a machine that is busy in twenty."""
POLL_S = 0.05
TELL_S = 1.0
"""Who waits twice as long, for an answer and then for a sign of life, is told for whom."""
KEEP_ALIVE_S = 5.0
"""A stream of events has an empty line so often, so that silence tells of a controller that hangs."""


class RefusedError(ControlRefusedError):
    """Carries the controller's answer, with its rows."""

    def __init__(self, problem: messages.Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("keyplane", timeout=timeout_s)
        self._path = path
        self._timeout_s = timeout_s

    def connect(self) -> None:
        self.sock = unix_socket.connect(self._path)
        self.sock.settimeout(self._timeout_s)

    def await_answer(self) -> None:
        """Wait for the first byte of an answer, for as long as the controller lives.

        It may pack archives for minutes, and answers other questions meanwhile.
        """
        pid = unix_socket.listener_pid(self.sock)
        told = False
        heard = time.monotonic()
        while not _readable(self.sock, TELL_S):
            if self._lives():
                heard = time.monotonic()
            elif time.monotonic() - heard > self._timeout_s:
                raise ControlSilentError(
                    f"the controller (pid {pid}) has not answered for {self._timeout_s:.0f} s: "
                    f"it hangs, or is stopped\n  resolution: `kill -CONT {pid}` lets one that is "
                    f"stopped go on\n  resolution: after `kill -KILL {pid}` another is started, "
                    "which goes on where this one was"
                )
            elif not told:
                told = True
                sys.stderr.write(
                    f"keyplane: the controller (pid {pid}) does not answer yet; "
                    f"this gives up after {self._timeout_s:.0f} s\n"
                )
                sys.stderr.flush()

    def _lives(self) -> bool:
        """Whether it answers the shortest of all questions.

        One that takes no more of them may have answered ours: its connection tells.
        """
        other = _Connection(self._path, TELL_S)
        try:
            other.request("GET", "/v1/ready")
            return _readable(other.sock, TELL_S)
        except OSError:
            return False
        finally:
            other.close()


def _readable(connection: socket.socket, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def _never() -> bool:
    return False


class ControlClient:
    """The controller of one fleet; a connection is made for each question.

    A controller may end between two questions and be started again. `comes_back` says whether
    that is to be expected: then a connection that nobody takes is tried again for a while, as
    nothing was said yet, and so is a question that changes nothing.
    """

    def __init__(self, path: Path, *, comes_back: Callable[[], bool] = _never) -> None:
        self._path = path
        self._comes_back = comes_back

    def ready(self) -> messages.Ready:
        return self._ask("GET", "/v1/ready", None, messages.Ready)

    def status(self) -> messages.Status:
        return self._ask("GET", "/v1/status", None, messages.Status)

    def machines(self) -> list[messages.MachineRow]:
        return self._ask("GET", "/v1/machines", None, messages.MachineRows).machines

    def machine(self, name: str) -> messages.MachineView:
        path = f"/v1/machines/{urllib.parse.quote(name, safe='')}"
        return self._ask("GET", path, None, messages.MachineView)

    def collection(self) -> collection_messages.Collection:
        return self._ask("GET", "/v1/collection", None, collection_messages.Collection)

    def collect(self) -> collection_messages.Collection:
        return self._ask("POST", "/v1/collection", None, collection_messages.Collection)

    def collect_automatically(self, *, automatic: bool) -> collection_messages.Collection:
        path = f"/v1/collection?automatic={'on' if automatic else 'off'}"
        return self._ask("POST", path, None, collection_messages.Collection)

    def history(self, limit: int) -> list[changes.RevisionRow]:
        return self._ask("GET", f"/v1/revisions?limit={limit}", None, changes.History).revisions

    def revision(self, number: int | None) -> changes.Shown:
        """With its text; the newest one if none is named."""
        name = "newest" if number is None else number
        return self._ask("GET", f"/v1/revisions/{name}", None, changes.Shown)

    def target(self) -> messages.Target:
        return self._ask("GET", "/v1/target", None, messages.Target)

    def audit(self, limit: int) -> list[changes.AuditRow]:
        return self._ask("GET", f"/v1/audit?limit={limit}", None, changes.AuditLog).rows

    def propose(
        self, asked: changes.Asked, volumes: dict[str, str] | None = None
    ) -> messages.Proposal:
        body = messages.encode_text(messages.Propose(asked=asked, volumes=volumes or {}))
        return self._ask("POST", "/v1/proposals", body, messages.Proposal)

    def say(self, word: messages.Say) -> messages.Said:
        """Have an entry stopped, or started again; returns once that is recorded."""
        return self._ask("POST", "/v1/words", messages.encode_text(word), messages.Said)

    def backups(self) -> volume_messages.Backups:
        return self._ask("GET", "/v1/backups", None, volume_messages.Backups)

    def back_up(self, asked: volume_messages.BackUp) -> volume_messages.Pending:
        """Have an entry's volumes saved; returns once that is ordered."""
        body = messages.encode_text(asked)
        return self._ask("POST", "/v1/backups", body, volume_messages.Pending)

    def forget_backup(self, asked: volume_messages.Forget) -> volume_messages.Backups:
        body = messages.encode_text(asked)
        return self._ask("POST", "/v1/backups/forgotten", body, volume_messages.Backups)

    def occurrences(
        self, asked: occurrence_messages.OccurrencesAsked
    ) -> occurrence_messages.Occurrences:
        body = messages.encode_text(asked)
        return self._ask("POST", "/v1/occurrences", body, occurrence_messages.Occurrences)

    def apply(self, apply: messages.Apply) -> Iterator[messages.Event]:
        """Yield what happens until the rollout ends; the last is an `Ended`.

        Leaving early leaves the rollout running.
        """
        return self._events("POST", "/v1/applies", messages.encode_text(apply))

    def rollouts(self) -> list[rollout_messages.RolloutRow]:
        return self._ask("GET", "/v1/rollouts", None, rollout_messages.RolloutRows).rollouts

    def rollout(self, number: int | None) -> rollout_messages.RolloutView:
        """That one, or the latest."""
        return self._ask("GET", f"/v1/rollouts/{number or 0}", None, rollout_messages.RolloutView)

    def act(self, asked: rollout_messages.RolloutAct) -> rollout_messages.RolloutView:
        """Say a word on a rollout; said twice it is the same word."""
        body = messages.encode_text(asked)
        return self._ask("POST", "/v1/rollouts/acts", body, rollout_messages.RolloutView)

    def freeze(self, asked: rollout_messages.RolloutAct) -> rollout_messages.Frozen:
        """Say `freeze` or `thaw`; said twice it is the same word."""
        body = messages.encode_text(asked)
        return self._ask("POST", "/v1/rollouts/acts", body, rollout_messages.Frozen)

    def again(self, asked: rollout_messages.Again) -> Iterator[messages.Event]:
        """Send the target once more; yields as `apply` does."""
        return self._events("POST", "/v1/rollouts/again", messages.encode_text(asked))

    def follow(self) -> Iterator[messages.Event]:
        """Yield what happens in the rollout that is open, or the end of the last one."""
        return self._events("GET", "/v1/rollouts/latest/events", None)

    def _ask(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        """Ask what changes nothing, so that it may be asked twice."""
        deadline = time.monotonic() + COMES_BACK_S
        while True:
            try:
                with self._answer(method, path, body, TIMEOUT_S, deadline) as answer:
                    return msgspec.json.decode(answer.read(), type=kind)
            except ControlSilentError:
                raise
            except ControlUnreachableError as error:
                silent = isinstance(error.__cause__, TimeoutError)
                if silent or time.monotonic() > deadline or not self._comes_back():
                    raise
                time.sleep(POLL_S)

    def _events(self, method: str, path: str, body: bytes | None) -> Iterator[messages.Event]:
        deadline = time.monotonic() + COMES_BACK_S
        with self._answer(method, path, body, TIMEOUT_S, deadline) as answer:
            while line := answer.readline():
                if not line.endswith(b"\n"):  # it ended amid it
                    raise http.client.IncompleteRead(line)
                if line != b"\n":
                    yield msgspec.json.decode(line, type=messages.Event)

    @contextlib.contextmanager
    def _answer(
        self, method: str, path: str, body: bytes | None, timeout_s: float, deadline: float
    ) -> Generator[http.client.HTTPResponse]:
        """Yield the answer of whoever takes the connection by the deadline, if one comes back."""
        connection = _Connection(self._path, timeout_s)
        try:
            self._connect(connection, deadline)
            connection.request(method, path, body)
            connection.await_answer()
            answer = connection.getresponse()
            if answer.status >= http.client.BAD_REQUEST:
                raise RefusedError(_problem(answer.status, answer.read()))
            yield answer
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise ControlUnreachableError(f"the controller does not answer ({reason})") from error
        except msgspec.MsgspecError as error:
            raise ControlRefusedError(
                f"the controller answered what this version does not understand: {error}\n"
                "  resolution: if Keyplane was upgraded since, `keyplane down` and `keyplane up` run "
                "its parts in this version; services run on"
            ) from error
        finally:
            connection.close()

    def _connect(self, connection: _Connection, deadline: float) -> None:
        while True:
            try:
                connection.connect()
            except OSError:
                if time.monotonic() > deadline or not self._comes_back():
                    raise
                time.sleep(POLL_S)
            else:
                return


def _problem(status: int, body: bytes) -> messages.Problem:
    try:
        return msgspec.json.decode(body, type=messages.Problem)
    except msgspec.MsgspecError:
        text = f"the controller answered {status}: {body[:200].decode(errors='replace')}"
        return messages.Problem(code="internal", message=text)
