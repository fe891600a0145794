"""Calls that are made to their end, also where who made them is cancelled meanwhile.

Cancelled amid a statement, a connection is closed below it, and SQLite keeps one that has a statement
open, and all that it locked, until Python's collector comes by.
"""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any


class Whole:
    """So are all public calls of what is made of this: who is cancelled hears of it afterwards."""

    def __init__(self) -> None:
        self._calls: set[asyncio.Task[Any]] = set()

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if inspect.iscoroutinefunction(method) and not name.startswith("_"):
                setattr(cls, name, _to_its_end(method))

    async def _quiet(self) -> None:
        """Return once nothing but this is under way, whoever waits for it or has gone."""
        while others := self._calls - {asyncio.current_task()}:
            await asyncio.wait(others)

    async def carry(self, call: asyncio.Task[Any]) -> Any:
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            while not call.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({call})
            if not call.cancelled():
                call.exception()  # heard by nobody
            raise


def _to_its_end(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def made(self: Whole, *given: Any, **named: Any) -> Any:
        return await self.carry(asyncio.create_task(method(self, *given, **named)))

    return made
