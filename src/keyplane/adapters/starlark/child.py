"""The process that evaluates: one call a line on standard input, one answer a line on output.

Each call runs in a fork of its own, under limits of memory and processor time, so that nothing of
one call is left for the next. A fork that dies is run once more with each statement marked, for as
long as it takes to tell where it was.
"""

import json
import mmap
import os
import resource
import select
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

from keyplane.adapters.starlark import interpreter

Json = Any

_MEMORY_MAX = 64 << 20
"""The contract's number."""
_MEMORY_SLACK = 8 << 20
"""What the interpreter itself takes to begin."""
_CONVERSION_MAX = 1 << 30
"""A finished result is copied twice on its way out; that is ours, not the document's."""
CPU_MAX_S = 2
"""Ten million steps take a fifth of a second; only single operations without end come here."""
_STATEMENT_MAX_S = 0.5
"""Of processor time in one statement, when looking for the one that does not end."""
_WALL_MAX_S = 30
"""For a machine that gives us no processor at all."""
_LOOK_S = 0.05
_SPENT, _BUG = 1, 2
"""Statuses of a fork: it came to a limit (the library panics at one), or our own code is wrong."""
_TICKS_IN_S = os.sysconf("SC_CLK_TCK")
_PLACE = struct.Struct("=III")
_EVALUATED = _PLACE.size
"""After the place: whether the document's own work was done."""


def main() -> None:
    """Answer until input ends."""
    shared = mmap.mmap(-1, _EVALUATED + 1)
    for line in sys.stdin.buffer:
        before = _forks_used_ms()
        answer = _answer(json.loads(line), shared)
        used = b', "used_ms": %d}\n' % (_forks_used_ms() - before)
        sys.stdout.buffer.write(answer[:-1] + used)  # an object, one field longer
        sys.stdout.buffer.flush()


def _forks_used_ms() -> int:
    """Processor time of all forks until now."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((usage.ru_utime + usage.ru_stime) * 1000)


def _answer(call: dict[str, Json], shared: mmap.mmap) -> bytes:
    shared[:] = bytes(len(shared))
    answer, status = _forked(call, shared, traced=False)
    if answer is None and not shared[_EVALUATED]:
        answer, _ = _forked(call, shared, traced=True)
    if answer is not None:
        return answer
    slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    if shared[_EVALUATED]:
        message = "the result is too large"
    elif os.waitstatus_to_exitcode(status) == _BUG:
        message = "the evaluator itself failed; please report this document"
    elif slow:
        message = f"takes more than {CPU_MAX_S} s of processor time"
    else:
        message = f"needs more than {_MEMORY_MAX >> 20} MiB, or nests too deeply"
    spent = os.waitstatus_to_exitcode(status) != _BUG
    fault = interpreter.crashed(call, _PLACE.unpack_from(shared), message, spent=spent)
    return json.dumps({"fault": fault}).encode()


def _forked(call: dict[str, Json], shared: mmap.mmap, *, traced: bool) -> tuple[bytes | None, int]:
    """The answer of a fork, or None and how it ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _evaluate(call, shared, writing, traced=traced)
    os.close(writing)
    answer = _gathered(reading, pid, _Watch(pid, shared) if traced else None)
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    return (answer if status == 0 and answer else None), status


class _Watch:
    """Looks at a marked fork from outside: whether it is still at the statement where it was."""

    def __init__(self, pid: int, shared: mmap.mmap) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._shared = shared
        self._place = bytes(_PLACE.size)
        self._since_s = 0.0

    def is_stuck(self) -> bool:
        if self._shared[_EVALUATED]:
            return False
        place = self._shared[: _PLACE.size]
        # The name of the process stands in parentheses and may hold anything.
        fields = self._stat.read_text("ascii", "replace").rpartition(")")[2].split()
        used_s = (int(fields[11]) + int(fields[12])) / _TICKS_IN_S
        if place != self._place:
            self._place, self._since_s = place, used_s
        return any(place) and used_s - self._since_s > _STATEMENT_MAX_S


def _gathered(reading: int, pid: int, watch: _Watch | None) -> bytes:
    deadline = time.monotonic() + _WALL_MAX_S
    pieces: list[bytes] = []
    while True:
        left = max(deadline - time.monotonic(), 0)
        ready, _, _ = select.select([reading], [], [], left if watch is None else _LOOK_S)
        if not ready and (left == 0 or (watch is not None and watch.is_stuck())):
            os.kill(pid, signal.SIGKILL)
            return b""
        if ready:
            piece = os.read(reading, 1 << 20)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


def _evaluate(call: dict[str, Json], shared: mmap.mmap, writing: int, *, traced: bool) -> None:
    """In the fork: never returns."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        one = interpreter.Interpreter(call, _marker(shared) if traced else None)

        def evaluated() -> None:
            shared[_EVALUATED] = 1
            _lift()

        _limit()
        answer = json.dumps(one.run(evaluated)).encode()
        while answer:
            answer = answer[os.write(writing, answer) :]
        os._exit(0)
    except (MemoryError, RecursionError):
        os._exit(_SPENT)
    except BaseException as error:  # noqa: BLE001 - a fork has nobody to tell but by its status
        panicked = type(error).__name__ == "PanicException"
        os._exit(_SPENT if panicked else _BUG)


def _marker(shared: mmap.mmap) -> Any:
    def here(number: int, line: int, column: int) -> None:
        _PLACE.pack_into(shared, 0, number, line, column)

    return here


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    used = _used()
    soft = used + _MEMORY_MAX + _MEMORY_SLACK
    resource.setrlimit(resource.RLIMIT_AS, (soft, soft + _CONVERSION_MAX))


def _lift() -> None:
    """The document's own memory was enough; what comes now is the conversion of its result."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _used() -> int:
    pages = Path("/proc/self/statm").read_text("ascii").split()[0]
    return int(pages) * resource.getpagesize()
