"""Calls that come while one of their kind is under way are made as one, the next.

Each still waits for its own answer, and begins after it was made: what a read tells is no older
than its call, and who was told that something is written was told so afterwards.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

MOST = 500
"""Calls that are made at once: far more than come within the time of one, and one chunk of SQL."""

Asked = TypeVar("Asked")
Told = TypeVar("Told")


@dataclass(eq=False, slots=True)
class _Call(Generic[Asked, Told]):
    asked: Asked
    told: Sequence[Told | Exception] = ()
    """One answer, once there is one."""


class Together(Generic[Asked, Told]):
    """`work` answers each of many in their order; an exception that it raises is everybody's."""

    def __init__(
        self,
        work: Callable[[Sequence[Asked]], Awaitable[Sequence[Told | Exception]]],
        *,
        after_s: float = 0.0,
    ) -> None:
        """Others are waited for so long, where nobody is in a hurry."""
        self._work = work
        self._after_s = after_s
        self._turn = asyncio.Lock()
        self._waiting: list[_Call[Asked, Told]] = []

    async def __call__(self, asked: Asked) -> Told:
        call = _Call[Asked, Told](asked)
        self._waiting.append(call)
        try:
            async with self._turn:
                while not call.told:
                    await self._make()
        finally:
            if not call.told and call in self._waiting:
                self._waiting.remove(call)  # it was given up
        [told] = call.told
        if isinstance(told, Exception):
            raise told
        return told

    async def _make(self) -> None:
        if self._after_s:
            await asyncio.sleep(self._after_s)
        calls, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        try:
            answers = await self._work([call.asked for call in calls])
        except Exception as error:  # noqa: BLE001  # raised where each of them was made
            answers = [error] * len(calls)
        except BaseException:
            self._waiting = [*calls, *self._waiting]  # who made it was cancelled: another does
            raise
        for call, answer in zip(calls, answers, strict=True):
            call.told = (answer,)
