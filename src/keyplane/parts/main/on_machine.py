"""What `keyplane-agent` reaches: the agent of this machine, or what it left where none runs."""

import asyncio
import contextlib
import fcntl
import getpass
import json
import os
import time
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import msgspec

from keyplane.adapters import clock
from keyplane.adapters.linux.artifacts import ArtifactCache
from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.converge import saved
from keyplane.converge.history import History
from keyplane.model.declaration import Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.parts import agent_socket, locks, state_dir
from keyplane.parts.agent_alone import Alone
from keyplane.ports.errors import PermanentError, TransientError
from keyplane.ports.store import StoreUnavailableError

COMES_S = 20.0
"""An agent listens milliseconds after it has its lock, and a command without one keeps that for as
long as a unit takes to end; a busy machine makes it ten seconds."""
POLL_S = 0.05


class AgentSilentError(TransientError):
    """It runs, and does not answer."""


class NoStateError(PermanentError):
    """Nothing here is a machine's state root."""


def find(start: Path) -> list[Path]:
    """The state roots of local machines at or below a fleet directory, by name."""
    return sorted(path.parent for path in start.glob(f"{state_dir.NAME}/machines/*/agent"))


class OnMachine:
    """One machine, by its state root."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        if not (self.root / "agent").is_dir():
            raise NoStateError(f"{root} is no state root of a machine: it has no `agent` folder")
        self.machine = MachineName(self.root.name)
        self._state = StateRoot(self.root)
        self._socket = self.root / "agent" / agent_socket.NAME

    def status(self) -> tuple[Report, bool]:
        """How it stands, and whether its agent runs and says so itself."""
        answer = self._ask({"do": "status"})
        if answer is not None:
            return msgspec.json.decode(answer, type=Report), True
        return asyncio.run(self._alone().look()), False

    def say(self, entry: EntryId, *, stop: bool) -> tuple[bool, bool]:
        """Stop an entry, or let it run; whether it is declared here, and whether the agent runs."""
        deadline = time.monotonic() + COMES_S
        while True:
            answer = self._ask({"do": "stop" if stop else "start", "entry": entry}, deadline)
            if answer is not None:
                return json.loads(answer), True
            with self._locked() as is_ours:  # else an agent was started since it was asked
                if is_ours:
                    return asyncio.run(self._say_alone(entry, stop=stop)), False

    def history(self) -> History:
        files = LinuxFiles(self._state, self._state.root)
        return saved.decode_history(files.read_state(saved.HISTORY)) or History(name="")

    def entries(self) -> list[EntryId]:
        report, _ = self.status()
        return sorted(report.entries)

    async def _say_alone(self, entry: EntryId, *, stop: bool) -> bool:
        alone = self._alone()
        await alone.look()
        who = getpass.getuser()
        return await (alone.stop(entry, who) if stop else alone.start(entry, who))

    def _ask(self, request: dict[str, Any], deadline: float | None = None) -> bytes | None:
        """The agent's answer, or None if none runs. One that is just being started is waited for.

        So is the next life of one that ended before it answered: said twice it is the same word.
        """
        deadline = time.monotonic() + COMES_S if deadline is None else deadline
        while True:
            answer: bytes | None = None
            problem = "it listens nowhere"
            try:
                answer = agent_socket.ask(self._socket, request)
            except TimeoutError as error:
                raise self._silent(str(error)) from error
            except OSError as error:
                problem = str(error)
            if answer is not None or not self._runs():
                return answer
            if time.monotonic() > deadline:
                raise self._silent(problem)
            time.sleep(POLL_S)

    def _runs(self) -> bool:
        """Also while somebody else keeps agents away."""
        return locks.is_held(self.root / "agent" / "lock")

    def _silent(self, problem: str) -> AgentSilentError:
        return AgentSilentError(f"the agent of {self.machine} runs, and does not answer: {problem}")

    @contextlib.contextmanager
    def _locked(self) -> Generator[bool]:
        """Keep agents away meanwhile; False if one runs, or somebody looks or does just that."""
        lock = os.open(self.root / "agent" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(lock)

    def _alone(self) -> Alone:
        path = os.environ.get("PATH") or os.defpath
        placement = Placement(state=self._state, private_roots=True, environment={"PATH": path})
        return Alone(
            machine=self.machine,
            files=LinuxFiles(self._state, self._state.root),
            artifacts=ArtifactCache(self._state, _NoStore()),
            processes=LinuxProcesses(placement),
            clock=clock.SystemClock(),
        )


class _NoStore:
    """Nothing is fetched without an agent."""

    async def has(self, digest: Digest) -> bool:
        raise StoreUnavailableError(f"nobody asks for {digest}")

    async def read(self, digest: Digest) -> AsyncIterator[bytes]:
        raise StoreUnavailableError(f"nobody asks for {digest}")
        yield b""
