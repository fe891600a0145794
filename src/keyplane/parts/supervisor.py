"""Keeps the parts of an embedded control plane running: bus, controller, one agent a machine.

It decides nothing about the fleet: the controller says which machines have an agent here. A part
that ends is started again; units are no parts, and outlive everything here.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyplane import metrics
from keyplane.journal import Journal
from keyplane.parts import unix_socket
from keyplane.ports.errors import PortError
from keyplane.rollout.declaring_values import Rights

log = Journal(__name__.removeprefix("keyplane."))

ALREADY_RUNS = 75
"""EX_TEMPFAIL: another supervisor holds the lock."""
BACK_OFF_MIN_S = 0.1
"""A part that was killed is back at once; a person does not notice."""
BACK_OFF_MAX_S = 5.0
"""A part that cannot start costs one try in five seconds, and is back soon once it can."""
STEADY_S = 10.0
"""A part that ran so long starts with the shortest wait again."""
LINE_BYTES_MAX = 64 << 20
"""Of a request: the rights of some thousand machines."""
STOP_S = 10.0
"""A part that does not end within this after TERM is killed."""


@dataclass(slots=True)
class Part:
    """One child process, started again whenever it ends."""

    name: str
    command: Callable[[], Sequence[str]]
    """Asked before each start, as ports may have to be chosen anew."""
    log_file: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    pid: int | None = None
    starts: int = 0
    problem: str | None = None
    """Why it ended, or could not start; told until it has run steadily since."""
    began: float = 0.0

    async def run(self) -> None:
        """Run until cancelled; then end the child."""
        back_off = BACK_OFF_MIN_S
        clock = asyncio.get_running_loop().time
        while True:
            self.began = clock()
            try:
                child = await self._spawn()
            except (OSError, PortError) as error:
                self.problem = str(error)
                log.warning("part cannot start", child=self.name, problem=self.problem)
            else:
                self.pid = child.pid
                self.starts += 1
                try:
                    status = await child.wait()
                except asyncio.CancelledError:
                    await _end(child)
                    raise
                self.pid = None
                self.problem = f"ended with status {status}"
                log.warning("part ended", child=self.name, status=status)
            back_off = BACK_OFF_MIN_S if clock() - self.began > STEADY_S else back_off
            await asyncio.sleep(back_off)
            back_off = min(back_off * 2, BACK_OFF_MAX_S)

    async def _spawn(self) -> asyncio.subprocess.Process:
        command = self.command()
        with self.log_file.open("ab") as sink:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, **self.env},
                start_new_session=True,
                preexec_fn=dying_with(os.getpid()),
            )


def dying_with(parent: int) -> Callable[[], None]:
    """For a child to call before its command is run: the kernel ends it with its parent.

    So no part is left over, also where its parent ended before this. All that is imported or looked
    up is so in the parent: in the child whatever another thread had locked stays locked.
    """
    import ctypes

    pr_set_pdeathsig = 1
    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(pr_set_pdeathsig, int(signal.SIGTERM))
        if os.getppid() != parent:
            os._exit(1)

    return ask


async def _end(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await child.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


class Supervisor:
    """The parts, and a socket on which the controller and `keyplane down` speak to it.

    One JSON object a line, one answered by one: `{"do": "parts"}`, `{"do": "agents", "machines":
    [...]}`, `{"do": "permit", "rights": {MACHINE: {"says": [...], "reads": [...]}}}`,
    `{"do": "stop"}`.
    """

    def __init__(
        self,
        *,
        bus: Part,
        controller: Part,
        agent: Callable[[str], Part],
        admit: Callable[[Sequence[str]], None],
        permit: Callable[[Mapping[str, Rights]], None],
    ) -> None:
        """`agent` makes a machine's part; `admit` lets exactly these machines on the bus.

        `permit` says which dynamic values each of them may say and read there.
        """
        self._agent = agent
        self._admit = admit
        self._permit = permit
        self._stop = asyncio.Event()
        self._parts: dict[str, Part] = {part.name: part for part in (bus, controller)}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        """Of agents that are no longer wanted and have not ended yet."""

    async def run(self, address: Path, machines: Sequence[str], lock: Path) -> None:
        """Run until told to stop, or TERM; where all state is removed, nothing is kept running.

        The caller holds the lock. Where it is removed another supervisor may take its place, and
        what the parts know of the state that was is of no use to anybody.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        self._admit(machines)
        for name in list(self._parts):
            self._start(name)
        self._ensure(machines, admitted=True)
        stopped = asyncio.create_task(self._stop.wait())
        unlocked = asyncio.create_task(unix_socket.until_removed(lock))
        unlocked.add_done_callback(self._end_without_state)
        try:
            while not stopped.done():
                await self._listen(address, stopped)
        except OSError as error:
            log.warning("nobody can reach this supervisor, so it ends", problem=str(error))
        stopped.cancel()
        unlocked.cancel()
        await self._end_all()

    def _end_without_state(self, unlocked: asyncio.Task[None]) -> None:
        if not unlocked.cancelled():
            log.warning("the state was removed, so this supervisor ends")
            self._stop.set()

    async def _listen(self, address: Path, stopped: asyncio.Task[bool]) -> None:
        """Answer until told to stop, or until the socket is removed."""
        address.parent.mkdir(mode=0o700, exist_ok=True)
        with unix_socket.listen(address) as listener:
            removed = asyncio.create_task(unix_socket.until_removed(address))
            async with await asyncio.start_unix_server(
                self._serve, sock=listener, limit=LINE_BYTES_MAX
            ):
                await asyncio.wait({stopped, removed}, return_when=asyncio.FIRST_COMPLETED)
            if removed.done():
                log.warning("the socket was removed; it is made anew", address=address)
            removed.cancel()

    def _start(self, name: str) -> None:
        self._tasks[name] = asyncio.create_task(self._parts[name].run(), name=name)

    def _ensure(self, machines: Sequence[str], *, admitted: bool = False) -> None:
        wanted = {f"agent {name}": name for name in machines}
        if not admitted:
            self._admit(machines)
        for name in [name for name in self._parts if name.startswith("agent ")]:
            if name not in wanted:
                self._leave(self._tasks.pop(name))
                del self._parts[name]
        for name, machine in wanted.items():
            if name not in self._parts:
                self._parts[name] = self._agent(machine)
                self._start(name)

    def _leave(self, task: asyncio.Task[None]) -> None:
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        task.cancel()

    async def _end_all(self) -> None:
        """Agents first, the bus last: each may still say what it has to say."""
        bus = self._tasks.pop("bus", None)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), *self._leaving, return_exceptions=True)
        if bus is not None:
            bus.cancel()
            await asyncio.gather(bus, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                answer = self._answer(unix_socket.asked(line))
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, KeyError) as error:
            log.warning("bad request to the supervisor", problem=str(error))
        finally:
            writer.close()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("do"):
            case "parts":
                return {part.name: self._tell(part) for part in self._parts.values()}
            case "agents" if self._stop.is_set():
                return {"error": "it is ending"}
            case "agents":
                try:
                    self._ensure(sorted(request["machines"]))
                except PortError as error:
                    return {"error": str(error)}
                return {"ok": True}
            case "permit":
                try:
                    self._permit(
                        {
                            machine: Rights(says=tuple(each["says"]), reads=tuple(each["reads"]))
                            for machine, each in request["rights"].items()
                        }
                    )
                except PortError as error:
                    return {"error": str(error)}
                return {"ok": True}
            case "stop":
                self._stop.set()
                return {"ok": True}
            case other:
                return {"error": f"unknown request {other!r}"}

    async def measure(self) -> None:
        """Set the metrics of the parts."""
        metrics.part_starts.clear()
        metrics.part_up.clear()
        for name, part in self._parts.items():
            metrics.part_starts.labels(name).set(part.starts)
            metrics.part_up.labels(name).set(part.pid is not None)

    def _tell(self, part: Part) -> dict[str, Any]:
        ran_s = asyncio.get_running_loop().time() - part.began
        steady = part.pid is not None and ran_s > STEADY_S
        problem = None if steady else part.problem
        return {"pid": part.pid, "starts": part.starts, "problem": problem}
