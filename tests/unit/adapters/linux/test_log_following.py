"""What comes to a log is read once and in order, however often it is rotated meanwhile."""

import contextlib
import subprocess
import time
from pathlib import Path

from keyplane.adapters.linux import part_logs, unit_logs
from keyplane.adapters.linux.log_following import Following
from keyplane.adapters.linux.spawn import SHIM


def rotate(log: Path, keep: int = 3) -> None:
    for number in range(keep, 1, -1):
        older = log.with_name(f"{log.name}.{number - 1}")
        if older.exists():
            older.rename(log.with_name(f"{log.name}.{number}"))
    log.rename(log.with_name(f"{log.name}.1"))


def test_two_rotations_between_two_looks_lose_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    following = Following(log)
    assert following.read() == []
    for number in range(3):
        with log.open("a") as file:
            file.write(f"{number}\n")
        rotate(log)
    log.write_text("last\n")
    assert following.read() == [b"0", b"1", b"2", b"last"]
    assert not following.lost
    following.close()


def test_more_rotations_than_files_are_kept_is_told(tmp_path: Path) -> None:
    """What is still there is read from its oldest on, and what we held open before that."""
    log = tmp_path / "log"
    log.write_text("")
    following = Following(log)
    for number in range(6):
        with log.open("a") as file:
            file.write(f"{number}\n")
        rotate(log)
    log.write_text("last\n")
    assert following.read() == [b"0", b"3", b"4", b"5", b"last"]
    assert following.lost
    assert following.read() == []
    assert not following.lost
    following.close()


def test_a_log_in_the_midst_of_a_rotation_is_waited_for(tmp_path: Path) -> None:
    """Its old files are no news."""
    (tmp_path / "log.1").write_text("old\n")
    following = Following(tmp_path / "log")
    assert following.read() == []
    (tmp_path / "log").write_text("new\n")
    assert following.read() == [b"new"]
    following.close()


def test_a_log_that_is_cut_off_is_read_from_its_new_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a long line that was there\n")
    following = Following(log)
    with log.open("r+") as file:
        file.truncate(0)
    with log.open("a") as file:
        file.write("new\n")
    assert following.read() == [b"new"]
    following.close()


def test_half_a_line_is_told_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")
    following = Following(log)
    with log.open("a") as file:
        file.write("ha")
        file.flush()
        assert following.read() == []
        file.write("lf\n")
        file.flush()
        assert following.read() == [b"half"]
    following.close()


def test_a_real_shim_that_writes_far_more_than_its_bound_is_followed_without_a_gap(
    tmp_path: Path,
) -> None:
    """Thirty times the bound of all its files: the disk holds the bound, and the reader all lines.

    It pauses now and then, as no reader keeps up with a loop of `seq` on a busy machine.
    """
    keep, size = 3, 20_000
    (tmp_path / "run").mkdir()
    script = (
        "for n in $(seq 0 199); do seq $((n * 300 + 1)) $((n * 300 + 300)); "
        f"until [ -e {tmp_path}/go-$n ]; do sleep 0.01; done; done"
    )
    command = [SHIM, "--run", tmp_path / "run", "--log", tmp_path / "log"]
    command += ["--log-max", str(size), "--log-keep", str(keep), "--", "/bin/sh", "-c", script]
    (tmp_path / "log").touch()
    following = Following(tmp_path / "log")
    seen: list[int] = []
    most = 0
    with subprocess.Popen(command) as shim, contextlib.ExitStack() as stack:
        stack.callback(shim.terminate)  # where it waits for us, and we have failed
        for turn in range(200):
            end = time.monotonic() + 60
            while len(seen) < (turn + 1) * 300:
                assert time.monotonic() < end, f"{len(seen)} of {(turn + 1) * 300}"
                seen += [int(unit_logs.parse(line).text) for line in following.read()]
            # Read, so the shim waits for us, and rotates nothing.
            most = max(most, sum(path.stat().st_size for path in tmp_path.glob("log*")))
            (tmp_path / f"go-{turn}").touch()
    following.close()
    assert seen == list(range(1, 60_001))
    assert not following.lost
    assert size < most <= size * (keep + 1)


def test_a_parts_log_is_bounded_and_its_writers_go_on(tmp_path: Path) -> None:
    """They hold the file open and append; what was there is kept once."""
    log = tmp_path / "controller.log"
    with log.open("ab", buffering=0) as writer:
        for turn in range(5):
            writer.write(b"x" * 60 + b"\n")
            writer.write(f"turn {turn}\n".encode() * 20)
            part_logs.bound(log, 100)
            assert log.stat().st_size == 0
            writer.write(f"after {turn}\n".encode())
            assert log.read_text() == f"after {turn}\n"
    kept = (tmp_path / "controller.log.1").read_bytes()
    assert kept.endswith(b"turn 4\n")
    assert len(kept) <= 200
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "controller.log",
        "controller.log.1",
    ]


def test_lines_of_parts_have_their_times_and_keys() -> None:
    """A journal's, the bus's, and a traceback that belongs to the line before it."""
    ours = b'2026-03-01T10:00:00.123Z level=warning event="it \\"ends\\"" status=1'
    nats = b"[4711] 2026/03/01 10:00:01.234567 [INF] Server is ready"
    lines = list(part_logs.timed(map(part_logs.parse, [ours, b"Traceback (most", nats])))
    assert [line.at for line in lines] == [
        "2026-03-01T10:00:00.123Z",
        "2026-03-01T10:00:00.123Z",
        "2026-03-01T10:00:01.234Z",
    ]
    assert part_logs.keys(lines[0].text) == {
        "level": "warning",
        "event": 'it "ends"',
        "status": "1",
    }
    assert part_logs.keys(lines[1].text) == {}
    assert lines[2].text == "[INF] Server is ready"
