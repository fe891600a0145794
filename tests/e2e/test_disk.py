"""Disks that are full or read-only, a database that is locked, descriptors that ran out.

What it was is said, with where; nothing is torn; and it goes on by itself once it can.
"""

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import two_texts
from tests.e2e.fleet import Network, Ran, wait_for
from tests.e2e.mounts import Mounted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ARCHIVE_BYTES = 300_000
"""What no compression makes smaller."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    directory = tmp_path_factory.mktemp("disk") / "fleet"
    two_texts.write(directory, "a")
    network = Network()
    it = Mounted(directory, network)
    try:
        for path in ("machines/alpha", "controller", "store", "bus", "log"):
            it.disk(path, 16)
        it.run("up", ".", "--yes")
        yield it
    finally:
        try:
            it.close()
        finally:
            network.close()


def edit(fleet: Mounted) -> str:
    """The other text, with an archive that the store does not have; which text it is."""
    now = (fleet.directory / "modules/web/src/code").read_text()
    text = "b" if now == "code a" else "a"
    two_texts.write(fleet.directory, text)
    (fleet.directory / "modules/web/src/big").write_bytes(os.urandom(ARCHIVE_BYTES))
    return text


def is_as(fleet: Mounted, text: str) -> bool:
    file = fleet.inside("machines/alpha/root/etc/web/motd")
    return fleet.run("status", exit_status=None).exit == 0 and file.read_text() == f"motd {text}"


def parts_kept(fleet: Mounted, before: dict[str, int]) -> None:
    assert fleet.parts() == before, "a part ended of it"


def refused(fleet: Mounted, *said: str) -> Ran:
    ran = fleet.run("apply", "--yes", exit_status=1)
    for each in said:
        assert re.search(each, ran.err), ran.err
    return ran


def waiting(fleet: Mounted, said: str) -> subprocess.Popen[str]:
    """An apply that waits, for a cause that status tells."""
    apply = fleet.start("apply", "--yes")
    wait_for(
        lambda: re.search(said, fleet.run("status", exit_status=None).out), f"status says {said}"
    )
    return apply


def goes_on(fleet: Mounted, apply: subprocess.Popen[str], text: str) -> None:
    out, err = apply.communicate(timeout=300)
    assert apply.returncode == 0, f"{out}\n{err}"
    assert is_as(fleet, text)


def test_a_full_disk_of_the_inventory_or_the_store_refuses_an_apply(fleet: Mounted) -> None:
    parts = fleet.parts()
    running = two_texts.processes(fleet)
    for path, said in (
        ("store", r"the artifact store \S+/store: its disk is full"),
        ("controller", r"inventory sqlite:\S+/inventory.db: its disk is full"),
    ):
        text = edit(fleet)
        with fleet.full(path):
            refused(fleet, said)
            assert two_texts.processes(fleet) == running
        assert fleet.apply()["outcome"] == "done"
        assert is_as(fleet, text)
        running = two_texts.processes(fleet)
    parts_kept(fleet, parts)


@pytest.mark.parametrize(
    ("fault", "said"),
    [(Mounted.full, "No space left"), (Mounted.read_only, "Read-only file system")],
)
def test_an_agent_that_cannot_save_says_so_and_goes_on(fleet: Mounted, fault, said: str) -> None:
    """After the commit, before anything was done on the machine."""
    parts = fleet.parts()
    text = edit(fleet)
    running = two_texts.processes(fleet)
    with fault(fleet, "machines/alpha"):
        apply = waiting(fleet, rf"alpha \S.* state cannot be saved.*/agent/\w+: {said}")
        assert two_texts.processes(fleet) == running
    goes_on(fleet, apply, text)
    parts_kept(fleet, parts)


def test_an_archive_that_does_not_fit_fails_by_name_until_there_is_room(fleet: Mounted) -> None:
    text = edit(fleet)
    with fleet.full("machines/alpha", left=ARCHIVE_BYTES // 2):
        refused(fleet, r"web:main@alpha .*archive sha256-\w+ in \S+/artifacts: No space left")
        artifacts = fleet.inside("machines/alpha/artifacts")
        wait_for(lambda: not list(artifacts.glob(".*")), "no half is left")  # it is tried again
    wait_for(lambda: is_as(fleet, text), "it goes on by itself")
    assert fleet.apply()["outcome"] == "done"


def test_a_path_that_cannot_be_written_fails_by_name_until_it_can(fleet: Mounted) -> None:
    text = edit(fleet)
    with fleet.read_only("machines/alpha/root/etc"):
        refused(fleet, "web:main@alpha .*/etc/web/motd: Read-only file system")
        status = fleet.run("status", exit_status=1).out
        assert "/etc/web/motd: Read-only file system" in status
    wait_for(lambda: is_as(fleet, text), "it goes on by itself")
    assert fleet.apply()["outcome"] == "done"


def test_a_read_only_inventory_stops_no_unit_and_is_named(fleet: Mounted) -> None:
    """The controller cannot begin; once it can, it does so by itself."""
    running = two_texts.processes(fleet)
    text = edit(fleet)
    with fleet.read_only("controller"):
        os.kill(fleet.parts()["controller"], signal.SIGKILL)
        refused(fleet, r"controller: .*(read-only|Read-only file system)")
        assert two_texts.processes(fleet) == running
    log = fleet.inside("log/controller.log").read_text()
    assert "Traceback" not in log, log
    wait_for(
        lambda: fleet.run("apply", "--yes", exit_status=None).exit == 0, "an apply goes through"
    )
    assert is_as(fleet, text)


@contextlib.contextmanager
def locked(fleet: Mounted) -> Iterator[None]:
    """Another process writes to the inventory, and does not come to its end."""
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); c.execute('UPDATE lease SET until_ms = until_ms');"
        "print('locked', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", program, f"{fleet.directory}/.keyplane/controller/inventory.db"]
    with fleet.process(*words) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"locked\n"
        yield
        other.stdin.close()
        assert other.wait(30) == 0


def test_a_locked_inventory_is_waited_for_and_then_named(fleet: Mounted) -> None:
    parts = fleet.parts()
    text = edit(fleet)
    with locked(fleet):
        apply = fleet.start("apply", "--yes")
        time.sleep(1)  # shorter than anybody's patience, from wherever it is
    goes_on(fleet, apply, text)
    text = edit(fleet)
    with locked(fleet):
        refused(fleet, r"inventory sqlite:\S+: (another process has it locked|the writes before)")
        assert fleet.run("status", exit_status=None).exit in (0, 1)
    assert fleet.apply()["outcome"] == "done"
    assert is_as(fleet, text)
    parts_kept(fleet, parts)


def test_a_controller_without_free_descriptors_answers_again_once_it_has_some(
    fleet: Mounted,
) -> None:
    parts = fleet.parts()
    controller = parts["controller"]
    limits = resource.prlimit(controller, resource.RLIMIT_NOFILE)
    used = len(list(Path(f"/proc/{controller}/fd").iterdir()))
    resource.prlimit(controller, resource.RLIMIT_NOFILE, (used + 2, limits[1]))
    idle: list[socket.socket] = []
    try:
        for _ in range(20):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(1)
            with contextlib.suppress(OSError):
                client.connect(str(fleet.inside("run/control.sock")))
            idle.append(client)
        text = edit(fleet)
        apply = fleet.start("apply", "--yes")
    finally:
        time.sleep(2)  # for the apply to meet it, wherever it is
        for client in idle:
            client.close()
        resource.prlimit(controller, resource.RLIMIT_NOFILE, limits)
    out, err = apply.communicate(timeout=300)
    assert "Traceback" not in out + err
    assert apply.returncode == 0 or (apply.returncode == 1 and err), f"{out}\n{err}"
    assert fleet.apply()["outcome"] == "done"
    assert is_as(fleet, text)
    parts_kept(fleet, parts)


def test_a_control_plane_that_cannot_begin_says_which_disk_it_is(fleet: Mounted) -> None:
    """And commands that only look work on a disk that cannot be written."""
    running = two_texts.processes(fleet)
    fleet.run("down")
    with fleet.full("bus"), fleet.full("log"):
        told = fleet.run("up", ".", "--no-apply", exit_status=1)
        assert re.search(r"supervisor ended at once \(\S+/log: No space left on device\)", told.err)
    with fleet.read_only(""):
        told = fleet.run("up", ".", "--no-apply", exit_status=1)
        assert re.search(r"\S+/.keyplane\S*: Read-only file system", told.err)
        assert "no control plane runs" in fleet.run("status", exit_status=1).err
        assert "no control plane ran" in fleet.run("down").out
    fleet.run("up", ".", "--no-apply")
    assert two_texts.processes(fleet) == running
