"""What runs on this machine, reached without any part of the control plane."""

import asyncio
import os
import sys
import time
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keyplane.adapters.linux import strays
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.spawn import Child
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.host import ObservedProcess
from keyplane.parts import locks
from keyplane.parts.state_dir import StateDir
from keyplane.ports.host import HostBusyError

if TYPE_CHECKING:
    from keyplane.converge.reaction_record import Record
    from keyplane.model.declaration import Declaration

STOP_MS = 30_000
"""A database ends within it; what does not is killed."""
AGENT_MAX_S = 30.0
"""An agent ends in a second; a busy machine makes it ten."""


def placement(state: StateDir, machine: str) -> Placement:
    """How units of a local machine see it. They inherit nothing of a person's environment."""
    # Last, so that it hides nothing: a unit finds `keyplane-agent publish` by it.
    path = f"{os.environ.get('PATH') or os.defpath}:{Path(sys.executable).parent}"
    return Placement(
        state=StateRoot(state.machine(machine)), private_roots=True, environment={"PATH": path}
    )


def count_units(state: StateDir) -> int:
    return asyncio.run(_count(state))


async def _count(state: StateDir) -> int:
    return sum(1 for _, _ in _running(state))


def machines_in_use(state: StateDir) -> list[str]:
    """The local machines on which something runs."""

    async def found() -> set[str]:
        return {each.entry.rpartition("@")[2] for _, each in _running(state)}

    return sorted(asyncio.run(found()))


def stop_units(state: StateDir) -> int:
    """Stop all that runs on the local machines; how many that were. Agents that still end are awaited.

    What runs where its state was removed is among it. Nothing is left: neither who is about to begin
    or to go, nor a command that an agent ran once.
    """
    return asyncio.run(_stop(state))


def has_strays(state: StateDir) -> bool:
    """Whether units of this fleet run whose state was removed."""
    return next(strays.below(state.machines), None) is not None


async def _stop(state: StateDir) -> int:
    await _until_no_agent(state)
    seen = list(_observed(state))
    stops = [
        processes.stop(each.entry, each.unit, each.digest, timeout_ms=STOP_MS)
        for processes, each in seen
    ]
    removed = _ends(pid for _, pid in strays.below(state.machines))
    await asyncio.gather(*stops, *removed)
    await asyncio.gather(*_ends(strays.shims(state.machines)))
    return sum(1 for _, each in seen if each.running) + len(removed)


def _ends(pids: Iterable[int]) -> list[Coroutine[None, None, bool]]:
    return [
        strays.end(child, STOP_MS / 1000) for pid in pids if (child := Child.adopt(pid)) is not None
    ]


async def _until_no_agent(state: StateDir) -> None:
    """One whose supervisor was killed ends by itself, and may start something until then."""
    deadline = time.monotonic() + AGENT_MAX_S
    for lock in sorted(state.machines.glob("*/agent/lock")):
        while locks.is_held(lock):
            if time.monotonic() > deadline:
                machine = lock.parent.parent.name
                raise HostBusyError(f"the agent of {machine} does not end")
            await asyncio.sleep(0.05)


def _running(state: StateDir) -> Iterator[tuple[LinuxProcesses, ObservedProcess]]:
    return (found for found in _observed(state) if found[1].running)


def _observed(state: StateDir) -> Iterator[tuple[LinuxProcesses, ObservedProcess]]:
    """All that ever ran, and is not forgotten."""
    if not state.machines.is_dir():
        return
    for folder in sorted(state.machines.iterdir()):
        processes = LinuxProcesses(placement(state, folder.name))
        for each in processes.observe():
            yield processes, each


def heard(state: StateDir, machine: str) -> "tuple[Declaration | None, Record] | None":
    """What a local machine is to be, and what it heard of dynamic values; None if it is not here."""
    from keyplane.adapters.linux.files import LinuxFiles
    from keyplane.converge import reaction_record, saved
    from keyplane.parts.agent_dynamic import RECORD

    root = StateRoot(state.machine(machine))
    if not root.agent.is_dir():
        return None
    files = LinuxFiles(root, root.root)
    declaration = saved.decode_declaration(files.read_state(saved.DECLARATION))
    return declaration, reaction_record.decode(files.read_state(RECORD))
