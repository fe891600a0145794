"""What a unit leaves when its shim was killed: found by session and by mark, and killed.

The unit's main process dies with its shim. Those it started lose both; they are known by the
session that the shim made for them, or by the mark in the environment that they inherited.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

from keyplane.adapters.linux import run_status

RUN_MARK = "KEYPLANE_RUN"
"""Names the run directory in the environment of all that a unit starts."""

_WAIT_MS = 2_000
"""A killed process that is still there after it hangs in the kernel."""


def start_ticks(pid: int) -> int | None:
    """When a process began, which with its pid names it; None if it is not there."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def parent(pid: int) -> int | None:
    """None if it is not there."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def kill_leftovers(directory: Path, pid: int | None, started: int | None) -> bool:
    """True if nothing is left."""
    mark = f"{RUN_MARK}={directory}".encode()
    left = list(_find(mark, pid, started))
    # Another agent's or person's look may be a moment late: what runs under a new shim stays.
    if run_status.lock_holder(directory) is not None:
        return True
    killed = [_kill(each) for each in left]
    return all(killed)


def _stat(pid: int) -> list[bytes] | None:
    """The fields from the state on: a command's name may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(b")") + 2 :].split()


def _find(mark: bytes, pid: int | None, started: int | None) -> Iterator[int]:
    # Once the leader is gone, its number may have become another session's.
    leads = pid is not None and started is not None and start_ticks(pid) == started
    for place in Path("/proc").iterdir():
        name = place.name
        if not name.isdecimal():
            continue
        fields = _stat(int(name))
        if fields is None or fields[0] in (b"Z", b"X"):
            continue
        if _is_shim(place):
            continue  # one that starts this very moment; without its lock it ends by itself
        if (leads and int(fields[3]) == pid) or _marked(name, mark):
            yield int(name)


def _is_shim(place: Path) -> bool:
    try:
        return (place / "comm").read_bytes() == b"keyplane-shim\n"
    except OSError:
        return False


def _marked(name: str, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _kill(pid: int) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        return bool(select.select([process], [], [], _WAIT_MS / 1000)[0])
    except PermissionError:
        return False
    finally:
        os.close(process)
