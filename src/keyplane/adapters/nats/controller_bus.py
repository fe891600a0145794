"""The bus as the controller has it, on NATS (`ports.bus.ControllerBus`)."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from nats.aio.msg import Msg

from keyplane.adapters.nats import bucket, replies, subjects
from keyplane.adapters.nats.link import Link, Take
from keyplane.adapters.nats.permissions import Controller
from keyplane.journal import Journal
from keyplane.model.names import MachineName
from keyplane.ports.bus import BusUnavailableError
from keyplane.ports.errors import PortError

log = Journal(__name__.removeprefix("keyplane."))

IN_FLIGHT_MAX = 64
"""Of each kind. So many reports are one write of the inventory; more would only wait for it."""

BUCKET_S = 30.0
"""A store that was deleted under a running bus is there again within it."""
BUCKET_AGAIN_S = 2.0

_QUEUE = "controller"
"""Of several controllers, one answers each message."""


class NatsControllerBus:
    """Made inside a running loop, connected or not."""

    def __init__(self, *, seed: str, locate: Callable[[], str]) -> None:
        """`locate` gives the bus's URL, and is asked before each attempt to connect."""
        self._link = Link(principal=Controller(), seed=seed, locate=locate)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    async def hint(self, machine: MachineName) -> None:
        await self._link.publish(subjects.hint(machine), b"")

    async def serve(
        self,
        *,
        on_ask: Callable[[MachineName, bytes], Awaitable[bytes]],
        on_report: Callable[[MachineName, bytes], Awaitable[None]],
        on_facts: Callable[[MachineName, bytes], Awaitable[None]],
        on_beat: Callable[[MachineName, bytes], Awaitable[None]],
    ) -> None:
        async def record(machine: MachineName, payload: bytes) -> bytes:
            await on_report(machine, payload)
            return b""

        async def learn(machine: MachineName, payload: bytes) -> bytes:
            await on_facts(machine, payload)
            return b""

        async def hear(message: Msg) -> None:
            machine = subjects.machine_of(message.subject)
            if machine is not None and not message.headers:
                with contextlib.suppress(PortError):
                    await on_beat(machine, message.data)

        keeping: asyncio.Task[None] | None = None
        try:
            await self._subscribe(subjects.ALL_ASKS, lambda message: self._answer(message, on_ask))
            await self._subscribe(
                subjects.ALL_REPORTS, lambda message: self._answer(message, record)
            )
            await self._subscribe(subjects.ALL_FACTS, lambda message: self._answer(message, learn))
            await self._subscribe(subjects.ALL_BEATS, hear)
            keeping = asyncio.create_task(self._keep_bucket())
            await self._ended
        finally:
            if keeping is not None:
                keeping.cancel()
            await self._drop_tasks()

    async def _keep_bucket(self) -> None:
        """A bus that comes back may have lost it; one that did not say so is looked at anyway."""
        wake = asyncio.Event()
        self._link.on_connected(wake.set)
        while True:
            wake.clear()
            try:
                await bucket.ensure(self._link)
                wait_s = BUCKET_S
            except PortError as err:
                log.warning("bus.bucket", cause=str(err))
                wait_s = BUCKET_AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await wake.wait()

    async def close(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)
        await self._link.close()
        await self._drop_tasks()

    async def _subscribe(self, subject: str, work: Take) -> None:
        """Each message in a task of its own, so that a slow one holds up no other."""
        slots = asyncio.Semaphore(IN_FLIGHT_MAX)

        def finish(task: asyncio.Task[None]) -> None:
            slots.release()
            self._tasks.discard(task)
            bug = None if task.cancelled() else task.exception()
            if bug is not None and not self._ended.done():
                self._ended.set_exception(bug)

        async def take(message: Msg) -> None:
            await slots.acquire()
            task = asyncio.ensure_future(work(message))
            self._tasks.add(task)
            task.add_done_callback(finish)

        await self._link.subscribe(subject, take, queue=_QUEUE)

    async def _answer(
        self, message: Msg, work: Callable[[MachineName, bytes], Awaitable[bytes]]
    ) -> None:
        machine = subjects.machine_of(message.subject)
        # What has headers is an answer that somebody had sent here, such as a value of the bucket.
        if machine is None or message.headers:
            return
        if not subjects.is_answerable(message.reply, machine):
            return
        # An answer that cannot be sent is one that was lost: the machine asks again.
        with contextlib.suppress(BusUnavailableError):
            try:
                await self._link.publish(message.reply, await work(machine, message.data))
            except PortError as err:
                await self._refuse(message, err)

    async def _refuse(self, message: Msg, err: PortError) -> None:
        await self._link.publish(message.reply, b"", headers=replies.failure(str(err)))

    async def _drop_tasks(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
