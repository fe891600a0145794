"""The evaluator: one long-lived child, started by the first call that needs it."""

import dataclasses
import hashlib
import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import keyplane
from keyplane.documents.evaluation import Call, Fault, Value

_KEPT_MAX = 2_000
"""Results kept: a fleet has tens of roles, and each instance's settings make one more call."""
_CLOSE_S = 5.0
"""An idle child ends at once; one that does not is stuck."""
_START = "import sys; sys.path[:0] = {paths!r}; from keyplane.adapters.starlark import child; child.main()"


class Runner:
    """`ports.evaluator.Evaluator`. Results are kept by the digest of what went in."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._kept: dict[bytes, Value | Fault] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, call: Call) -> Value | Fault:
        line = json.dumps(_plain(call)).encode()
        digest = hashlib.sha256(line).digest()
        with self._lock:
            if digest not in self._kept:
                if len(self._kept) >= _KEPT_MAX:
                    self._kept.clear()
                self._kept[digest] = self._asked(call, line)
            return self._kept[digest]

    def close(self) -> None:
        with self._lock:
            self._end()

    def _asked(self, call: Call, line: bytes) -> Value | Fault:
        try:
            answer = self._exchange(line)
        except OSError as error:
            answer, why = b"", str(error)
        else:
            why = "it ended"
        if not answer:
            self._end()
            message = f"the evaluator gave no answer: {why}"
            return Fault(message=message, file=call.file, line=1, column=1, source="")
        found: dict[str, Any] = json.loads(answer)
        used_ms: int = found["used_ms"]
        if "fault" in found:
            return Fault(**found["fault"], used_ms=used_ms)
        return Value(tree=found["tree"], impls=tuple(found["impls"]), used_ms=used_ms)

    def _exchange(self, line: bytes) -> bytes:
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(line + b"\n")
        child.stdin.flush()
        return child.stdout.readline()

    def _start(self) -> subprocess.Popen[bytes]:
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START.format(paths=_paths())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.close()
        except OSError:
            child.kill()
        try:
            child.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def _plain(call: Call) -> dict[str, Any]:
    return {**dataclasses.asdict(call), "sources": dict(call.sources)}


def _paths() -> list[str]:
    """Where the child finds this package and the interpreter, with no start-up files run."""
    assert keyplane.__file__ is not None
    library = importlib.util.find_spec("starlark")
    assert library is not None
    assert library.origin is not None
    return [str(Path(path).resolve().parent.parent) for path in (keyplane.__file__, library.origin)]
