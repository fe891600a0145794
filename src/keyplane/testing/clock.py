"""Time that goes only when it is told to, or when nobody has anything left to do."""

import asyncio
import selectors
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH_MS = 1_700_000_000_000


class ManualClock:
    """The port `Clock`, set by hand."""

    def __init__(self, *, now_ms: int = EPOCH_MS, monotonic_ms: int = 1_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, by_ms: int) -> None:
        self._now_ms += by_ms
        self._monotonic_ms += by_ms

    def jump(self, by_ms: int) -> None:
        """Somebody set the wall clock; monotonic time knows nothing of it."""
        self._now_ms += by_ms


class _Leaping(selectors.DefaultSelector):
    """Waits for no time: the next timer is due at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout is not None:
            self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in which an hour of sleep passes at once.

    Not for tasks that await sockets or processes beside timers: those come late, by its time. It
    has no threads: what is sent to one is done on the spot, and told later.
    """

    takes_s: Callable[[], float] = staticmethod(lambda: 0.0)
    """How long the work of the next thread takes."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now_s

    def run_in_executor(  # type: ignore[override]  # the base's own type is not to be had
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        del executor
        done: asyncio.Future[T] = self.create_future()
        try:
            answer: Callable[[], None] = partial(_answer, done, func(*args))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            answer = partial(_raise, done, error)
        self.call_later(self.takes_s(), answer)
        return done


def _answer(done: "asyncio.Future[T]", value: T) -> None:
    if not done.done():
        done.set_result(value)


def _raise(done: "asyncio.Future[T]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)


class LoopClock:
    """The port `Clock`, by the time of the running loop."""

    def now_ms(self) -> int:
        return EPOCH_MS + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1_000)
