"""An embedded nats-server: a child process on loopback that ends with whoever started it.

Either it is run from here (`start`, `reload`, `exited`, `stop`), or a supervisor runs the command
that `prepare` gives and lets users in and out by `admit`.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from keyplane.adapters.nats import configuration, private_file, server_files
from keyplane.adapters.nats.configuration import HOST, Layout
from keyplane.adapters.nats.permissions import User
from keyplane.ports.bus import BusServerError

READY_S_MAX = 15.0
"""A server with a large store on a slow disk takes seconds; an empty one takes milliseconds."""
RELOAD_S_MAX = 10.0
STOP_S_MAX = 5.0
"""A server that does not end within this after TERM is killed: what it acknowledged is on disk."""
_POLL_S = 0.005
_TELL_S = 0.1
"""Who was let in while the server starts waits this long: less than an agent does between two tries."""
_STARTS_MAX = 5
"""A chosen port may be taken between the choice and the start, and hardly five times."""
_TAIL_LINES = 5

# Run by a Python of its own, so that nothing of ours runs between fork and exec in a process that
# may have threads. PR_SET_PDEATHSIG is 1; a parent that ended before it was set is no parent.
_END_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, int(sys.argv[1]))
if os.getppid() == int(sys.argv[2]):
    os.execv(sys.argv[3], sys.argv[3:])
"""


def locate(directory: Path) -> str:
    """The URL of the server of that directory, as it was last settled; for any process."""
    port = server_files.kept_port(Layout(directory=directory))
    if port is None:
        raise BusServerError(f"no bus was started in {directory}")
    return f"nats://{HOST}:{port}"


class EmbeddedServer:
    """The server of one directory. At most one object, in one process, runs it at a time."""

    def __init__(self, *, directory: Path, port: int | None = None) -> None:
        """Without a port one is chosen, and kept from start to start as long as it is free."""
        self._layout = Layout(directory=directory.absolute())
        self._fixed_port = port
        # Of this directory alone, so that another's server at our port is not taken for ours.
        place = hashlib.sha256(os.fsencode(self._layout.directory)).hexdigest()
        self._name = f"keyplane-{place[:16]}"
        self._port: int | None = None
        self._lock: IO[bytes] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._started_at = 0
        self._untold = asyncio.Event()
        """Users were written when no server could be told of them."""

    @property
    def url(self) -> str:
        return locate(self._layout.directory)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def prepare(self, users: Sequence[User]) -> list[str]:
        """Everything up to the start itself; the command to run. Leftovers are ended first."""
        try:
            self._layout.store.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._lock is None:
                self._lock = server_files.take_lock(self._layout)
            server_files.clear_leftover(self._layout)
            self._port = server_files.settle_port(self._layout, self._fixed_port)
            self._write_configuration(users)
            self._untold.clear()  # the server that is to start reads them
            return [str(server_files.binary()), "-c", str(self._layout.configuration)]
        except OSError as err:
            self._unlock()
            raise BusServerError(f"the bus cannot use {self._layout.directory}: {err}") from err
        except BusServerError:
            self._unlock()
            raise

    def admit(self, users: Sequence[User]) -> None:
        """Let exactly these in, now if the server runs. Others keep their connections.

        From any process: it needs no lock, as it starts nothing.
        """
        running: int | None = None
        try:
            self._layout.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            running = server_files.open_running(self._layout)
            self._port = server_files.kept_port(self._layout)
            if running is None or self._port is None:
                self._port = server_files.settle_port(self._layout, self._fixed_port)
            self._write_configuration(users)
            if running is None:
                self._untold.set()
            else:
                signal.pidfd_send_signal(running, signal.SIGHUP)
        except ProcessLookupError:
            pass  # It ended meanwhile; the next start reads the configuration.
        except OSError as err:
            raise BusServerError(f"the bus cannot use {self._layout.directory}: {err}") from err
        finally:
            if running is not None:
                os.close(running)

    async def keep_telling(self) -> None:
        """For whoever runs `prepare`'s command, and lets users in from the same process.

        A server reads its users some moments before it can be found and told of others.
        """
        while True:
            await self._untold.wait()
            running = server_files.open_running(self._layout)
            if running is not None:
                self._untold.clear()
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(running, signal.SIGHUP)
                os.close(running)
            await asyncio.sleep(_TELL_S)

    async def start(self, users: Sequence[User]) -> None:
        """Returns once it serves; on the port that it had, or on another if that is taken."""
        assert self._process is None or self._process.returncode is not None, "it runs already"
        for attempt in range(1, _STARTS_MAX + 1):
            command = self.prepare(users)
            self._started_at = server_files.log_size(self._layout)
            self._process = await self._spawn(command)
            try:
                await self._until_ready(self._process)
            except BusServerError as err:
                await self._end(self._process)
                again = self._fixed_port is None and "address already in use" in str(err)
                if not again or attempt == _STARTS_MAX:
                    await self.stop()
                    raise
            except asyncio.CancelledError:
                await self.stop()
                raise
            else:
                return

    async def reload(self, users: Sequence[User]) -> None:
        """As `admit`; returns once the server took the list, or says why it did not."""
        before = server_files.log_size(self._layout)
        self.admit(users)
        deadline = asyncio.get_running_loop().time() + RELOAD_S_MAX
        while asyncio.get_running_loop().time() < deadline:
            for line in server_files.log_since(self._layout, before):
                if "Failed to reload" in line:
                    raise BusServerError(f"the bus does not take its users: {_text_of(line)}")
                if "Reloaded server configuration" in line:
                    return
            if self._process is None or self._process.returncode is not None:
                raise BusServerError("the bus does not run; it takes its users when it starts")
            await asyncio.sleep(_POLL_S)
        raise BusServerError(f"the bus did not take its users in {RELOAD_S_MAX:g} s")

    async def exited(self) -> str:
        """Wait until the server ends by itself; why it did."""
        assert self._process is not None, "it was not started"
        await self._process.wait()
        return self._why_ended(self._process)

    async def stop(self) -> None:
        if self._process is not None:
            await self._end(self._process)
            self._process = None
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _write_configuration(self, users: Sequence[User]) -> None:
        assert self._port is not None, "a port was settled"
        content = configuration.compose(
            self._layout, name=self._name, port=self._port, users=tuple(users)
        )
        private_file.replace(self._layout.configuration, content)

    async def _spawn(self, command: list[str]) -> asyncio.subprocess.Process:
        # What it says before it opens its log, and what it says when it dies of a bug.
        with self._layout.log.open("ab") as sink:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-IS",
                "-c",
                _END_WITH_PARENT,
                str(int(signal.SIGTERM)),
                str(os.getpid()),
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                # A Ctrl-C at the terminal is for the parts that use the bus, which stop it last.
                start_new_session=True,
            )

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        deadline = asyncio.get_running_loop().time() + READY_S_MAX
        while asyncio.get_running_loop().time() < deadline:
            if process.returncode is not None:
                raise BusServerError(f"the bus does not start: {self._why_ended(process)}")
            if await self._greeting() == self._name:
                return
            await asyncio.sleep(_POLL_S)
        raise BusServerError(f"the bus does not start in {READY_S_MAX:g} s: {self._tail()}")

    async def _greeting(self) -> str | None:
        """The name of whatever server listens at our port, if it is one."""
        try:
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection(HOST, self._port)
                try:
                    line = await reader.readline()
                finally:
                    writer.close()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
            information: dict[str, Any] = json.loads(line.partition(b" ")[2])
            return information.get("server_name")
        except (OSError, TimeoutError, ValueError, AttributeError):
            return None

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _why_ended(self, process: asyncio.subprocess.Process) -> str:
        code = process.returncode
        how = f"exit {code}"
        if code is not None and code < 0:
            how = f"signal {signal.Signals(-code).name.removeprefix('SIG')}"
        return f"nats-server ended ({how}): {self._tail()}"

    def _tail(self) -> str:
        """What the log says of the end: its fatal lines, else words of the runtime, else errors."""
        lines = server_files.log_since(self._layout, self._started_at)
        fatal = [line for line in lines if "[FTL]" in line][-_TAIL_LINES:]
        runtime = [line for line in lines if not line.startswith("[")][:_TAIL_LINES]
        errors = [line for line in lines if "[ERR]" in line][-_TAIL_LINES:]
        return " / ".join(map(_text_of, fatal or runtime or errors)) or "it logged no error"


def _text_of(line: str) -> str:
    """A line of the log without its pid and time."""
    for level in ("[FTL] ", "[ERR] "):
        _, found, text = line.partition(level)
        if found:
            return text
    return line
