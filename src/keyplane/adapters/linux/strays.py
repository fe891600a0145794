"""Units whose run directory was removed under them: their shims hold locks that nobody finds.

They cannot be adopted, as no lock or status can be given back to them. They are found by the lock
that they hold open, and ended, so that a start makes no second one beside them.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from keyplane.adapters.linux import leftovers, spawn
from keyplane.adapters.linux.state_root import RunId, StateRoot

_COMM = b"keyplane-shim\n"
_LOCK = "/lock"
_REMOVED = " (deleted)"
"""How the kernel names a file that is open and has no name any more."""
KILL_MAX_S = 7.0
"""A shim gives up on processes that hang in the kernel after five seconds."""


def find(state: StateRoot) -> Iterator[tuple[RunId, int]]:
    """Each of a machine's with its shim's pid."""
    for directory, pid in below(state.run):
        run = state.run_of(directory)
        if run is not None:
            yield run, pid


def below(folder: Path) -> Iterator[tuple[Path, int]]:
    """Each whose run directory stood below the folder, with that and its shim's pid."""
    for pid in _running():
        found = _held(pid)
        if found is not None and not found[1] and found[0].is_relative_to(folder):
            yield found[0], pid


def shims(folder: Path) -> Iterator[int]:
    """Each shim of what is below the folder; one that begins, or runs a command once, has no lock."""
    for pid in _running():
        if _is_shim(pid):
            held = _held(pid)
            where = _mark(pid) if held is None else held[0]
            if where is not None and where.is_relative_to(folder):
                yield pid


def run_directory(pid: int) -> Path | None:
    """Where the run directory of a shim is by now, or was when it was removed; None of others."""
    found = _held(pid)
    return None if found is None else found[0]


async def end(child: spawn.Child, timeout_s: float) -> bool:
    """True if it ended: by itself within the time, or killed."""
    child.signal(signal.SIGTERM)
    if await child.wait(timeout_s):
        return True
    child.signal(signal.SIGUSR1)
    return await child.wait(KILL_MAX_S)


def _held(pid: int) -> tuple[Path, bool] | None:
    """The run directory whose lock a shim holds open, and whether it is there; None of others."""
    if not _is_shim(pid):
        return None
    try:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            name = str(file.readlink())
            held = name.removesuffix(_REMOVED)
            if held.endswith(_LOCK):
                return Path(held.removesuffix(_LOCK)), held == name
    except OSError:  # it ended, or is another account's and so none of ours
        return None
    return None


def _running() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208


def _is_shim(pid: int) -> bool:
    # By the least that it takes: an agent asks it of all that run, twice a minute.
    try:
        comm = os.open(f"/proc/{pid}/comm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(comm, len(_COMM) + 1) == _COMM
    except OSError:
        return False
    finally:
        os.close(comm)


def _mark(pid: int) -> Path | None:
    """What it was started for, by its environment."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    name = f"{leftovers.RUN_MARK}=".encode()
    found = next((each for each in variables if each.startswith(name)), None)
    return None if found is None else Path(os.fsdecode(found.removeprefix(name)))
