"""Units under shims: starts, adopts, observes, stops and probes them.

Decides nothing about when. All that it knows of what runs it asks of run directories: a lock
that is held is a unit that runs, whoever started it. What it remembers is only which ends it
has told already, and whom it is waiting for.
"""

import asyncio
import contextlib
import dataclasses
import errno
import os
import shutil
import signal
from collections.abc import AsyncIterator

from keyplane.adapters.linux import (
    host_errors,
    leftovers,
    limits,
    listeners,
    probes,
    run_once,
    run_status,
    shim_command,
    spawn,
    strays,
    unit_logs,
)
from keyplane.adapters.linux.run_status import RunStatus
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.socket_tables import TCP, UDP
from keyplane.adapters.linux.state_root import RunId
from keyplane.model.declaration import Health, Reload
from keyplane.model.host import LogLine, ObservedProcess, ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.ports.host import HostBusyError, HostError, PortHeldError

_START_MAX_S = 30.0
"""An exec takes milliseconds; only a file system that hangs takes this long."""
_KILL_MAX_S = 7.0
"""A shim gives up on processes that hang in the kernel after five seconds."""
_STRAY_MAX_S = 10.0
"""What a unit is given to end if it says nothing else."""
_OWNED_S = 5.0
"""A unit that closes its port, and whose port is taken within this, is found out with the next
look: to look at each probe would cost more than the probe."""
_RELOAD_MAX_MS = 60_000
"""A command that reloads a unit does little; one that hangs must not hold the entry for ever."""


class LinuxProcesses:
    """`ports.host.Processes` on this machine. Belongs to one event loop."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._state = placement.state
        self._watched: dict[RunId, spawn.Child] = {}
        self._starting: set[RunId] = set()
        """Runs whose shim may not have come to its lock yet."""
        self._answered: set[RunId] = set()
        """Runs whose end is told by the call that is under way."""
        self._strays: dict[RunId, spawn.Child] = {}
        self._told: dict[RunId, RunStatus] = {}
        self._ends: asyncio.Queue[ObservedProcess] = asyncio.Queue()
        self._owned: dict[RunId, float] = {}
        """When the unit itself was last seen to hold the port that answered."""
        self._adopted = False

    def observe(self) -> tuple[ObservedProcess, ...]:
        # Whatever was removed under us is there again before anything is put into it. Where nothing
        # can be, what runs is seen all the same.
        with host_errors.about(str(self._state.path)):
            try:
                self._state.make()
            except OSError as error:
                if error.errno != errno.EROFS:
                    raise
        self._tell_strays_to_end()
        return tuple(self._look(run) for run in self._state.runs() if self._has_run(run))

    async def start(self, spec: ProcessSpec) -> ObservedProcess:
        run = RunId(spec.entry, spec.unit, spec.digest)
        directory = self._state.run_directory(run)
        if not spec.command:
            raise HostError(f"{spec.entry}/{spec.unit} has no command")
        arguments = shim_command.supervised(self._placement, spec, directory)
        environment = shim_command.environment(self._placement, spec, directory)
        await self._end_strays(run)
        self._make_directories(run)
        for _ in range(3):
            seen = self._look(run)
            if seen.running:
                self._watch(run)
                return seen
            self._check_ports(run, spec)
            await self._await_shim(run)
            self._begin_log(run)
            word = await self._spawn(run, arguments, environment)
            if word != "held":
                break
        else:
            raise HostBusyError(f"{directory} stays locked")
        if word not in ("started", "failed"):
            raise HostBusyError(f"keyplane-shim could not run in {directory}")
        status = run_status.read_status(directory)
        if word == "failed":
            self._told[run] = status
        return status.observed(run, running=word == "started" and not status.ended)

    async def stop(
        self, entry: EntryId, unit: UnitName, digest: Digest, *, timeout_ms: int
    ) -> bool:
        run = RunId(entry, unit, digest)
        self._answered.add(run)
        try:
            killed = await self._stop(run, timeout_ms)
            self._told[run] = run_status.read_status(self._state.run_directory(run))
        finally:
            self._answered.discard(run)
        return killed

    def forget(self, entry: EntryId, unit: UnitName, digest: Digest) -> None:
        run = RunId(entry, unit, digest)
        if self._look(run).running:
            raise HostError(f"{entry}/{unit} runs, so it is not forgotten")
        directory = self._state.run_directory(run)
        shutil.rmtree(directory, ignore_errors=True)
        limits.drop(directory)
        # Its shim may be there still, about to go: an end that nobody is to hear of.
        self._watched.pop(run, None)
        self._told.pop(run, None)
        self._owned.pop(run, None)
        for folder in (directory.parent, directory.parent.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()

    async def reload(
        self, entry: EntryId, unit: UnitName, digest: Digest, how: Reload, spec: ProcessSpec
    ) -> None:
        if how.command is not None:
            problem = await run_once.run_once(self._placement, spec, how.command, _RELOAD_MAX_MS)
            if problem is not None:
                raise HostError(f"reload of {entry}/{unit}: {problem}")
            return
        number = getattr(signal, f"SIG{how.signal}", None)
        if not isinstance(number, signal.Signals):
            raise HostError(f"no signal `{how.signal}`")
        run = RunId(entry, unit, digest)
        status = run_status.read_status(self._state.run_directory(run))
        if status.ended or status.pid is None:
            raise HostBusyError(f"{entry}/{unit} does not run")
        with contextlib.suppress(ProcessLookupError):  # its end is told by `exited`
            pidfd = os.pidfd_open(status.pid)
            try:
                if leftovers.start_ticks(status.pid) == status.start_ticks:
                    signal.pidfd_send_signal(pidfd, number)
            finally:
                os.close(pidfd)

    async def exited(self) -> ObservedProcess:
        if not self._adopted:
            self._adopted = True
            for run in self._state.runs():
                self._watch(run)
        return await self._ends.get()

    async def probe(self, health: Health, spec: ProcessSpec) -> str | None:
        try:
            return await self._probe(health, spec)
        except TimeoutError:
            return f"no answer within {health.timeout_ms} ms"
        except (HostError, HostBusyError) as error:
            return str(error)

    def tail(self, entry: EntryId, unit: UnitName, lines: int) -> tuple[str, ...]:
        log, life = self._state.log(entry, unit), self._state.life(entry, unit)
        with contextlib.suppress(OSError):
            begin = life.read_text(encoding="ascii")
            return tuple(line.text for line in unit_logs.lines_of_life(log, begin, lines))
        return tuple(line.text for line in unit_logs.last_lines(log, lines))

    def read(
        self, entry: EntryId, unit: UnitName, *, since_ms: int, lines: int
    ) -> tuple[LogLine, ...]:
        return tuple(unit_logs.lines_since(self._state.log(entry, unit), since_ms, lines))

    def follow(self, entry: EntryId, unit: UnitName, *, lines: int) -> AsyncIterator[LogLine]:
        return unit_logs.follow(self._state.log(entry, unit), lines)

    def close(self) -> None:
        """Look no more. What runs goes on."""
        for child in (*self._watched.values(), *self._strays.values()):
            child.close()
        self._watched.clear()
        self._strays.clear()

    def _tell_strays_to_end(self) -> None:
        """One that does not is killed by the next look, half a minute later."""
        for run, pid in strays.find(self._state):
            known = self._strays.get(run)
            if known is not None and known.pid == pid:
                known.signal(signal.SIGUSR1)
            elif (child := spawn.Child.adopt(pid)) is not None:
                self._strays[run] = child
                child.ended.add_done_callback(lambda _, run=run: self._strays.pop(run, None))
                child.signal(signal.SIGTERM)

    async def _end_strays(self, run: RunId) -> None:
        """Nothing of this unit runs where it cannot be found."""
        if run in self._watched and not self._has_run(run):
            self._tell_strays_to_end()
        of_unit = [
            child
            for stray, child in self._strays.items()
            if (stray.entry, stray.unit) == (run.entry, run.unit)
        ]
        for child in of_unit:
            if not await strays.end(child, _STRAY_MAX_S):
                raise HostBusyError(f"{run.entry}/{run.unit} does not end, although it was killed")

    def _make_directories(self, run: RunId) -> None:
        directory = self._state.run_directory(run)
        log = self._state.log(run.entry, run.unit)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            log.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HostBusyError(f"cannot make {error.filename}: {error.strerror}") from error

    def _has_run(self, run: RunId) -> bool:
        return run in self._starting or (self._state.run_directory(run) / "lock").exists()

    def _look(self, run: RunId) -> ObservedProcess:
        directory = self._state.run_directory(run)
        if run in self._starting or not self._has_run(run):
            return RunStatus().observed(run, running=run in self._starting)
        holder = run_status.lock_holder(directory)
        status = run_status.read_status(directory)
        if holder is None and not status.ended:
            # Read again: it may have ended between the two looks.
            status = run_status.read_status(directory)
            if not status.ended:
                return self._lose(run, status)
        return status.observed(run, running=holder is not None and not status.ended)

    def _lose(self, run: RunId, status: RunStatus) -> ObservedProcess:
        """A run whose shim did not live to tell its end."""
        directory = self._state.run_directory(run)
        if status.pid is None:  # it is about to take its lock, or was killed before it began
            return dataclasses.replace(status, lost=True).observed(run, running=False)
        note = "the machine was restarted"
        if status.boot in (None, run_status.boot_id()):
            note = "its shim was killed, and it with it"
            if not leftovers.kill_leftovers(directory, status.pid, status.start_ticks):
                note += "; some of its processes could not be killed"
        with contextlib.suppress(OSError):
            status = run_status.record_loss(directory, status, note)
        return status.observed(run, running=False)

    async def _spawn(self, run: RunId, arguments: list[str], environment: dict[str, str]) -> str:
        """The shim's word on how it went: `started`, `failed`, `held`, or none."""
        reader, writer = os.pipe()
        self._starting.add(run)
        try:
            child = spawn.spawn(arguments, environment, report=writer)
        except BaseException:
            os.close(reader)
            self._starting.discard(run)
            raise
        finally:
            os.close(writer)
        try:
            async with asyncio.timeout(_START_MAX_S):
                word = (await spawn.read_all(reader, 64)).partition(b" ")[0].strip().decode()
        except TimeoutError:
            child.signal(signal.SIGKILL)
            raise HostBusyError(f"{run.entry}/{run.unit} does not come to start") from None
        finally:
            self._starting.discard(run)
        if word == "started":
            self._attach(run, child)
        else:
            await child.wait(_KILL_MAX_S)
        return word

    def _attach(self, run: RunId, child: spawn.Child) -> None:
        self._watched[run] = child
        self._owned.pop(run, None)
        self._told.pop(run, None)
        child.ended.add_done_callback(lambda _: self._on_end(run, child))

    def _watch(self, run: RunId) -> None:
        """Hear of its end, which may lie behind us."""
        if run in self._watched:
            return
        directory = self._state.run_directory(run)
        holder = run_status.lock_holder(directory)
        child = None if holder is None else spawn.Child.adopt(holder)
        if child is not None and run_status.lock_holder(directory) == holder:
            self._attach(run, child)
            return
        if child is not None:
            child.close()
        self._tell(run)

    def _on_end(self, run: RunId, child: spawn.Child) -> None:
        if self._watched.get(run) is child:
            del self._watched[run]
            if run not in self._answered:
                self._tell(run)

    def _tell(self, run: RunId) -> None:
        seen = self._look(run)
        status = run_status.read_status(self._state.run_directory(run))
        if not seen.running and self._told.get(run) != status:
            self._told[run] = status
            self._ends.put_nowait(seen)

    async def _await_shim(self, run: RunId) -> None:
        """A shim that recorded the end is about to go, and to let go of the lock."""
        child = self._watched.get(run)
        if child is not None:
            await child.wait(_KILL_MAX_S)
            return
        holder = run_status.lock_holder(self._state.run_directory(run))
        if holder is not None and (child := spawn.Child.adopt(holder)) is not None:
            await child.wait(_KILL_MAX_S)
            child.close()

    async def _stop(self, run: RunId, timeout_ms: int) -> bool:
        directory = self._state.run_directory(run)
        killed = False
        self._watch_to_stop(run)
        child = self._watched.get(run)
        if child is not None:
            child.signal(signal.SIGTERM)
            if not await child.wait(timeout_ms / 1000):
                killed = True
                child.signal(signal.SIGUSR1)
                if not await child.wait(_KILL_MAX_S):
                    child.signal(signal.SIGKILL)
                    await child.wait(_KILL_MAX_S)
        self._look(run)
        if run_status.lock_holder(directory) is not None:
            raise HostBusyError(f"{run.entry}/{run.unit} does not end, although it was killed")
        return killed

    def _watch_to_stop(self, run: RunId) -> None:
        if run_status.lock_holder(self._state.run_directory(run)) is not None:
            self._watch(run)

    def _begin_log(self, run: RunId) -> None:
        """What stands in the log by now is of another life, and explains nothing of this one."""
        with contextlib.suppress(OSError):
            begin = unit_logs.mark(self._state.log(run.entry, run.unit))
            self._state.life(run.entry, run.unit).write_text(begin, encoding="ascii")

    def _check_ports(self, run: RunId, spec: ProcessSpec) -> None:
        if not spec.ports and not spec.udp_ports:
            return
        ports = {TCP: spec.ports, UDP: spec.udp_ports}
        held = listeners.foreign(ports, spec.address, self._shims(spec.entry))
        if held is not None:
            self._begin_log(run)
            raise PortHeldError(held)

    def _shims(self, entry: EntryId, apart_from: RunId | None = None) -> list[int]:
        """Of all units of an entry that run, but for other runs of the one that is named."""
        runs = (
            run
            for run in self._state.runs()
            if run.entry == entry
            and (apart_from is None or run == apart_from or run.unit != apart_from.unit)
        )
        holders = (run_status.lock_holder(self._state.run_directory(run)) for run in runs)
        return [pid for pid in holders if pid is not None]

    def _impostor(self, target: str, spec: ProcessSpec) -> str | None:
        """Who else answers in the unit's place. What was its own a moment ago still is."""
        run = RunId(spec.entry, spec.unit, spec.digest)
        now = asyncio.get_running_loop().time()
        if not spec.ports or self._owned.get(run, -_OWNED_S) + _OWNED_S > now:
            return None
        main = run_status.read_status(self._state.run_directory(run)).pid
        found = listeners.answers(target, spec.ports, main, lambda: self._shims(spec.entry, run))
        if found is None:
            self._owned[run] = now
        return found

    async def _probe(self, health: Health, spec: ProcessSpec) -> str | None:
        if health.command is not None:
            return await run_once.run_once(self._placement, spec, health.command, health.timeout_ms)
        async with asyncio.timeout(health.timeout_ms / 1000):
            if health.http is not None:
                problem = await probes.http(health.http)
            else:
                problem = await probes.tcp(health.tcp or "")
        return problem or self._impostor(health.http or health.tcp or "", spec)
