"""What runs on the machines of this box is ended to the last process."""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keyplane.adapters.linux import leftovers
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.state_root import RunId, StateRoot
from keyplane.model.host import ProcessSpec
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.parts.main import local
from keyplane.parts.main.on_machine import OnMachine
from keyplane.parts.state_dir import StateDir
from keyplane.ports.host import HostBusyError

RUN = RunId(EntryId("web:main@alpha"), UnitName("server"), Digest("sha256-" + "a" * 64))
HOLDING = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    state = StateDir(tmp_path / ".keyplane")
    state.make()
    StateRoot(state.machine("alpha")).make()
    yield state
    local.stop_units(state)


def run_directory(state: StateDir) -> Path:
    return StateRoot(state.machine("alpha")).run_directory(RUN)


def test_a_shim_that_is_about_to_go_is_not_left_behind(state: StateDir) -> None:
    """It has recorded the end of its unit, which is so none that was stopped."""
    directory = run_directory(state)
    directory.mkdir(parents=True)
    words = [sys.executable, "-c", HOLDING, str(directory / "lock")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as lingering:
        try:
            assert lingering.stdout is not None
            assert lingering.stdout.readline() == b"held\n"
            (directory / "status").write_text("pid 1\nstart 1\nexit 3\n")
            assert local.stop_units(state) == 0
            assert lingering.poll() is not None
        finally:
            lingering.kill()


@pytest.mark.parametrize("mark", ["", "/command"])
def test_a_shim_that_has_no_lock_is_not_left_behind(
    state: StateDir, tmp_path: Path, mark: str
) -> None:
    """It is about to begin, or runs a command once; another fleet's is let be."""
    shim = tmp_path / "keyplane-shim"
    shutil.copy(shutil.which("sleep") or "", shim)
    own, others = [
        subprocess.Popen([shim, "600"], env={leftovers.RUN_MARK: f"{directory}{mark}"})
        for directory in (run_directory(state), tmp_path / "other" / "machines" / "alpha")
    ]
    try:
        assert local.stop_units(state) == 0
        assert own.poll() is not None
        assert others.poll() is None
    finally:
        for each in (own, others):
            each.kill()
            each.wait()


def start(state: StateDir) -> int | None:
    """A unit, by an agent that does not live any more."""

    async def started() -> int | None:
        processes = LinuxProcesses(local.placement(state, "alpha"))
        command = ("sleep", "infinity")
        spec = ProcessSpec(
            entry=RUN.entry, unit=RUN.unit, digest=RUN.digest, command=command, env={}
        )
        found = await processes.start(spec)
        processes.close()
        return found.pid

    return asyncio.run(started())


def test_an_agent_that_still_ends_is_awaited_before_its_units_are_stopped(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might start something more."""
    start(state)
    lock = os.open(state.machine("alpha") / "agent" / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with monkeypatch.context() as patch:
        patch.setattr(local, "AGENT_MAX_S", 0.0)
        with pytest.raises(HostBusyError, match="the agent of alpha does not end"):
            local.stop_units(state)
    assert local.count_units(state) == 1
    os.close(lock)
    assert local.stop_units(state) == 1


def test_two_who_look_at_a_machine_at_once_take_none_for_its_agent(state: StateDir) -> None:
    lock = state.machine("alpha") / "agent" / "lock"
    lock.touch()
    with lock.open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        report, by_agent = OnMachine(state.machine("alpha")).status()
    assert (report.machine, by_agent) == (MachineName("alpha"), False)
