"""A fleet that runs here, against the limits of its work; one run, a ratio each.

  edit      one value edited → its process healthy again, by the controller's own count, against
            posix_spawn of that process plus its own time until it answers
  nothing   a whole `keyplane apply` with no difference, against `keyplane --help`
  idle      an agent's memory and processor time while nothing happens, against a bare asyncio loop
  help      `keyplane --help`, against `python -c pass`

    python -m benchmarks.fleet [ROUNDS]

Root makes a network namespace for it, so that its ports are its own.
"""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.fleet import Fleet, running

SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.77.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
MODULE = """
module = "echo"
version = "1"
[roles.main.settings]
word = { type = "string", default = "a" }
[roles.main.listens]
web = { protocol = "tcp" }
[roles.main.units.echo]
kind = "process"
archive = "code"
command = ["python3", "-S", "server.py", "${alloc.ports.web}", "${settings.word}"]
health = { tcp = "${machine.address}:${alloc.ports.web}", interval = "1s" }
[build.archives.code]
directory = "src"
"""
FLEET = """
fleet = "bench"
[machines.alpha]
local = true
address = "127.77.0.1"
[instances.echo]
module = "echo"
settings.main.word = "WORD"
placement.every.main = {}
"""
IDLE_S = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        code = source / "modules" / "echo" / "src"
        code.mkdir(parents=True)
        (code / "server.py").write_text(SERVER)
        (code.parent / "module.toml").write_text(MODULE)
        (source / "fleet.toml").write_text(FLEET)
        with running(source, Path(folder) / "fleet") as fleet:
            edit(fleet, rounds)
            nothing(fleet, rounds)
            idle(fleet)


def edit(fleet: Fleet, rounds: int) -> None:
    ours, limit = [], []
    for turn in range(rounds):
        (fleet.directory / "fleet.toml").write_text(FLEET.replace("WORD", f"w{turn}"))
        ours.append(fleet.apply()["milliseconds"])
        limit.append(fleet.network.inside(lambda: plain(fleet.directory)))
    show("edit → healthy, one process", ours, "posix_spawn + its own start", limit, "ms")


def plain(directory: Path) -> float:
    """Milliseconds until the same program answers when nothing is between it and us."""
    began = time.perf_counter()
    pid = os.posix_spawnp(
        "python3",
        ["python3", "-S", str(directory / "modules/echo/src/server.py"), "29999", "w"],
        os.environ,
    )
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.77.0.1", 29999)):
                return (time.perf_counter() - began) * 1000
            time.sleep(0.0005)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def nothing(fleet: Fleet, rounds: int) -> None:
    ours, limit, bare = [], [], []
    for _ in range(rounds):
        ours.append(timed(lambda: fleet.run("apply", "--yes")))
        limit.append(timed(lambda: fleet.run("--help")))
        bare.append(timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)))
    show("apply with no difference", ours, "keyplane --help", limit, "ms")
    show("keyplane --help", limit, "python -c pass", bare, "ms")


def timed(call) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def idle(fleet: Fleet) -> None:
    bare = subprocess.Popen(
        [sys.executable, "-c", "import asyncio; asyncio.run(asyncio.sleep(600))"]
    )
    try:
        agent = fleet.parts()["agent alpha"]
        time.sleep(2)
        before = ticks(agent)
        time.sleep(IDLE_S)
        share = (ticks(agent) - before) / _TICKS / IDLE_S * 100
        print(f"idle agent: {share:.2f} % of a core (goal: under 0.2 %), one health check a second")
        show("idle agent's memory", [rss(agent)], "a bare asyncio loop", [rss(bare.pid)], "MiB")
    finally:
        bare.kill()
        bare.wait()


def ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def rss(pid: int) -> float:
    return (
        int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
    )


def show(name: str, ours: list[float], limit_name: str, limit: list[float], unit: str) -> None:
    a, b = statistics.median(ours), statistics.median(limit)
    print(f"{name}: {a:.1f} {unit}; {limit_name}: {b:.1f} {unit}; ratio {a / b:.2f}")


if __name__ == "__main__":
    main()
