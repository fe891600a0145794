"""A command on a terminal of its own, as a person has it before him."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from typing import Self

from tests.e2e.fleet import BUSY, DEADLINE_S, KEYPLANE, Fleet

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
"""The second screen, and back from it."""


class Terminal:
    """Eighty columns, twenty-four lines."""

    def __init__(self, fleet: Fleet, *words: str, command: Sequence[str] = KEYPLANE) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.child = subprocess.Popen(
            ["nsenter", f"--net={fleet.network.path}", *command, *words],
            cwd=fleet.directory,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        self.drawn = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.child.kill()
        self.child.wait()
        os.close(self._ours)

    @property
    def said(self) -> str:
        """What was drawn, but for what a command says on a busy machine."""
        return BUSY.sub("", self.drawn.decode())

    def until(self, text: str, seconds: float = DEADLINE_S) -> None:
        """Read on until it stands in what was drawn since the last call."""
        begun, end = len(self.drawn), time.monotonic() + seconds
        while text.encode() not in self.drawn[begun:]:
            assert time.monotonic() < end, f"no {text!r} in {self.drawn[begun:]!r}"
            assert self._read(), f"no {text!r} before its end in {self.drawn[begun:]!r}"

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """As Ctrl-C does, which is no signal where the terminal is nobody's own."""
        self.child.send_signal(signal.SIGINT)

    def end(self, seconds: float = DEADLINE_S) -> int:
        """Read to the end; the exit status."""
        end = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < end, f"it goes on: {self.drawn[-2000:]!r}"
        return self.child.wait(seconds)

    def _read(self) -> bool:
        """False once nobody holds the other side."""
        ready, _, _ = select.select([self._ours], [], [], 1.0)
        if not ready:
            return True
        try:
            more = os.read(self._ours, 65_536)
        except OSError:
            return False
        self.drawn += more
        return bool(more)
