"""A service moves with its data, or with a backup, or without; and nothing of it is lost.

One fleet for all: a service that counts in its volume, and goes to and fro between two machines.
"""

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, Network, wait_for

HOOK = Path(__file__).with_name("boundaries")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("volumes")]

PROGRAM = """
import http.server, os, pathlib
DATA = pathlib.Path(os.environ.get("KEYPLANE_ROOT", "") + "/var/lib/tally/count")

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self, add=0):
        count = int(DATA.read_text() if DATA.exists() else 0) + add
        if add:
            made = DATA.with_suffix(".new")
            made.write_text(str(count))
            made.replace(DATA)  # it may be told to end at any moment
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d" % count)

    def do_POST(self):
        self.do_GET(add=1)

    def log_message(self, *_):
        pass

address = os.environ["ADDRESS"], int(os.environ["PORT"])
http.server.ThreadingHTTPServer(address, Handler).serve_forever()
"""
MODULE = """
module = "tally"
version = "1.0"
[roles.main.listens]
web = { protocol = "tcp" }
[roles.main.volumes.data]
path = "/var/lib/tally"
[roles.main.units.tally]
kind = "process"
command = ["python3", "tally.py"]
archive = "code"
env = { ADDRESS = "${machine.address}", PORT = "${alloc.ports.web}" }
health = { http = "http://${machine.address}:${alloc.ports.web}/", interval = "1s" }
[build.archives.code]
directory = "src"
"""
FLEET = """
fleet = "counted"
[machines.alpha]
address = "127.77.0.1"
local = true
[machines.beta]
address = "127.77.0.2"
local = true
[instances.tally]
module = "tally"
placement.every.main = { machines = ["alpha"] }
"""
ADDRESS = {"alpha": "127.77.0.1", "beta": "127.77.0.2"}


@dataclass
class Counted:
    fleet: Fleet
    machine: str = "alpha"

    @property
    def entry(self) -> str:
        return f"tally:main@{self.machine}"

    def count(self, *, add: bool = False) -> int:
        port = self.fleet.listen(self.entry, "web")
        url = f"http://{ADDRESS[self.machine]}:{port}/"
        return int(self.fleet.get(url, b"" if add else None))

    def turn(self) -> str:
        """Edit the text, so that it goes to the other machine; which one it comes from."""
        former, self.machine = self.machine, {"alpha": "beta", "beta": "alpha"}[self.machine]
        self.fleet.edit("fleet.toml", f'"{former}"]', f'"{self.machine}"]')
        return former

    def backups(self) -> Any:
        return self.fleet.run("backups", "--json").json

    def file(self, machine: str, below: str = "") -> Path:
        root = self.fleet.directory / ".keyplane" / "machines" / machine / "root"
        return root / f"var/lib/tally{below}" / "count"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    directory = tmp_path_factory.mktemp("counted") / "fleet"
    (directory / "modules/tally/src").mkdir(parents=True)
    (directory / "modules/tally/src/tally.py").write_text(PROGRAM)
    (directory / "modules/tally/module.toml").write_text(MODULE)
    (directory / "fleet.toml").write_text(FLEET)
    network = Network()
    fleet = Fleet(directory, network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HOOK))
        patch.setenv("KEYPLANE_TEST_BOUNDARIES", str(directory))
        try:
            fleet.run("up", ".", "--yes")
            yield Counted(fleet)
        finally:
            try:
                fleet.close()
            finally:
                network.close()


def test_a_move_is_refused_until_its_data_is_spoken_of(counted: Counted) -> None:
    """With what there is to choose from, and what was typed wrong is named."""
    counted.count(add=True)
    before = counted.fleet.start_ids()
    former = counted.turn()
    fleet = counted.fleet
    assert "hand-over" in fleet.run("apply", "--yes", exit_status=1).out
    wrong = fleet.run("apply", "--yes", "--volumes", "hand-ovr", exit_status=2)
    assert "`hand-ovr` is none of hand-over, restore, start-empty" in wrong.err
    other = fleet.run("apply", "--yes", "--volumes", "tali=hand-over", exit_status=2)
    assert "the data of tally:main is asked about" in other.out + other.err
    none = fleet.run("apply", "--yes", "--volumes", "restore", exit_status=1)
    assert "there is no backup of tally:main" in none.out + none.err
    assert fleet.start_ids() == before
    fleet.edit("fleet.toml", f'"{counted.machine}"]', f'"{former}"]')
    counted.machine = former


def test_a_service_goes_on_counting_where_it_is_handed_over_to(counted: Counted) -> None:
    """And back: the old copy is listed, put aside, and never counted on."""
    copies, former = set[tuple[str, str]](), ""
    for _ in range(2):
        counted_so_far = counted.count(add=True)
        former = counted.turn()
        end = counted.fleet.apply("--volumes", "tally=hand-over")
        assert (end["outcome"], end["started"], end["stopped"]) == ("done", 1, 1)
        assert counted.count(add=True) == counted_so_far + 1
        listed = counted.backups()
        assert listed["backups"][0]["why"] == f"handed over to {counted.entry}"
        copies = {(each["machine"], each["path"]) for each in listed["copies"]}
        assert (former, "/var/lib/tally") in copies
        assert counted.file(former).read_text() == str(counted_so_far)
    aside = [each for each in copies if ".kept-" in each[1]]
    assert [machine for machine, _ in aside] == [counted.machine]
    shown = counted.fleet.run("backups").out
    assert f"rm -r {counted.file(former).parent}" in shown


def test_a_backup_is_what_a_service_starts_with_again(counted: Counted) -> None:
    """It counts on from the backup; what it had since stays where it was."""
    fleet, saved = counted.fleet, counted.count(add=True)
    before = fleet.start_ids()
    made = fleet.run("backup", counted.entry, "--json").json
    assert made["entry"] == counted.entry
    assert counted.backups()["backups"][0] == made
    # It is told once it is saved; what was saved is started again then.
    wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "it counts again")
    after = fleet.start_ids()
    assert before.keys() == after.keys()
    assert before != after  # it stood still meanwhile, as whoever asks is told
    later = counted.count(add=True)
    former = counted.turn()
    fleet.apply("--volumes", f"tally:main=restore:{made['backup']}")
    assert counted.count() == saved
    assert counted.file(former).read_text() == str(later)
    held = fleet.run("collection", "--json").json["archives"]
    (digest,) = made["volumes"].values()
    assert [each["goes"] for each in held if each["digest"] == digest] == [False]
    fleet.run("backups", "--forget", str(made["backup"]))
    assert made["backup"] not in [each["backup"] for each in counted.backups()["backups"]]
    unknown = fleet.run("backup", "tally:main@gamma", exit_status=2)
    assert "no entry tally:main@gamma" in unknown.err


def test_a_service_starts_empty_where_somebody_says_so(counted: Counted) -> None:
    counted.count(add=True)
    counted_so_far = counted.count(add=True)
    former = counted.turn()
    counted.fleet.apply("--volumes", "start-empty")
    assert counted.count() == 0
    assert counted.file(former).read_text() == str(counted_so_far)


BOUNDARIES = [
    ("FORMER", "before save tally:main@FORMER", 1),
    ("FORMER", "after save tally:main@FORMER", 1),
    ("LATTER", "before take /var/lib/tally", 1),
    ("LATTER", "after take /var/lib/tally", 1),
    ("controller", "before change_volume_orders", 1),
    ("controller", "after change_volume_orders", 1),
    ("controller", "after keep_backup", 1),
    ("controller", "after change_volume_orders", 2),
]


@pytest.mark.parametrize(("part", "name", "number"), BOUNDARIES)
def test_a_hand_over_goes_on_wherever_it_was_cut_off(
    counted: Counted, part: str, name: str, number: int
) -> None:
    """One part is killed at a boundary; the apply comes to its end, and the count goes on."""
    so_far = counted.count(add=True)
    former = counted.turn()
    machines = {"FORMER": former, "LATTER": counted.machine}
    part = f"agent-{machines[part]}" if part in machines else part
    armed = counted.fleet.directory / f"{part}.armed"
    draft = armed.with_suffix(".new")
    draft.write_text(f"{name.replace('FORMER', former)}\n{number}\nself")
    draft.replace(armed)
    fleet = counted.fleet
    ran = fleet.run("apply", "--yes", "--json", "--volumes", "hand-over", exit_status=None)
    assert not armed.exists(), f"{part} did not come to {name}\n{ran.out}"
    if part == "controller" and ran.exit:
        # Who applied may have been told no end of it: said again, it goes on as it was chosen.
        wait_for(lambda: fleet.run("apply", "--yes", exit_status=None).exit == 0, name)
    else:
        assert json.loads(ran.out.splitlines()[-1])["outcome"] == "done", ran.out + ran.err
    assert counted.count(add=True) == so_far + 1


def test_nothing_is_written_while_a_volume_is_saved(counted: Counted) -> None:
    """Somebody counts all the while; what was answered before the stop is in the new place."""
    answered: list[int] = []
    done = threading.Event()
    port = counted.fleet.listen(counted.entry, "web")
    url = f"http://{ADDRESS[counted.machine]}:{port}/"

    def ask() -> None:
        while not done.is_set():
            try:
                answered.append(int(counted.fleet.get(url, b"")))
            except (OSError, http.client.HTTPException, ValueError):  # none, or half an answer
                done.wait(0.01)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        wait_for(lambda: answered, "it answers")
        counted.turn()
        counted.fleet.apply("--volumes", "hand-over")
    finally:
        done.set()
        asking.join()
    assert counted.count() >= answered[-1]
