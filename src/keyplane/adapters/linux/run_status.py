"""What a run directory tells: who holds its lock, and what the shim recorded there."""

import fcntl
import os
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from keyplane.adapters.linux.state_root import RunId
from keyplane.model.host import ObservedProcess

_FLOCK = "hhqqi4x"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    boot: str | None = None
    pid: int | None = None
    start_ticks: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    cause: str | None = None
    lost: bool = False
    asked: bool = False
    notes: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        return not (self.exit_code is None and self.exit_signal is None and self.cause is None)

    def observed(self, run: RunId, *, running: bool) -> ObservedProcess:
        return ObservedProcess(
            entry=run.entry,
            unit=run.unit,
            digest=run.digest,
            running=running,
            pid=self.pid,
            start_ticks=self.start_ticks,
            exit_code=self.exit_code,
            exit_signal=self.exit_signal,
            cause=self.cause,
            lost=self.lost,
            rebooted=self.boot not in (None, boot_id()),
            asked=self.asked,
            notes=self.notes,
        )


def lock_holder(directory: Path) -> int | None:
    """The shim's pid. Asks without taking the lock, so that no start is refused by a look."""
    try:
        file = os.open(directory / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    finally:
        os.close(file)
    return None if kind == fcntl.F_UNLCK else pid


def read_status(directory: Path) -> RunStatus:
    """What stands there; nothing if no shim came so far as to write it."""
    try:
        text = (directory / "status").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return RunStatus()
    fields: dict[str, str] = {}
    notes: list[str] = []
    for line in text.splitlines():
        word, _, value = line.partition(" ")
        if word == "note":
            notes.append(value)
        else:
            fields[word] = value

    def number(word: str) -> int | None:
        return int(fields[word]) if fields.get(word, "").isdecimal() else None

    return RunStatus(
        boot=fields.get("boot"),
        pid=number("pid"),
        start_ticks=number("start"),
        exit_code=number("exit"),
        exit_signal=number("signal"),
        cause=fields.get("cause"),
        lost="lost" in fields,
        asked="asked" in fields,
        notes=tuple(notes),
    )


def record_loss(directory: Path, status: RunStatus, note: str) -> RunStatus:
    """A status that its shim could not end: the unit was killed along with it."""
    lost = RunStatus(
        boot=status.boot,
        pid=status.pid,
        start_ticks=status.start_ticks,
        exit_signal=9,
        lost=True,
        notes=(*status.notes, note),
    )
    lines = [f"note {text}" for text in lost.notes] + ["signal 9", "lost yes"]
    for word, value in (("boot", lost.boot), ("pid", lost.pid), ("start", lost.start_ticks)):
        if value is not None:
            lines.insert(0, f"{word} {value}")
    made = directory / "status.new"
    made.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made.replace(directory / "status")
    return lost


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
