"""One principal's connection to the bus, made again for ever.

The client library's own reconnecting is off: it keeps to the addresses it was given, ends for good
on some errors, and sends what was asked before the loss when nobody waits for it any more. Here a
lost connection ends every wait at once, and a new client is made at wherever the bus is then.
"""

import asyncio
import contextlib
import itertools
import random
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from keyplane import metrics
from keyplane.adapters.nats.client import Client
from keyplane.adapters.nats.permissions import Principal, inbox_of
from keyplane.journal import Journal
from keyplane.ports.bus import BusRefusedError, BusUnavailableError
from keyplane.ports.errors import PortError

log = Journal(__name__.removeprefix("keyplane."))

Take = Callable[[Msg], Awaitable[None]]

CONNECT_S_MAX = 15.0
"""For all of a connection. Thousands that come back at once wait for each other, and if each gave
up while it waits, all would try again for nothing."""
WAIT_S_FIRST = 0.1
"""Most of the first wait after a loss: an embedded server that was restarted is back by then."""
WAIT_S_MAX = 10.0
"""Most of any wait; waits are drawn from nothing to their most, so that thousands of agents do not
come at once, and none is kept from the bus for longer than a heartbeat or so."""
PING_S = 20
"""Three that stay unanswered end the connection: a peer that vanished costs a minute."""

_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')
_NO_RESPONDERS = "503"


@dataclass(frozen=True, slots=True)
class _Subscription:
    subject: str
    queue: str
    take: Take


@dataclass(frozen=True, slots=True)
class _Waiting:
    subject: str
    answer: asyncio.Future[Msg]


class Link:
    """Made inside a running loop; connects by itself until closed."""

    def __init__(self, *, principal: Principal, seed: str, locate: Callable[[], str]) -> None:
        """`locate` gives the bus's URL, and is asked before each attempt."""
        self._principal = principal
        self._seed = seed
        self._locate = locate
        self._client: Client | None = None
        self._connected = asyncio.Event()
        self._failure = "not connected yet"
        self._wakes: list[Callable[[], None]] = []
        self._subscriptions: list[_Subscription] = []
        self._waiting: dict[str, _Waiting] = {}
        self._refused: dict[tuple[str, str], str] = {}
        self._inbox = f"{inbox_of(principal)}.{secrets.token_hex(8)}"
        self._tokens = itertools.count()
        self._subscriptions.append(_Subscription(f"{self._inbox}.*", "", self._take_answer))
        self._task = asyncio.create_task(self._keep_connected())

    def on_connected(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever a connection was made from now on."""
        self._wakes.append(wake)

    async def subscribe(self, subject: str, take: Take, *, queue: str = "") -> None:
        """Now if connected, and on every connection from now on."""
        subscription = _Subscription(subject, queue, take)
        self._subscriptions.append(subscription)
        client = self._client
        if client is None or not self._connected.is_set():
            return
        try:
            await self._subscribe(client, subscription)
        except BusRefusedError:
            self._subscriptions.remove(subscription)
            raise
        except (nats.errors.Error, OSError, RuntimeError) as err:
            log.info("bus.subscription-waits", subject=subject, cause=str(err))

    async def attach(self, takes: Mapping[str, Take]) -> dict[str, Subscription]:
        """Subscribe on the connection that there is, and no other; without what was refused."""
        client = self._client
        if client is None or not self._connected.is_set():
            raise BusUnavailableError(self._failure)
        made: dict[str, Subscription] = {}
        try:
            for subject, take in takes.items():
                made[subject] = await client.subscribe(  # pyright: ignore[reportUnknownMemberType]
                    subject, cb=take
                )
            await _flushed(client)
        except (nats.errors.Error, OSError, RuntimeError) as err:
            raise BusUnavailableError(f"the subscriptions were not made: {err}") from err
        for subject in takes:
            if self._refused.pop(("subscription", subject.lower()), None) is not None:
                del made[subject]
        return made

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Hand it to the connection. A refusal of the server is raised by the next call."""
        client = self._client
        if client is None:
            raise BusUnavailableError(self._failure)
        refused = self._refused.pop(("publish", subject), None)
        if refused is not None:
            raise BusRefusedError(refused)
        if len(payload) > client.max_payload:
            raise BusRefusedError(
                f"a message of {len(payload)} bytes to {subject}: the bus carries "
                f"{client.max_payload} at most"
            )
        try:
            await client.publish(
                subject, payload, reply=reply, headers=dict(headers) if headers else None
            )
        except (nats.errors.Error, OSError, RuntimeError) as err:
            if client is self._client and client.is_closed:
                # From now on the next is waited for: who asks again at once comes to no end else.
                self._connected.clear()
            raise BusUnavailableError(f"{subject} was not sent: {err}") from err

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout_ms: int,
        headers: Mapping[str, str] | None = None,
    ) -> Msg:
        """The first answer; the time runs from the call, waiting for a connection included."""
        inbox = f"{self._inbox}.{next(self._tokens)}"
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._connected.wait()
                answer = asyncio.get_running_loop().create_future()
                self._waiting[inbox] = _Waiting(subject, answer)
                await self.publish(subject, payload, reply=inbox, headers=headers)
                return await answer
        except TimeoutError:
            cause = f"no answer to {subject} in {timeout_ms} ms"
            if not self._connected.is_set():
                cause = f"no connection to the bus in {timeout_ms} ms: {self._failure}"
            raise BusUnavailableError(cause) from None
        finally:
            self._waiting.pop(inbox, None)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        client, self._client = self._client, None
        self._connected.clear()
        self._lost("this end was closed")
        if client is not None:
            await _close(client)

    async def _keep_connected(self) -> None:
        spread = random.SystemRandom()
        attempts = 0
        while not _is_cancelled():
            closed = asyncio.Event()
            if await self._connect(closed) and not _is_cancelled():
                attempts = 0
                await closed.wait()
                self._client = None
                self._connected.clear()
                log.warning("bus.lost")
                self._lost("the connection to the bus was lost")
            if not _is_cancelled():
                wait_max = min(WAIT_S_MAX, WAIT_S_FIRST * 2**attempts)
                attempts = min(attempts + 1, 16)
                await asyncio.sleep(spread.uniform(0, wait_max))

    async def _connect(self, closed: asyncio.Event) -> bool:
        client = Client()
        cause: Exception | None = None

        async def on_error(err: Exception) -> None:
            nonlocal cause
            cause = err
            self._note(err)

        async def on_closed() -> None:
            closed.set()

        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                url = self._locate()
                await client.connect(
                    url,
                    nkeys_seed_str=self._seed,
                    inbox_prefix=self._inbox,
                    error_cb=on_error,
                    closed_cb=on_closed,
                    allow_reconnect=False,
                    # One more try at once, and no wait in it: waits are drawn out here.
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=int(CONNECT_S_MAX),
                    ping_interval=PING_S,
                    # With a bound a large message waits for the socket, and a cancellation that
                    # comes then is swallowed. What waits is bounded by what was asked for.
                    pending_size=0,
                )
                self._refused.clear()
                # Before the subscriptions: what they take is answered at once.
                self._client = client
                await self._subscribe_all(client)
        except Exception as err:  # noqa: BLE001 - a client that dies half-made raises anything
            self._client = None
            await _close(client)
            self._fail(self._text_of(err if isinstance(err, PortError) else cause or err))
            return False
        except asyncio.CancelledError:
            self._client = None
            await _close(client)
            raise
        # No await between the last look at the subscriptions and here.
        self._connected.set()
        self._failure = ""
        metrics.bus_connects.inc()
        log.info("bus.connected", url=url)
        for wake in self._wakes:
            wake()
        return True

    async def _subscribe_all(self, client: Client) -> None:
        """Those that are added meanwhile too."""
        made = 0
        while made < len(self._subscriptions):
            missing = self._subscriptions[made:]
            await self._subscribe(client, *missing)
            made += len(missing)

    async def _subscribe(self, client: Client, *subscriptions: _Subscription) -> None:
        """Returns once the server has them, or raises if it refused one."""
        for each in subscriptions:
            await client.subscribe(  # pyright: ignore[reportUnknownMemberType] - a bare Future
                each.subject, queue=each.queue, cb=each.take
            )
        await _flushed(client)
        for each in subscriptions:
            refused = self._refused.pop(("subscription", each.subject.lower()), None)
            if refused is not None:
                raise BusRefusedError(refused)

    def _note(self, err: Exception) -> None:
        """Keep a permission violation: the server names only its kind and subject."""
        found = _VIOLATION.search(str(err))
        if found is None:
            return
        kind, subject = found.groups()
        verb = "publish to" if kind == "publish" else "subscribe to"
        text = f"the bus does not let {_name(self._principal)} {verb} {subject}"
        log.warning("bus.refused", kind=kind, subject=subject)
        asked = [
            waiting
            for waiting in self._waiting.values()
            if kind == "publish" and waiting.subject.lower() == subject
        ]
        for waiting in asked:
            if not waiting.answer.done():
                waiting.answer.set_exception(BusRefusedError(text))
        if not asked:
            self._refused[kind, subject] = text

    def _text_of(self, err: Exception) -> str:
        stranger = f"the bus does not know the key of {_name(self._principal)}"
        if "Authorization Violation" in str(err):
            return stranger
        if isinstance(err, ConnectionResetError):
            # The server closes on a stranger at once, and its word may be lost in that.
            return f"the bus closed the connection during login; perhaps {stranger}"
        if isinstance(err, TimeoutError):
            return f"the bus took longer than {CONNECT_S_MAX:g} s to let us in"
        return str(err) or type(err).__name__

    def _fail(self, cause: str) -> None:
        if cause != self._failure:
            log.warning("bus.unreachable", cause=cause)
        self._failure = cause

    def _lost(self, cause: str) -> None:
        """End every wait: an answer can no longer come."""
        self._failure = cause
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(BusUnavailableError(cause))

    async def _take_answer(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject)
        if waiting is None or waiting.answer.done():
            return
        if (message.headers or {}).get("Status") == _NO_RESPONDERS:
            nobody = f"nobody serves {waiting.subject}: is a controller running?"
            waiting.answer.set_exception(BusUnavailableError(nobody))
        else:
            waiting.answer.set_result(message)


async def _flushed(client: Client) -> None:
    """Returns once the server has dealt with what was sent."""
    # The library's ping overtakes what it has yet to write; a second one comes after it.
    try:
        await client.flush(timeout=int(CONNECT_S_MAX))
        await client.flush(timeout=int(CONNECT_S_MAX))
    finally:
        if _is_cancelled():
            raise asyncio.CancelledError


def _is_cancelled() -> bool:
    """Whether this task is to end; the library, and `wait_for` below 3.12, may swallow the word."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _name(principal: Principal) -> str:
    return inbox_of(principal).rpartition(".")[2].lower()


async def _close(client: Client) -> None:
    # One that dies half-made raises anything; nothing is expected of it any more.
    with contextlib.suppress(Exception):
        await client.close()
