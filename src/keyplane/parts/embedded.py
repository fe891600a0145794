"""Starts and ends the embedded control plane of one fleet: what `keyplane up` and `down` do.

Units are not its business, except for `stop_units` once no agent runs any more.
"""

import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from keyplane.parts import unix_socket
from keyplane.parts.control_client import ControlClient
from keyplane.parts.control_messages import Ready
from keyplane.parts.state_dir import StateDir
from keyplane.ports.control import ControlSilentError, ControlUnreachableError
from keyplane.ports.errors import PortError

T = TypeVar("T")

START_S = 120.0
"""Four Python processes and a server start in two seconds on an idle machine, and in fifty on two
cores that ten others want."""
TROUBLE_S = 15.0
"""A part that ends is started again within five: one that still cannot run by then never will."""
ANSWER_S = 20.0
"""It does nothing that takes a second; a busy machine makes it ten."""
STOP_S = 30.0
"""The longest stop is that of a part that has to be killed, three times over."""
POLL_S = 0.02


class StartError(PortError):
    """The control plane did not come up; the message names the part and its log."""


def ask_supervisor(state: StateDir, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the supervisor's answer, or None if none runs."""
    pid = 0
    try:
        with unix_socket.connect(state.supervisor_socket) as client:
            pid = unix_socket.listener_pid(client)
            client.settimeout(ANSWER_S)
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile("rb") as stream:
                line = stream.readline()
    except TimeoutError:
        raise StartError(
            f"the supervisor (pid {pid}) has not answered for {ANSWER_S:.0f} s: it hangs, or is "
            f"stopped\n  resolution: `kill -CONT {pid}` lets one that is stopped go on"
        ) from None
    except OSError:
        return None
    return json.loads(line) if line.endswith(b"\n") else None  # else it ended amid it


def is_up(state: StateDir) -> bool:
    return ask_supervisor(state, {"do": "parts"}) is not None


def lives(state: StateDir) -> bool:
    """Whether a supervisor is there, also one whose socket is just being made anew."""
    return is_up(state) or _lock_held(state)


def controller(state: StateDir) -> ControlClient:
    """Return a client of the controller that runs; one that is being started is waited for.

    The client waits for it again where it ends meanwhile.
    """
    first = ControlClient(state.control_socket)

    def answers() -> bool | None:
        try:
            first.ready()
        except ControlSilentError:
            raise
        except ControlUnreachableError:
            if not lives(state):
                raise ControlUnreachableError(
                    f"no control plane runs for {state.fleet}: "
                    f"`keyplane up {shlex.quote(str(state.fleet))}`"
                ) from None
            return None
        return True

    _wait_for_parts(state, answers, lambda: "the controller does not answer")
    return ControlClient(state.control_socket, comes_back=lambda: lives(state))


def start(state: StateDir, machines: Sequence[str]) -> None:
    """Start the supervisor if none runs, and have it run an agent for each of the machines."""
    from keyplane.parts.supervisor import ALREADY_RUNS

    state.make()
    child: subprocess.Popen[bytes] | None = None
    answer: dict[str, Any] | None = None

    def answered() -> bool | None:
        nonlocal child, answer
        answer = ask_supervisor(state, {"do": "agents", "machines": list(machines)})
        if answer is not None and "ok" in answer:
            return True
        ended = None if child is None else child.poll()
        # One that is ending still has its lock, or somebody else started one just now.
        if child is None or ended == ALREADY_RUNS:
            child = _spawn(state, machines)
        elif ended is not None:
            why = _unwritable(state) or _last_line(state, "supervisor")
            raise StartError(f"the supervisor ended at once{why}")
        return None

    def late() -> str:
        said = "does not answer" if answer is None else f"answers {answer.get('error')}"
        return f"the supervisor {said}; see {state.logs}"

    _wait(answered, START_S, late)


def _spawn(state: StateDir, machines: Sequence[str]) -> "subprocess.Popen[bytes]":
    with (state.logs / "supervisor.log").open("ab") as sink:
        return subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-m", "keyplane.parts.main", "supervise", str(state.root), *machines],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
        )


def wait_ready(state: StateDir, machines: Sequence[str]) -> Ready:
    """Wait until the controller is on the bus and each agent was heard."""
    wanted = set(machines)
    last: list[Ready] = []

    def ready() -> Ready | None:
        try:
            last[:] = [ControlClient(state.control_socket).ready()]
        except ControlUnreachableError:
            return None
        return last[0] if wanted <= set(last[0].machines) else None

    return _wait_for_parts(state, ready, lambda: _missing(last, wanted))


def _missing(last: list[Ready], wanted: set[str]) -> str:
    if not last:
        return "the controller does not answer"
    return f"no agent was heard of {', '.join(sorted(wanted - set(last[0].machines)))}"


def _wait_for_parts(state: StateDir, poll: Callable[[], T | None], late: Callable[[], str]) -> T:
    """Wait as long as all parts run; one that cannot is named with the last that it said."""
    began = time.monotonic()
    while (found := poll()) is None:
        waited_s = time.monotonic() - began
        if not lives(state):
            raise StartError(f"the control plane of {state.fleet} was stopped meanwhile")
        if waited_s > TROUBLE_S:
            problems = _problems(state)
            if problems or waited_s > START_S:
                raise StartError(
                    f"{late()} after {waited_s:.0f} s; see {state.logs}"
                    + "".join(f"\n  {problem}" for problem in problems)
                )
        time.sleep(POLL_S)
    return found


def _problems(state: StateDir) -> list[str]:
    """Of parts that do not run now: one that ended before may be on its way, on a busy machine."""
    parts = ask_supervisor(state, {"do": "parts"}) or {}
    return [
        f"{name}: {part['problem']}{_last_line(state, name)}"
        for name, part in parts.items()
        if part["problem"] and part["pid"] is None
    ]


def _unwritable(state: StateDir) -> str:
    """Why no log says anything, as ` (…)`: nothing can be written beside it."""
    try:
        with tempfile.TemporaryFile(dir=state.logs) as file:
            file.write(b"\n")
    except OSError as error:
        return f" ({state.logs}: {error.strerror})"
    return ""


def _last_line(state: StateDir, part: str) -> str:
    """What its log ends with, as ` (…)`."""
    log = state.logs / f"{part.replace(' ', '-')}.log"
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    last = next((line for line in reversed(lines) if line.strip()), None)
    return "" if last is None else f" ({last.strip()})"


def stop(state: StateDir) -> bool:
    """End all parts and wait until they are gone; False if none ran."""
    if not lives(state):
        return False

    def ended() -> bool | None:
        asked = ask_supervisor(state, {"do": "stop"})
        return None if asked is not None or _lock_held(state) else True

    return _wait(ended, STOP_S, lambda: f"the supervisor does not end; see {state.logs}")


def _lock_held(state: StateDir) -> bool:
    from keyplane.parts import locks

    return locks.is_held(state.supervisor_lock)


def _wait(poll: Callable[[], T | None], seconds: float, late: Callable[[], str]) -> T:
    deadline = time.monotonic() + seconds
    while (found := poll()) is None:
        if time.monotonic() > deadline:
            raise StartError(late())
        time.sleep(POLL_S)
    return found
