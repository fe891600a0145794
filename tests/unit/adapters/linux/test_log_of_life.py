"""What a failed run is shown with is of that run alone."""

import socket
from pathlib import Path

import pytest

from keyplane.adapters.linux import unit_logs
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.ports.host import PortHeldError

from .conftest import DIGEST, ENTRY, UNIT, shell, spec, until


async def test_the_tail_begins_with_the_present_run(processes: LinuxProcesses) -> None:
    """What the run before it said explains nothing of it."""
    for life in ("first", "second"):
        await processes.start(shell(f"echo {life} life; exit 3"))
        await until(lambda: not processes.observe()[0].running)
        assert processes.tail(ENTRY, UNIT, 10) == (f"{life} life",)
        processes.forget(ENTRY, UNIT, DIGEST)
    assert [line.text for line in processes.read(ENTRY, UNIT, since_ms=0, lines=10)] == [
        "first life",
        "second life",
    ]


async def test_a_run_that_cannot_start_has_no_lines_of_another(processes: LinuxProcesses) -> None:
    await processes.start(shell("echo first life; exit 3"))
    await until(lambda: not processes.observe()[0].running)
    processes.forget(ENTRY, UNIT, DIGEST)
    seen = await processes.start(spec("/no/such/program"))
    assert not seen.running
    assert processes.tail(ENTRY, UNIT, 10) == ()


async def test_a_run_whose_port_is_held_has_no_lines_of_another(processes: LinuxProcesses) -> None:
    await processes.start(shell("echo first life; exit 3"))
    await until(lambda: not processes.observe()[0].running)
    processes.forget(ENTRY, UNIT, DIGEST)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ports = (server.getsockname()[1],)
        with pytest.raises(PortHeldError):
            await processes.start(spec("sleep", "600", ports=ports, address="127.0.0.1"))
    assert processes.tail(ENTRY, UNIT, 10) == ()


@pytest.mark.parametrize("rotations", [0, 1, 2])
def test_a_mark_is_found_again_after_rotations(tmp_path: Path, rotations: int) -> None:
    log = tmp_path / "server.log"
    log.write_text("t before\n")
    mark = unit_logs.mark(log)
    for turn in range(rotations + 1):
        with log.open("a") as file:
            file.write(f"t after {turn}\n")
        if turn < rotations:
            for number in range(turn, -1, -1):
                path = log if number == 0 else log.with_name(f"server.log.{number}")
                path.rename(log.with_name(f"server.log.{number + 1}"))
            log.touch()
    found = [line.text for line in unit_logs.lines_of_life(log, mark, 10)]
    assert found == [f"after {turn}" for turn in range(rotations + 1)]
    assert [line.text for line in unit_logs.lines_of_life(log, mark, 1)] == found[-1:]


def test_without_a_mark_all_lines_count(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    assert unit_logs.mark(log) == ""
    log.write_text("t one\nt two\n")
    assert [line.text for line in unit_logs.lines_of_life(log, "", 10)] == ["one", "two"]
