"""An agent over real processes whose wall clock is set a day off, forward and back.

The clock is the port's: what an agent knows of the time comes through it alone.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keyplane.adapters.clock import SystemClock
from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.converge import saved
from keyplane.model.declaration import EntryState
from keyplane.model.occurrence import Act, Cause
from keyplane.parts.agent import Agent, Host
from keyplane.parts.agent_line import Identity
from tests.unit.converge.world import SERVER, WEB, entry, unit
from tests.unit.parts.agent_world import ALPHA, World

DAY_MS = 86_400_000


class SetClock(SystemClock):
    """The system's, with a wall clock that somebody sets."""

    skew_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.skew_ms


async def until(predicate: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not predicate():
        assert time.monotonic() < end, "the deadline passed"
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("by_ms", [DAY_MS, -DAY_MS])
async def test_a_clock_that_is_set_a_day_off_costs_nothing(tmp_path: Path, by_ms: int) -> None:
    """Offers are taken, what runs stays, what ends is started again as soon as ever."""
    state = StateRoot(tmp_path / "state")
    state.make()
    placement = Placement(
        state=state, private_roots=False, environment={"PATH": os.environ["PATH"]}
    )
    world, clock = World(), SetClock()
    processes = LinuxProcesses(placement)
    agent = Agent(
        identity=Identity(machine=ALPHA, controller_key=world.desk.key.verify_key, boot="life"),
        host=Host(
            files=LinuxFiles(state, state.root),
            artifacts=world.host.artifacts,
            processes=processes,
            volumes=world.host.volumes,
            sources=world.sources,
            facts=world.facts,
        ),
        bus=world.bus.agent(ALPHA),
        clock=clock,
        spread=lambda: 0.0,
    )
    desk = world.desk
    desk.declare({WEB: entry(units={"server": unit("1", "sleep", "600")})})

    def healthy() -> bool:
        found = desk.reports[-1].entries.get(WEB) if desk.reports else None
        return found is not None and found.state is EntryState.HEALTHY

    def pid() -> int:
        found = desk.reports[-1].entries[WEB].units[SERVER].pid
        assert found is not None
        return found

    async with world.served():
        life = asyncio.create_task(agent.run())
        try:
            await until(healthy)
            first = pid()
            clock.skew_ms = by_ms
            desk.declare({WEB: entry(key="next", units={"server": unit("1", "sleep", "600")})})
            await world.controller.hint(ALPHA)
            await until(lambda: desk.reports[-1].offer == desk.offer)
            assert pid() == first
            os.kill(first, signal.SIGKILL)
            await until(lambda: healthy() and pid() != first)
        finally:
            life.cancel()
            await asyncio.wait([life])
            for each in processes.observe():
                await processes.stop(each.entry, each.unit, each.digest, timeout_ms=0)
            processes.close()
    files = LinuxFiles(state, state.root)
    history = saved.decode_history(files.read_state(saved.HISTORY))
    assert history is not None
    start, end, again = history.kept[:3]
    assert (end.act, end.cause, again.act) == (Act.END, Cause.CRASH, Act.RESTART)
    # It is told by the clock as it was then, in the order in which it happened.
    assert abs(end.at_ms - start.at_ms - by_ms) < 120_000
    assert again.number == end.number + 1
