"""A rollout over simulated machines, against the sum of its own waits, and its controller's time.

One setting of a service with a member on each machine moves, with the default policy but for
`maxUnavailable`: one machine first, watched for its settle time, then waves. A controller with
SQLite plans, offers and judges; a machine is a report that all is well, a while after it was
offered something. Nothing is faster than the settle time and one such while for each step.

    python -m benchmarks.rollouts [MACHINES] [MAX_UNAVAILABLE]
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import nacl.signing

from benchmarks.beside import cores
from benchmarks.unchanged import begin, controller_of, well
from keyplane import wire
from keyplane.adapters import clock, directory
from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.model.names import MachineName
from keyplane.parts import control_messages as messages
from keyplane.parts.main import heap
from keyplane.parts.offering import Offering
from keyplane.ports.inventory import InventoryUnavailableError
from keyplane.testing.bus import MemoryBus, MemoryControllerBus

if TYPE_CHECKING:
    from keyplane.model.declaration import OfferNumber
    from keyplane.parts.controller import Controller

SETTLE_S = 1.0
BEAT_S = 5.0
AGAIN_S = 1.0
READY_S = 0.1
"""From the offer to a healthy process: what a machine takes."""

MODULE = """
module = "web"
version = "1"
[roles.main.settings]
word = { type = "string" }
[roles.main.units.server]
kind = "process"
command = ["serve", "${settings.word}"]
"""


def write_fleet(folder: Path, machines: int, most: int, word: str) -> None:
    module = folder / "modules" / "web"
    module.mkdir(parents=True, exist_ok=True)
    (module / "module.toml").write_text(MODULE)
    each = "".join(
        f'[machines.m{number}]\nlocal = true\naddress = "127.{77 + number // 250}.0.'
        f'{number % 250 + 1}"\n'
        for number in range(machines)
    )
    (folder / "fleet.toml").write_text(
        f'fleet = "bench"\n{each}[instances.web]\nmodule = "web"\nplacement.every.main = {{}}\n'
        f'settings.main.word = "{word}"\npolicy.settle = "1s"\npolicy.maxUnavailable = {most}\n'
    )


class Machines(MemoryControllerBus):
    """Each reports that all is well a while after it was woken; what that costs is told apart."""

    def __init__(self) -> None:
        super().__init__(MemoryBus())
        self.controller: Controller | None = None
        self.offering: Offering | None = None
        self.took_s = 0.0
        self.had: dict[MachineName, OfferNumber] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def hint(self, machine: MachineName) -> None:
        task = asyncio.get_running_loop().create_task(self._works(machine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _works(self, machine: MachineName) -> None:
        await asyncio.sleep(READY_S)
        assert self.offering is not None
        assert self.controller is not None
        declaration = await self.offering.last(machine)
        assert declaration is not None
        began = time.process_time()
        report = wire.encode_report(well(machine, declaration))
        self.took_s += time.process_time() - began
        self.had[machine] = declaration.offer
        while True:
            with contextlib.suppress(InventoryUnavailableError):  # as an agent, it says it again
                await self.controller.on_report(machine, report)
                return
            await asyncio.sleep(AGAIN_S)

    async def beat(self) -> None:
        """Each says what it has, every five seconds."""
        while True:
            for machine, offer in list(self.had.items()):
                beat = wire.Beat(offer=offer, sequence=offer.counter)
                assert self.controller is not None
                await self.controller.on_beat(machine, wire.encode(beat))
                await asyncio.sleep(BEAT_S / len(self.had))
            await asyncio.sleep(0.1)


async def measured(folder: Path, machines: int, most: int) -> None:
    inventory = await SqlInventory.open(f"sqlite:///{folder}/inventory")
    key, bus, system_clock = nacl.signing.SigningKey.generate(), Machines(), clock.SystemClock()
    now = system_clock.now_ms()
    assert await inventory.take_lease("bench", now_ms=now, until_ms=now + 3_600_000)
    offering = Offering(inventory=inventory, bus=bus, clock=system_clock, key=key)
    controller = controller_of(inventory, offering)
    bus.controller, bus.offering = controller, offering
    running = [asyncio.ensure_future(each) for each in (controller.run(), bus.beat())]
    for word in ("one", "two"):
        write_fleet(folder / "source", machines, most, word)
        began, used, bus.took_s = time.perf_counter(), time.process_time(), 0.0
        steps = 0
        async for event in await begin(controller, directory.read_revision(folder / "source")):
            if isinstance(event, messages.Stepped):
                steps = event.steps
            if isinstance(event, messages.Ended):
                assert event.outcome == "done", event
        took, used = time.perf_counter() - began, time.process_time() - used - bus.took_s
    waits = SETTLE_S + steps * READY_S
    print(
        f"{machines} machines, {most} at once at most: {steps} steps in {took:.1f} s; its own waits: "
        f"{waits:.1f} s; ratio {took / waits:.2f}; controller {used / machines * 1000:.1f} ms of a "
        "core for each machine, planning among it"
    )
    for each in running:
        each.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await inventory.close()


def main() -> None:
    print(cores.take())
    heap.look_seldom()
    given = [int(word) for word in sys.argv[1:]]
    for machines, most in (
        [tuple(given)] if len(given) > 1 else [(100, 10), (1_000, 10), (1_000, 100)]
    ):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measured(Path(folder), machines, most))


if __name__ == "__main__":
    main()
