"""One service with a replica on each machine, whose word says how it behaves.

`broken` ends at once; `ill…` answers that it is ill, from its second request on if it says `later`;
`gated…` answers nothing before the test opens the gate of its machine.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.e2e.fleet import Fleet, Network, standing

MODULE = """
module = "web"
version = "1"
[roles.main.settings]
word = { type = "string", default = "one" }
gates = { type = "string" }
[roles.main.listens]
http = { protocol = "tcp" }
[roles.main.units.server]
kind = "process"
command = ["python3", "-u", "server.py"]
archive = "code"
restart = "no"
stopTimeout = "2s"
health = { http = "http://${machine.address}:${alloc.ports.http}/", interval = "200ms" }
[roles.main.units.server.env]
PORT = "${alloc.ports.http}"
ADDRESS = "${machine.address}"
GATE = "${settings.gates}/${machine.name}"
WORD = "${settings.word}"
[build.archives.code]
directory = "src"
"""
SERVER = """
import http.server, os, sys, time
word = os.environ["WORD"]
if word == "broken":
    sys.exit("broken, as it was told")
asked = 0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        self.send_response(500 if word == "ill" or (word == "ill later" and asked > 3) else 200)
        self.end_headers()
        self.wfile.write(word.encode())
    def log_message(self, *_):
        pass
while word.startswith("gated") and not os.path.exists(os.environ["GATE"]):
    time.sleep(0.05)
# In threads, as the check of an agent that a test has stilled holds its connection.
address = os.environ["ADDRESS"], int(os.environ["PORT"])
http.server.ThreadingHTTPServer(address, Handler).serve_forever()
"""


class WebFleet(Fleet):
    """The fleet, with a machine for each of its letters."""

    def __init__(self, directory: Path, network: Network, machines: str, **policy: object) -> None:
        super().__init__(directory, network)
        self.machines = machines
        self.word = "one"
        self.policy = policy

    @property
    def entries(self) -> list[str]:
        return [f"web:main@{name}" for name in self.machines]

    @property
    def gates(self) -> Path:
        return self.directory / "gates"

    def write(self) -> None:
        """The text as it is to be now."""
        source = self.directory / "modules" / "web" / "src"
        if not source.exists():
            source.mkdir(parents=True)
            self.gates.mkdir()
            (source / "server.py").write_text(SERVER)
            (source.parent / "module.toml").write_text(MODULE)
            (self.directory / "interfaces.toml").write_text("")
        lines = ['fleet = "web"']
        for name in self.machines:
            lines += [f"[machines.{name}]", f'address = "{address(name)}"', "local = true"]
        lines += ["[instances.web]", 'module = "web"', "placement.every.main = {}"]
        lines += [f"settings.main.word = {json.dumps(self.word)}"]
        lines += [f"settings.main.gates = {json.dumps(str(self.gates))}"]
        lines += [f"policy.{name} = {json.dumps(value)}" for name, value in self.policy.items()]
        (self.directory / "fleet.toml").write_text("\n".join(lines) + "\n")

    def say(self, word: str, **policy: object) -> None:
        """Write another word, and another policy where one is given."""
        self.word = word
        self.policy |= policy
        self.write()

    def open_gates(self, machines: Iterable[str]) -> None:
        for name in machines:
            (self.gates / name).touch()

    def shut_gates(self) -> None:
        for path in self.gates.iterdir():
            path.unlink()

    def words(self) -> dict[str, str | None]:
        """What each replica answers; None if it does not."""
        return {name: self.try_get(f"http://{address(name)}:20000/") for name in self.machines}

    def told(self) -> dict[str, str]:
        """The word with which each reported process was started, by what the kernel says."""
        found: dict[str, str] = {}
        for unit, (pid, _) in self.start_ids().items():
            with contextlib.suppress(OSError):  # it was reported, and has ended since
                raw = Path(f"/proc/{pid}/environ").read_bytes().decode()
                env = dict(pair.split("=", 1) for pair in raw.split("\0") if "=" in pair)
                if env:  # with none it is just ending
                    found[unit.partition("@")[2].partition("/")[0]] = env["WORD"]
        return found

    def shown(self) -> dict[str, Any]:
        return self.run("rollout", "show", "--json").json["rollout"]

    def agent(self, machine: str) -> int:
        return self.parts()[f"agent {machine}"]


def address(machine: str) -> str:
    return f"127.77.0.{ord(machine) - ord('a') + 1}"


@contextlib.contextmanager
def up(directory: Path, machines: str, **policy: object) -> Iterator[WebFleet]:
    """A fleet that runs until the block ends."""
    directory.mkdir()
    fleet = WebFleet(directory, Network(), machines, **policy)
    fleet.write()
    with standing(fleet):
        yield fleet
