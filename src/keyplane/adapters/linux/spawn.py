"""Starts shims, and hears of their ends: by `posix_spawn` and pidfds, in the running loop."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from keyplane.adapters.linux import host_errors
from keyplane.ports.host import HostError

SHIM = Path(__file__).parent / "bin" / "keyplane-shim"
REPORT_FD = 3
"""At which a shim finds the pipe that it reports its start to."""

_CHUNK = 65_536


class Child:
    """A shim, started by us or adopted, until it ends."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int | None] = self._loop.create_future()
        """Its exit status, negative for a signal; None if another process is its parent."""
        self._loop.add_reader(pidfd, self._on_end)

    @classmethod
    def adopt(cls, pid: int) -> "Child | None":
        """None if it is gone. The caller makes sure that the pid is still whom it means."""
        try:
            return cls(pid, os.pidfd_open(pid))
        except ProcessLookupError:
            return None

    def signal(self, number: signal.Signals) -> None:
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """Look no more; the process goes on."""
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    async def wait(self, timeout_s: float) -> bool:
        """True if it ended within the time."""
        done, _ = await asyncio.wait([self.ended], timeout=timeout_s)
        return bool(done)

    def _on_end(self) -> None:
        status: int | None = None
        with contextlib.suppress(ChildProcessError):
            result = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)
            if result is not None:
                exited = result.si_code == os.CLD_EXITED
                status = result.si_status if exited else -result.si_status
        self.close()
        if not self.ended.done():
            self.ended.set_result(status)


def spawn(
    arguments: list[str],
    environment: dict[str, str],
    *,
    report: int | None = None,
    output: int | None = None,
) -> Child:
    """A shim in its own session, with the given ends of pipes: its report, or what it prints."""
    actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = []
    if report is not None:
        actions.append((os.POSIX_SPAWN_DUP2, report, REPORT_FD))
        arguments = ["--report", str(REPORT_FD), *arguments]
    actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0))
    printed = 0 if output is None else output
    actions += [(os.POSIX_SPAWN_DUP2, printed, 1), (os.POSIX_SPAWN_DUP2, printed, 2)]
    if not SHIM.exists():
        raise HostError(f"{SHIM} is missing: install keyplane again")
    with host_errors.about("cannot start keyplane-shim"):
        try:
            pid = os.posix_spawn(
                SHIM, [str(SHIM), *arguments], environment, file_actions=actions, setsid=True
            )
        except ValueError as error:  # as of a NUL in a command
            raise HostError(f"cannot start keyplane-shim: {error}") from error
        return Child(pid, os.pidfd_open(pid))


async def read_all(pipe: int, most: int) -> bytes:
    """Until its end; what is more than `most` bytes is read and dropped. Closes the pipe."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    os.set_blocking(pipe, False)
    loop.add_reader(pipe, readable.set)
    taken = bytearray()
    try:
        while True:
            await readable.wait()
            readable.clear()
            try:
                while chunk := os.read(pipe, _CHUNK):
                    taken += chunk[: most - len(taken)]
            except BlockingIOError:
                continue
            return bytes(taken)
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)
