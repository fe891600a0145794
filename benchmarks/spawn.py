"""Starts a process plainly and under a shim, in turns: how long until its first line is read.

The limit is `posix_spawn` of the same program. The goal (DESIGN §11) is that a unit whose value
changed is stopped and runs again within six times that.

    python -m benchmarks.spawn [ROUNDS]
"""

import asyncio
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.host import ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName

ENTRY, UNIT = EntryId("web:main@alpha"), UnitName("server")
DIGESTS = [Digest("sha256-" + letter * 64) for letter in "ab"]
DECLARED = "/etc/mygame/x.json"


CLOCK = """
import os, struct, sys, time
fifo = os.open(sys.argv[1], os.O_RDWR)  # held open, so that no end is read between two rounds
os.write(1, b"ready...")
while os.read(fifo, 16):
    os.write(1, struct.pack("d", time.perf_counter()))
"""


class Round:
    """A program that says through a pipe with a name that it came to its first line.

    When it did, a process of its own reads off the clock: what is measured may be busy by then.
    """

    def __init__(self, folder: Path) -> None:
        self.fifo = folder / "fifo"
        os.mkfifo(self.fifo)
        self.command = ("/bin/sh", "-c", f"echo x > {self.fifo}; exec sleep 600")
        self.clock = subprocess.Popen(
            [sys.executable, "-c", CLOCK, str(self.fifo)], stdout=subprocess.PIPE, bufsize=0
        )
        assert self.clock.stdout is not None
        self.times = self.clock.stdout.fileno()
        assert os.read(self.times, 8) == b"ready..."

    def close(self) -> None:
        self.clock.kill()
        self.clock.wait()

    async def said(self) -> float:
        """When, by `time.perf_counter`."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self.times, ready.set_result, None)
        await ready
        loop.remove_reader(self.times)
        (when,) = struct.unpack("d", os.read(self.times, 8))
        return when


async def plain(round_: Round) -> float:
    began = time.perf_counter()
    pid = os.posix_spawn(round_.command[0], round_.command, os.environ)
    took = await round_.said() - began
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return took


def spec(round_: Round, digest: Digest, paths: tuple[str, ...]) -> ProcessSpec:
    return ProcessSpec(
        entry=ENTRY, unit=UNIT, digest=digest, command=round_.command, env={"A": "1"}, paths=paths
    )


async def under_shim(
    units: LinuxProcesses, round_: Round, paths: tuple[str, ...]
) -> tuple[float, float]:
    """To start, and to replace it by the same with another digest."""
    old, new = DIGESTS
    began = time.perf_counter()
    await units.start(spec(round_, old, paths))
    started = await round_.said()
    again = time.perf_counter()
    await units.stop(ENTRY, UNIT, old, timeout_ms=5_000)
    await units.start(spec(round_, new, paths))
    restarted = await round_.said()
    await units.stop(ENTRY, UNIT, new, timeout_ms=5_000)
    return started - began, restarted - again


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        state = StateRoot(Path(name))
        state.make()
        declared = Path(f"{state.root}{DECLARED}")
        declared.parent.mkdir(parents=True)
        declared.write_text("{}")
        environment = {"PATH": os.environ["PATH"]}
        bare, private = (
            LinuxProcesses(Placement(state=state, private_roots=private, environment=environment))
            for private in (False, True)
        )
        round_ = Round(state.path)
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            times.setdefault("posix_spawn", []).append(await plain(round_))
            for title, units, paths in (
                ("shim", bare, ()),
                ("shim, private root", private, (DECLARED,)),
            ):
                start, restart = await under_shim(units, round_, paths)
                times.setdefault(f"{title}: start", []).append(start)
                times.setdefault(f"{title}: stop and start", []).append(restart)
        round_.close()
    limit = statistics.median(times["posix_spawn"])
    for title, taken in times.items():
        median = statistics.median(taken)
        print(f"{title:38} {median * 1000:7.2f} ms   {median / limit:5.1f} ×")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
