"""Runs a command as a unit would: its account, environment and view; for probes and reloads."""

import asyncio
import os
import signal
from dataclasses import dataclass

from keyplane.adapters.linux import shim_command, spawn
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import RunId
from keyplane.model.host import ProcessSpec

_OUTPUT_MAX = 32 * 1024
"""Of what is printed: a value, or words of which the last line is told."""
_BACKSTOP_MS = 2_000
"""After it the shim kills by itself, should its agent have gone."""
_KILL_MAX_S = 7.0
"""A shim gives up on processes that hang in the kernel after five seconds."""


NOT_RUN = 126
"""What a shell and the shim end with where a command cannot be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    status: int | None
    """None if it did not end in time, and was killed."""
    output: bytes


async def run_once(
    placement: Placement, spec: ProcessSpec, command: tuple[str, ...], timeout_ms: int
) -> str | None:
    """None if it ended with 0, else what was wrong. Nothing that it started is left."""
    ran = await output_of(placement, spec, command, timeout_ms)
    if ran.status is None:
        return f"{command[0]}: no end within {timeout_ms} ms"
    if ran.status == 0:
        return None
    said = ran.output.decode("utf-8", "replace").strip().splitlines()
    return f"{command[0]}: exit {ran.status}" + (f": {said[-1]}" if said else "")


async def output_of(
    placement: Placement, spec: ProcessSpec, command: tuple[str, ...], timeout_ms: int
) -> Ran:
    """What it printed, and how it ended. Nothing that it started is left."""
    arguments = shim_command.once(placement, spec, command, timeout_ms + _BACKSTOP_MS)
    mark = placement.state.run_directory(RunId(spec.entry, spec.unit, spec.digest)) / "command"
    environment = shim_command.environment(placement, spec, mark)
    reader, writer = os.pipe()
    try:
        child = spawn.spawn(arguments, environment, output=writer)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    reading = asyncio.ensure_future(spawn.read_all(reader, _OUTPUT_MAX))
    try:
        timely = await child.wait(timeout_ms / 1000)
        child.signal(signal.SIGUSR1)
        await child.wait(_KILL_MAX_S)
        async with asyncio.timeout(_KILL_MAX_S):
            output = await reading
    finally:
        child.signal(signal.SIGUSR1)
        reading.cancel()
    status = child.ended.result() if child.ended.done() else None
    return Ran(status=status if timely else None, output=output)
