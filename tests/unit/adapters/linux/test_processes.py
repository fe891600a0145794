"""Real processes under real shims."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keyplane.adapters.linux import leftovers, run_status
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.spawn import SHIM
from keyplane.adapters.linux.state_root import RunId, StateRoot
from keyplane.model.declaration import Reload
from keyplane.model.names import UnitName
from keyplane.ports.host import HostError

from .conftest import DIGEST, ENTRY, HOST, UNIT, alive, needs_root, shell, spec, until

RUN = RunId(ENTRY, UNIT, DIGEST)


LINGERING = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


def shim_of(state: StateRoot) -> int:
    holder = run_status.lock_holder(state.run_directory(RUN))
    assert holder is not None
    return holder


def the_pid(path: Path) -> int:
    return int(path.read_text())


async def test_a_started_unit_is_observed_with_its_pid_and_start(processes: LinuxProcesses) -> None:
    """What `start` answers is what `observe` sees, and the pid is the command's own."""
    seen = await processes.start(spec("sleep", "60"))
    assert seen.running
    assert seen.pid is not None
    assert Path(f"/proc/{seen.pid}/comm").read_text() == "sleep\n"
    assert leftovers.start_ticks(seen.pid) == seen.start_ticks
    assert processes.observe() == (seen,)


async def test_a_second_start_answers_the_first(
    processes: LinuxProcesses, placement: Placement
) -> None:
    """The same run is never started twice, whoever asks: the lock decides."""
    first = await processes.start(spec("sleep", "60"))
    assert await processes.start(spec("sleep", "60")) == first
    other = LinuxProcesses(placement)
    assert await other.start(spec("sleep", "60")) == first
    other.close()


async def test_a_second_shim_ends_at_once_and_changes_nothing(
    processes: LinuxProcesses, state: StateRoot
) -> None:
    """Status 17, and neither status nor log is touched."""
    await processes.start(shell("echo one; exec sleep 60"))
    await until(lambda: processes.tail(ENTRY, UNIT, 5) == ("one",))
    directory = state.run_directory(RUN)
    before = (directory / "status").read_bytes()
    second = await asyncio.create_subprocess_exec(
        SHIM, "--run", directory, "--log", state.log(ENTRY, UNIT), "--", "echo", "two"
    )
    assert await second.wait() == 17
    assert (directory / "status").read_bytes() == before
    assert processes.tail(ENTRY, UNIT, 5) == ("one",)


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("/no/such/program", "cannot execute /no/such/program: No such file or directory"),
        ("no-such-program", "cannot execute no-such-program: No such file or directory"),
        ("/etc/passwd", "cannot execute /etc/passwd: Permission denied"),
    ],
)
async def test_a_command_that_cannot_be_executed_says_why(
    processes: LinuxProcesses, command: str, cause: str
) -> None:
    """The cause is the kernel's, with the path, and it stays in the run directory."""
    seen = await processes.start(spec(command))
    assert not seen.running
    assert seen.cause == cause
    assert processes.observe() == (seen,)


async def test_a_command_cannot_forge_a_status(processes: LinuxProcesses) -> None:
    """Its name is one line of the cause, whatever is in it."""
    seen = await processes.start(spec("/no/such\nexit 0\npid 1"))
    assert (seen.exit_code, seen.pid) == (None, None)
    assert seen.cause == "cannot execute /no/such exit 0 pid 1: No such file or directory"


async def test_what_the_kernel_does_not_take_is_refused(processes: LinuxProcesses) -> None:
    """For good, in words, and the next start is none the worse."""
    for impossible in (spec("a\0b"), spec("true", env={"A": "x" * (1 << 20)})):
        with pytest.raises(HostError, match="cannot start keyplane-shim"):
            await processes.start(impossible)
    assert (await processes.start(spec("sleep", "60"))).running


async def test_a_missing_working_directory_is_named(processes: LinuxProcesses) -> None:
    seen = await processes.start(spec("true", working_directory="/no/such"))
    assert seen.cause == "cannot enter working directory /no/such: No such file or directory"


@needs_root
async def test_an_unknown_account_is_refused_by_name(processes: LinuxProcesses) -> None:
    with pytest.raises(HostError, match="no account `nobody-here`"):
        await processes.start(spec("true", user="nobody-here"))


@needs_root
async def test_a_unit_runs_as_its_account(processes: LinuxProcesses) -> None:
    """With its groups, home and name, and nothing else of ours in its environment."""
    await processes.start(
        shell(
            "id -u; id -g; echo $HOME $USER; env | cut -d= -f1 | sort | xargs",
            user="nobody",
            env={"B": "2"},
        )
    )
    await processes.exited()
    uid, gid, names, variables = processes.tail(ENTRY, UNIT, 10)
    assert (uid, gid, names) == ("65534", "65534", "/nonexistent nobody")
    assert variables.split() == ["B", "HOME", "KEYPLANE_RUN", "LOGNAME", "PATH", "PWD", "USER"]


async def test_the_loader_of_the_shim_never_sees_the_units_preloads(
    processes: LinuxProcesses,
) -> None:
    """They reach the unit, and the unit alone."""
    await processes.start(shell("echo $LD_PRELOAD$LD_X", env={"LD_X": "here"}))
    await processes.exited()
    assert processes.tail(ENTRY, UNIT, 1) == ("here",)


async def test_ends_are_told_once_with_code_or_signal(processes: LinuxProcesses) -> None:
    await processes.start(shell("exit 3"))
    seen = await processes.exited()
    assert (seen.exit_code, seen.exit_signal, seen.running) == (3, None, False)
    await processes.start(shell("kill -SEGV $$"))
    seen = await processes.exited()
    assert (seen.exit_code, seen.exit_signal) == (None, signal.SIGSEGV)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(processes.exited(), 0.05)


async def test_an_end_that_nobody_saw_is_told_first(
    processes: LinuxProcesses, placement: Placement, state: StateRoot
) -> None:
    """An agent that comes back hears of what ended meanwhile, and adopts what runs."""
    await processes.start(shell("exit 4"))
    await processes.exited()
    ended = await processes.start(shell("exec sleep 60", unit="other"))
    processes.close()
    later = LinuxProcesses(placement)
    seen = await later.exited()
    assert (seen.unit, seen.exit_code) == (UNIT, 4)
    assert ended.pid is not None
    waiting = asyncio.ensure_future(later.exited())
    os.kill(ended.pid, signal.SIGKILL)
    seen = await asyncio.wait_for(waiting, 60)
    assert (seen.unit, seen.exit_signal) == ("other", signal.SIGKILL)
    later.close()


async def test_killing_the_shim_leaves_nothing(
    processes: LinuxProcesses, state: StateRoot, tmp_path: Path
) -> None:
    """Not the unit, not what it started, not what it put into a session of its own."""
    script = f"""
        sleep 60 & echo $! > {tmp_path}/child
        setsid sh -c 'echo $$ > {tmp_path}/daemon.new; mv {tmp_path}/daemon.new {tmp_path}/daemon
                      exec sleep 60' &
        wait"""
    seen = await processes.start(shell(script))
    await until((tmp_path / "daemon").exists)
    os.kill(shim_of(state), signal.SIGKILL)
    ended = await asyncio.wait_for(processes.exited(), 60)
    assert ended.exit_signal == signal.SIGKILL
    assert ended.lost
    assert ended.notes == ("its shim was killed, and it with it",)
    assert seen.pid is not None
    for pid in (seen.pid, the_pid(tmp_path / "child"), the_pid(tmp_path / "daemon")):
        assert not alive(pid)
    assert processes.observe() == (ended,)
    assert (await processes.start(spec("sleep", "60"))).running


async def test_daemons_end_with_the_main_process(processes: LinuxProcesses, tmp_path: Path) -> None:
    """What detached itself is still a child of the shim, so that no port stays held."""
    script = f"""
        setsid sh -c 'trap "" TERM HUP; (echo ready > {tmp_path}/ready; sleep 60; sleep 60)' &
        echo $! > {tmp_path}/daemon
        while [ ! -e {tmp_path}/ready ]; do sleep 0.01; done"""
    await processes.start(shell(script))
    ended = await asyncio.wait_for(processes.exited(), 60)
    assert ended.exit_code == 0
    assert not alive(the_pid(tmp_path / "daemon"))


async def test_stop_asks_first(processes: LinuxProcesses, state: StateRoot) -> None:
    """A unit that obeys TERM ends by itself, and its end is told by `stop` alone."""
    await processes.start(
        shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done")
    )
    await until(lambda: processes.tail(ENTRY, UNIT, 1) == ("up",))
    await processes.stop(ENTRY, UNIT, DIGEST, timeout_ms=60_000)
    (seen,) = processes.observe()
    assert (seen.running, seen.exit_code) == (False, 0)
    assert processes.tail(ENTRY, UNIT, 1) == ("bye",)
    assert run_status.lock_holder(state.run_directory(RUN)) is None
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(processes.exited(), 0.05)


async def test_stop_kills_what_ignores_it(processes: LinuxProcesses, tmp_path: Path) -> None:
    """After the timeout, with all that it started."""
    script = f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/child; echo up; wait; wait"
    seen = await processes.start(shell(script))
    await until(lambda: processes.tail(ENTRY, UNIT, 1) == ("up",))
    await processes.stop(ENTRY, UNIT, DIGEST, timeout_ms=50)
    assert seen.pid is not None
    assert not alive(seen.pid)
    assert not alive(the_pid(tmp_path / "child"))
    (ended,) = processes.observe()
    assert ended.exit_signal == signal.SIGKILL


async def test_stop_works_on_what_another_agent_started(
    processes: LinuxProcesses, placement: Placement
) -> None:
    seen = await processes.start(spec("sleep", "60"))
    processes.close()
    other = LinuxProcesses(placement)
    await other.stop(ENTRY, UNIT, DIGEST, timeout_ms=60_000)
    assert seen.pid is not None
    assert not alive(seen.pid)
    assert other.observe()[0].exit_signal == signal.SIGTERM


async def test_stop_of_what_never_ran_is_done(processes: LinuxProcesses) -> None:
    await processes.stop(ENTRY, UNIT, DIGEST, timeout_ms=50)
    assert processes.observe() == ()


async def test_only_what_ended_is_forgotten(processes: LinuxProcesses, state: StateRoot) -> None:
    """Its log stays."""
    await processes.start(shell("echo here; exec sleep 60"))
    with pytest.raises(HostError, match="runs"):
        processes.forget(ENTRY, UNIT, DIGEST)
    await until(lambda: processes.tail(ENTRY, UNIT, 1) == ("here",))
    await processes.stop(ENTRY, UNIT, DIGEST, timeout_ms=60_000)
    processes.forget(ENTRY, UNIT, DIGEST)
    assert processes.observe() == ()
    assert list(state.run.iterdir()) == []
    assert processes.tail(ENTRY, UNIT, 1) == ("here",)


async def test_what_ended_is_forgotten_although_its_shim_goes_only_now(
    processes: LinuxProcesses, state: StateRoot
) -> None:
    """Its end is told to nobody after that."""
    await processes.start(shell("exit 3"))
    end = time.monotonic() + 60
    while not run_status.read_status(state.run_directory(RUN)).ended:
        assert time.monotonic() < end
        time.sleep(0.001)  # the loop does not turn: the shim's end is not heard yet
    processes.forget(ENTRY, UNIT, DIGEST)
    assert processes.observe() == ()
    other = UnitName("other")
    await processes.start(shell("exit 4", unit=other))
    async with asyncio.timeout(60):
        assert (await processes.exited()).unit == other


async def test_a_lock_that_outlives_a_recorded_end_keeps_nothing(
    processes: LinuxProcesses, state: StateRoot
) -> None:
    """What `observe` calls ended is forgotten; what it calls running is not."""
    directory = state.run_directory(RUN)
    directory.mkdir(parents=True)
    command = (sys.executable, "-c", LINGERING, str(directory / "lock"))
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as lingering,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(lingering.kill)
        assert lingering.stdout is not None
        assert lingering.stdout.readline() == b"held\n"
        (directory / "status").write_text("pid 1\nstart 1\n")
        with pytest.raises(HostError, match="runs"):
            processes.forget(ENTRY, UNIT, DIGEST)
        (directory / "status").write_text("pid 1\nstart 1\nexit 3\n")
        processes.forget(ENTRY, UNIT, DIGEST)
        assert processes.observe() == ()


async def test_a_reload_is_a_signal_to_the_main_process(processes: LinuxProcesses) -> None:
    unit = shell("trap 'echo again' HUP; echo up; while :; do sleep 0.01; done")
    seen = await processes.start(unit)
    await until(lambda: processes.tail(ENTRY, UNIT, 1) == ("up",))
    await processes.reload(ENTRY, UNIT, DIGEST, Reload(signal="HUP"), unit)
    await until(lambda: processes.tail(ENTRY, UNIT, 1) == ("again",))
    assert processes.observe() == (seen,)


async def test_a_reload_command_runs_as_the_unit(processes: LinuxProcesses, tmp_path: Path) -> None:
    """In its environment; one that fails is refused with its last words."""
    unit = shell("exec sleep 60", env={"WHERE": str(tmp_path / "done")})
    await processes.start(unit)
    run = ("/bin/sh", "-c", "echo ok > $WHERE")
    await processes.reload(ENTRY, UNIT, DIGEST, Reload(command=run), unit)
    assert (tmp_path / "done").read_text() == "ok\n"
    fails = ("/bin/sh", "-c", "echo no such thing >&2; exit 2")
    with pytest.raises(HostError, match="exit 2: no such thing"):
        await processes.reload(ENTRY, UNIT, DIGEST, Reload(command=fails), unit)


async def test_limits_hold(processes: LinuxProcesses) -> None:
    """A unit cannot take more memory than it may, by whatever means this machine has."""
    greedy = "import sys\nx = bytearray(200 << 20)\nprint('took it')"
    await processes.start(spec("python3", "-c", greedy, limits={"memory": "64M", "tasks": 50}))
    ended = await asyncio.wait_for(processes.exited(), 60)
    assert ended.exit_code != 0
    assert "took it" not in processes.tail(ENTRY, UNIT, 10)


async def test_a_port_is_free_once_stop_returns(processes: LinuxProcesses) -> None:
    server = f"""
import socket, time
s = socket.socket(); s.bind(("{HOST}", 0)); s.listen(); print(s.getsockname()[1], flush=True)
time.sleep(600)"""
    await processes.start(spec("python3", "-c", server))
    await until(lambda: processes.tail(ENTRY, UNIT, 1))
    port = int(processes.tail(ENTRY, UNIT, 1)[0])
    await processes.stop(ENTRY, UNIT, DIGEST, timeout_ms=60_000)
    with socket.socket() as again:
        again.bind((HOST, port))


@pytest.mark.parametrize("again", [False, True], ids=["the same agent", "its next life"])
@pytest.mark.parametrize("command", ["exec sleep 60", "trap '' TERM; sleep 60; sleep 60"])
async def test_a_unit_whose_run_directory_was_removed_never_runs_twice(
    processes: LinuxProcesses,
    placement: Placement,
    state: StateRoot,
    monkeypatch: pytest.MonkeyPatch,
    again: bool,
    command: str,
) -> None:
    """It is not seen any more, and its next start waits until it is gone."""
    monkeypatch.setattr("keyplane.adapters.linux.processes._STRAY_MAX_S", 0.5)
    first = await processes.start(shell(command))
    assert first.pid is not None
    shutil.rmtree(state.run)
    agent = LinuxProcesses(placement) if again else processes
    if again:
        assert agent.observe() == ()
    second = await agent.start(shell(command))
    assert not alive(first.pid)
    assert second.running
    assert agent.observe() == (second,)
    agent.close()


async def test_a_unit_whose_run_directory_was_removed_is_ended_though_nobody_starts_it(
    processes: LinuxProcesses, state: StateRoot
) -> None:
    """A look tells it to; what others removed is none of theirs."""
    first = await processes.start(shell("exec sleep 60"))
    shutil.rmtree(state.run)
    assert processes.observe() == ()
    await until(lambda: first.pid is not None and not alive(first.pid))
