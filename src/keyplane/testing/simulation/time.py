"""Virtual time, and wall clocks that jump."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from keyplane.testing.clock import EPOCH_MS, VirtualLoop

T = TypeVar("T")


class Loop(VirtualLoop):
    """A virtual loop without threads: what is sent to one is done on the spot, and told later."""

    takes_s: Callable[[], float] = staticmethod(lambda: 0.0)
    """How long the work of the next thread takes."""

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


class SkewedClock:
    """The port `Clock` of one computer."""

    def __init__(self) -> None:
        self.skew_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + self.monotonic_ms() + self.skew_ms

    def monotonic_ms(self) -> int:
        return 1_000 + round(asyncio.get_running_loop().time() * 1_000)
