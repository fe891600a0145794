"""One life of a process: its tasks, and its death between any two things that it does."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Crash(BaseException):
    """The process was killed. Nothing of it goes on."""


class Life:
    """Ports of a life call `boundary` where it may be killed, and `alive` where it only looks."""

    def __init__(
        self,
        name: str,
        *,
        ended: Callable[["Life", str], None],
        bug: Callable[[str, BaseException], None],
    ) -> None:
        """`ended` is told of a crash, and where; `bug` of an error that ended a task."""
        self.name = name
        self.is_dead = False
        self._left: int | None = None
        self._frozen_until = 0.0
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._ended = ended
        self._bug = bug

    def doom(self, boundaries: int) -> None:
        """Kill it after so many more boundaries."""
        self._left = boundaries

    def pardon(self) -> None:
        self._frozen_until = 0.0
        self._left = None

    def freeze(self, length_s: float) -> None:
        """Let it do nothing for a while, without its knowing."""
        self._frozen_until = asyncio.get_running_loop().time() + length_s

    @property
    def is_frozen(self) -> bool:
        return self._frozen_until > asyncio.get_running_loop().time()

    async def thaw(self) -> None:
        """Wait until it goes on; at once, if it is not frozen."""
        while self.is_frozen:  # noqa: ASYNC110  # a pardon ends it early
            await asyncio.sleep(0.5)

    def alive(self) -> None:
        if self.is_dead:
            raise Crash

    def boundary(self, where: str) -> None:
        self.alive()
        if self._left is None:
            return
        self._left -= 1
        if self._left <= 0:
            self.kill(f"killed {where}")
            raise Crash

    def kill(self, why: str) -> None:
        if self.is_dead:
            return
        self.is_dead = True
        for task in self._tasks:
            task.cancel()
        self._ended(self, why)

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        if self.is_dead:
            task.cancel()
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not self.is_dead:
            self._bug(self.name, error)
