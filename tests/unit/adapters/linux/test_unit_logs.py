"""What shims write and readers read: times, rotation, full disks."""

import asyncio
import re
import subprocess
from pathlib import Path

from keyplane.adapters.linux import unit_logs
from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.spawn import SHIM
from keyplane.adapters.linux.state_root import StateRoot

from .conftest import ENTRY, UNIT, needs_root, shell


def run(folder: Path, script: str, *options: str) -> None:
    (folder / "run").mkdir(exist_ok=True)
    command = [SHIM, "--run", folder / "run", "--log", folder / "log", *options]
    subprocess.run([*command, "--", "/bin/sh", "-c", script], check=True, timeout=300)


async def test_each_line_has_its_time(processes: LinuxProcesses, state: StateRoot) -> None:
    """Of both outputs, the last line even without its end."""
    await processes.start(shell("echo out; echo err >&2; printf half"))
    await processes.exited()
    lines = state.log(ENTRY, UNIT).read_text().splitlines()
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
    assert [re.fullmatch(stamp + "(.*)", line)[1] for line in lines] == ["out", "err", "half"]
    assert processes.tail(ENTRY, UNIT, 2) == ("err", "half")
    assert processes.tail(ENTRY, UNIT, 0) == ()


def test_logs_rotate_by_size(tmp_path: Path) -> None:
    """No line is lost in between, and only so many files are kept."""
    run(tmp_path, "seq 1 300", "--log-max", "2000", "--log-keep", "3")
    names = sorted(path.name for path in tmp_path.iterdir() if path.name != "run")
    assert names == ["log", "log.1", "log.2", "log.3"]
    assert all((tmp_path / name).stat().st_size <= 2000 for name in names)
    kept = [int(line.text) for line in unit_logs.last_lines(tmp_path / "log", 1000)]
    assert kept == list(range(kept[0], 301))
    assert len(kept) > 200
    last = unit_logs.last_lines(tmp_path / "log", 150)
    assert [int(line.text) for line in last] == list(range(151, 301))


def test_a_line_without_end_does_not_fill_memory(tmp_path: Path) -> None:
    run(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x")
    lines = unit_logs.last_lines(tmp_path / "log", 100)
    assert "".join(line.text for line in lines) == "x" * 100_000
    assert max(len(line.text) for line in lines) == 16_384


@needs_root
def test_a_full_disk_stops_no_unit(tmp_path: Path) -> None:
    """Lines are dropped and counted; the count is written once there is room.

    More is printed than disk, pipe and shim can hold, so that some is lost before there is room.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "keyplane-test", disk], check=True)
    try:
        script = f"seq 1 60000; rm {disk}/ballast; echo after"
        (disk / "ballast").write_bytes(bytes((4 << 20) - 65_536))
        run(disk, script)
        lines = unit_logs.last_lines(disk / "log", 90_000)
    finally:
        subprocess.run(["umount", disk], check=True)
    assert lines[-1].text == "after"
    told = [line.text for line in lines if "lines were lost here" in line.text]
    whole = sum(line.text.isdecimal() for line in lines)
    lost = sum(int(re.findall(r"\d+", text)[0]) for text in told)
    assert lost > 0
    assert whole + lost == 60_000


async def test_follow_goes_on_over_a_rotation(tmp_path: Path) -> None:
    """From the last lines on, each line once."""
    log = tmp_path / "log"
    log.write_text("t0 a\nt1 b\nt2 c\n")
    lines = unit_logs.follow(log, 2)

    async def following() -> str:
        return (await asyncio.wait_for(anext(lines), 60)).text

    assert [await following(), await following()] == ["b", "c"]
    with log.open("a") as file:
        file.write("t3 d\n")
    assert await following() == "d"
    with log.open("a") as file:
        file.write("t4 e\n")
    log.rename(tmp_path / "log.1")
    log.write_text("t5 f\n")
    assert [await following(), await following()] == ["e", "f"]
    await lines.aclose()


async def test_follow_waits_for_a_log_that_is_not_there_yet(
    processes: LinuxProcesses,
) -> None:
    lines = processes.follow(ENTRY, UNIT, lines=10)
    first = asyncio.ensure_future(anext(lines))
    await processes.start(shell("echo here; exec sleep 60"))
    assert (await asyncio.wait_for(first, 60)).text == "here"


def test_lines_since_a_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "1970-01-01T00:00:01.000Z a\n1970-01-01T00:00:01.500Z b\n1970-01-01T00:00:02.000Z c\n"
    )
    assert [line.text for line in unit_logs.lines_since(log, 1_500, 10)] == ["b", "c"]
    assert [line.text for line in unit_logs.lines_since(log, 0, 1)] == ["c"]
