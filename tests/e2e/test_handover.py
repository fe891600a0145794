"""A unit that takes over: from its former version, or from a unit of another name, with no gap."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.e2e.fleet import Fleet, Network, standing, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ADDRESS = "127.77.0.1"
WEB, JOBS = "web:main@a", "jobs:main@a"

WEB_MODULE = """
module = "web"
version = "1"
[roles.main.settings]
word = { type = "string", default = "one" }
[roles.main.listens]
http = { protocol = "tcp" }
[roles.main.units.server]
kind = "process"
command = ["python3", "-u", "server.py"]
archive = "code"
stopTimeout = "2s"
handover = "start-first"
env = { PORT = "${alloc.ports.http}", ADDRESS = "${machine.address}", WORD = "${settings.word}" }
health = { http = "http://${machine.address}:${alloc.ports.http}/", interval = "200ms", startPeriod = "20s" }
[build.archives.code]
directory = "src"
"""
SERVER = """
import http.server, os, sys
word = os.environ["WORD"]
if word == "broken":
    sys.exit("broken, as it was told")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(word.encode())
    def log_message(self, *_):
        pass
class Server(http.server.HTTPServer):
    allow_reuse_port = word != "alone"
Server((os.environ["ADDRESS"], int(os.environ["PORT"])), Handler).serve_forever()
"""
JOBS_MODULE = """
module = "jobs"
version = "1"
[roles.main.units.worker]
kind = "process"
command = ["sh", "-c", "while :; do sleep 1; done", "worker"]
health = { command = ["true"], interval = "200ms" }
"""
SUCCESSOR = """
[roles.main.units.runner]
kind = "process"
command = ["sh", "-c", "while :; do sleep 1; done", "runner"]
replaces = "worker"
health = { command = ["test", "-e", "GATE"], interval = "200ms", startPeriod = "60s" }
"""
FLEET = f"""
fleet = "handover"
[machines.a]
address = "{ADDRESS}"
local = true
[instances.web]
module = "web"
placement.every.main = {{}}
settings.main.word = "one"
[instances.jobs]
module = "jobs"
placement.every.main = {{}}
"""


def write(directory: Path) -> None:
    source = directory / "modules" / "web" / "src"
    source.mkdir(parents=True)
    (source / "server.py").write_text(SERVER)
    (source.parent / "module.toml").write_text(WEB_MODULE)
    (directory / "modules" / "jobs").mkdir()
    (directory / "modules" / "jobs" / "module.toml").write_text(JOBS_MODULE)
    (directory / "interfaces.toml").write_text("")
    (directory / "fleet.toml").write_text(FLEET)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("handover") / "handover"
    directory.mkdir()
    write(directory)
    with standing(Fleet(directory, Network())) as fleet:
        yield fleet


class Asking:
    """Asks the server over and over who it is, from a thread of its own."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.heard: list[str | None] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ends.is_set():
            self.heard.append(self.fleet.try_get(f"http://{ADDRESS}:20000/"))
            time.sleep(0.01)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def word(fleet: Fleet, old: str, new: str) -> None:
    fleet.edit("fleet.toml", f'word = "{old}"', f'word = "{new}"')


def running(fleet: Fleet, mark: str) -> set[int]:
    return {pid for pid, command in fleet.holders().items() if mark in command}


def servers(fleet: Fleet) -> set[int]:
    """Themselves, and not their shims, which are told the command."""
    return {
        pid
        for pid, command in fleet.holders().items()
        if "python3 -u server.py" in command and "keyplane-shim" not in command
    }


def test_another_version_takes_over_while_the_former_answers(fleet: Fleet) -> None:
    """The former one answers until the new one does; then it is stopped, and one is left."""
    before = fleet.start_ids()[f"{WEB}/server"]
    word(fleet, "one", "two")
    with Asking(fleet) as asking:
        end = fleet.apply()
    assert (end["outcome"], end["restarted"]) == ("done", 1)
    wait_for(lambda: len(servers(fleet)) == 1, "one server is left")
    assert fleet.get(f"http://{ADDRESS}:20000/") == "two"
    assert fleet.start_ids()[f"{WEB}/server"] != before
    # Once both listen the kernel gives a caller to either. One whom the former had not taken when
    # it ended is turned away, and asks again; nobody is turned away twice.
    pairs = zip(asking.heard, asking.heard[1:], strict=False)
    assert (None, None) not in pairs
    assert "one" in asking.heard


def test_a_version_that_does_not_start_takes_nothing_away(fleet: Fleet) -> None:
    """The apply fails, `status` tells that the former one runs on, and the next edit mends it."""
    before = fleet.start_ids()[f"{WEB}/server"]
    word(fleet, "two", "broken")
    with Asking(fleet) as asking:
        end = fleet.apply(exit_status=1)
    assert set(asking.heard) == {"two"}
    assert "broken, as it was told" in str(end["failures"])
    assert fleet.start_ids()[f"{WEB}/server"] == before
    shown = fleet.run("status", exit_status=None).out
    assert f"its former version runs on as pid {before[0]} until it is healthy" in shown
    word(fleet, "broken", "two")
    end = fleet.apply()
    assert (end["outcome"], end["restarted"]) == ("done", 0)
    assert fleet.start_ids()[f"{WEB}/server"] == before


def test_what_cannot_share_its_port_is_not_taken_for_the_former_one_that_answers(
    fleet: Fleet,
) -> None:
    """A probe that the former one answers says nothing of the new one."""
    before = fleet.start_ids()[f"{WEB}/server"]
    word(fleet, "two", "alone")
    end = fleet.apply(exit_status=1)
    assert "Address already in use" in str(end["failures"])
    assert fleet.get(f"http://{ADDRESS}:20000/") == "two"
    assert fleet.start_ids()[f"{WEB}/server"] == before
    fleet.edit("modules/web/module.toml", 'handover = "start-first"', 'handover = "stop-first"')
    fleet.apply()
    assert fleet.get(f"http://{ADDRESS}:20000/") == "alone"


def test_a_replaced_unit_is_removed_once_its_successor_is_healthy(fleet: Fleet) -> None:
    """The module has it no longer, and it runs on until the one that replaces it is well."""
    gate = fleet.directory.parent / "gate"
    module = fleet.directory / "modules" / "jobs" / "module.toml"
    head = JOBS_MODULE.partition("[roles")[0]
    module.write_text(head + SUCCESSOR.replace("GATE", str(gate)))
    applying = fleet.start("apply", "--yes", "--json")
    try:
        wait_for(lambda: running(fleet, "done runner"), "the successor runs")
        note = "worker: runs on as pid"
        wait_for(lambda: note in fleet.run("status", exit_status=None).out, "it is told of")
        assert running(fleet, "done worker")
        gate.touch()
        out, err = applying.communicate(timeout=300)
    finally:
        applying.kill()
    assert applying.returncode == 0, out + err
    wait_for(lambda: not running(fleet, "done worker"), "the replaced one is gone")
    assert running(fleet, "done runner")
    assert list(fleet.start_ids()) == [f"{JOBS}/runner", f"{WEB}/server"]
    assert note not in fleet.run("status").out


def test_the_plan_says_what_is_stopped_first_all_the_same(fleet: Fleet) -> None:
    """A volume is had by one alone: an apply says so before it asks."""
    fleet.edit("modules/web/module.toml", 'handover = "stop-first"', 'handover = "start-first"')
    with (fleet.directory / "modules" / "web" / "module.toml").open("a") as text:
        text.write('[roles.main.volumes.data]\npath = "/srv/web"\n')
    ran = fleet.run("apply", "--dry-run")
    said = "started once its former version has stopped, not before: only one of them can have"
    assert f"{said} volume data" in ran.out + ran.err
