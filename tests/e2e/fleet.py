"""A fleet directory of its own, run for real: in its own network where the kernel allows."""

import contextlib
import ctypes
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
KEYPLANE = [sys.executable, "-m", "keyplane.cli"]
KEYPLANE_AGENT = [sys.executable, "-c", "from keyplane.cli import on_machine; on_machine.main()"]
DEADLINE_S = 120.0
"""Of what takes a second where nobody else wants the processors."""
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()


def wait_for(poll: Callable[[], T | None], what: str, seconds: float = DEADLINE_S) -> T:
    """Return what `poll` gives once it gives something; a falsy answer is none."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if found := poll():
            return found
        now = time.monotonic()
        assert now < deadline, f"not in {seconds} s: {what}"
        # A poll may be a whole command: what is waited for is given as much of the processors.
        time.sleep(min(0.5, max(0.02, now - began)))


def wait_equal(look: Callable[[], tuple[T, T]], what: str) -> None:
    """Look until both are equal; where they never are, what was seen last is shown."""
    seen: list[tuple[T, T]] = []

    def is_so() -> bool:
        seen[:] = [look()]
        return seen[0][0] == seen[0][1]

    with contextlib.suppress(AssertionError):
        wait_for(is_so, what)
    assert seen[0][0] == seen[0][1], what


BUSY = re.compile(r"^keyplane: the controller \(pid \d+\) does not answer yet;.*\n", re.MULTILINE)
"""What a command says on a machine on which the controller waits for its turn; few tests mind."""


@dataclass(frozen=True)
class Ran:
    exit: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Network:
    """A network namespace with a loopback of its own."""

    def __init__(self) -> None:
        self.name = f"keyplane-{os.getpid()}-{next(_numbers)}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)

    @property
    def path(self) -> str:
        return f"/run/netns/{self.name}"

    def close(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=True)

    def inside(self, call: Callable[[], T]) -> T:
        """Call in a thread that has entered the namespace."""
        result: list[T] = []
        problem: list[BaseException] = []

        def run() -> None:
            try:
                descriptor = os.open(self.path, os.O_RDONLY)
                try:
                    libc = ctypes.CDLL(None, use_errno=True)
                    if libc.setns(descriptor, _CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                finally:
                    os.close(descriptor)
                result.append(call())
            except BaseException as error:  # noqa: BLE001  handed to the caller below
                problem.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if problem:
            raise problem[0]
        return result[0]


F = TypeVar("F", bound="Fleet")


class Fleet:
    """One fleet directory and the commands on it."""

    def __init__(self, directory: Path, network: Network) -> None:
        self.directory = directory
        self.network = network

    def start(self, *words: str, command: Sequence[str] = KEYPLANE) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["nsenter", f"--net={self.network.path}", *command, *words],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, exit_status: int | None = 0) -> Ran:
        """Run `keyplane WORDS` in the fleet's directory, and check its exit status."""
        return self._end(self.start(*words), words, exit_status)

    def run_agent(self, *words: str, exit_status: int | None = 0) -> Ran:
        """The same of `keyplane-agent`."""
        return self._end(self.start(*words, command=KEYPLANE_AGENT), words, exit_status)

    def _end(
        self, child: "subprocess.Popen[str]", words: Sequence[str], exit_status: int | None
    ) -> Ran:
        try:
            out, err = child.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        ran = Ran(child.returncode, out, BUSY.sub("", err))
        assert "Traceback" not in out + err, f"{words}\n{out}\n{err}"
        assert exit_status is None or ran.exit == exit_status, f"{words}: {ran.exit}\n{out}\n{err}"
        return ran

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.directory / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def apply(self, *words: str, exit_status: int = 0) -> dict[str, Any]:
        """Apply, and return the last event."""
        ran = self.run("apply", "--yes", "--json", *words, exit_status=exit_status)
        return [json.loads(line) for line in ran.out.splitlines()][-1]

    def status(self) -> dict[str, Any]:
        return self.run("status", "--json", exit_status=None).json

    def silent(self) -> set[str]:
        return {each["machine"] for each in self.status()["machines"] if each["silent"]}

    def start_ids(self) -> dict[str, tuple[int, int]]:
        """(pid, start ticks) of each running unit, by `ENTRY/UNIT`."""
        return {
            f"{entry['entry']}/{name}": (unit["pid"], unit["start_ticks"])
            for entry in self.status()["entries"]
            for name, unit in entry["units"].items()
            if unit["pid"] is not None
        }

    def listen(self, entry: str, name: str) -> int:
        entries = self.status()["entries"]
        return next(e for e in entries if e["entry"] == entry)["listens"][name]

    def get(self, url: str, data: bytes | None = None) -> str:
        """Fetch from inside the fleet's network."""

        def call() -> str:
            with urllib.request.urlopen(url, data=data, timeout=30) as answer:
                return answer.read().decode()

        return self.network.inside(call)

    def try_get(self, url: str) -> str | None:
        with contextlib.suppress(OSError, http.client.HTTPException):  # it may end amid an answer
            return self.get(url)
        return None

    def parts(self) -> dict[str, int]:
        """The pid of each running part, by name."""
        ran = self.run("status", "--parts", "--json").json
        return {name: part["pid"] for name, part in ran.items() if part["pid"] is not None}

    def close(self) -> None:
        self.run("down", "--units", exit_status=None)
        # Who was killed, or has ended by itself, may not have come to its end yet.
        wait_equal(lambda: (self.holders(), {}), "nothing is left over")

    def holders(self) -> dict[int, str]:
        """Processes that still live in the fleet's network, by pid."""
        inode = Path(self.network.path).stat().st_ino
        found: dict[int, str] = {}
        for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/ns/net").stat().st_ino == inode:
                    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                    command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                    if state != "Z" and command:  # with none it is just ending
                        found[pid] = command.decode(errors="replace")
        return found


@contextlib.contextmanager
def running(source: Path, directory: Path, *, up: bool = True) -> Iterator[Fleet]:
    """A copy of a fleet, up until the block ends; nothing of it is left afterwards."""
    shutil.copytree(source, directory, ignore=shutil.ignore_patterns(".keyplane"))
    with standing(Fleet(directory, Network()), up=up) as fleet:
        yield fleet


@contextlib.contextmanager
def standing(fleet: F, *, up: bool = True) -> Iterator[F]:
    """A fleet whose text is written already, up until the block ends, and gone then."""
    try:
        if up:
            fleet.run("up", ".", "--yes")
        yield fleet
    finally:
        try:
            fleet.close()
        finally:
            fleet.network.close()


def take_away(folder: Path, *, beside: Path) -> None:
    """Remove a folder at one blow: whoever writes there can put nothing back amid it."""
    aside = beside / f"{folder.name}-{next(_numbers)}"
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)  # what they hold open may be in the way


@contextlib.contextmanager
def stilled(*pids: int) -> Iterator[None]:
    """Processes that do nothing meanwhile, as if their machines were off."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
                os.kill(pid, signal.SIGCONT)
