"""Dynamic values on NATS (`ports.bus.ValueBus`): a key-value bucket, without any consumer.

The last word of an export is fetched from the bucket; later ones come live on the same subject.
Whose a word is, is read from its subject. An answer of the bucket that somebody had sent to such a
subject bears the bucket's headers, and is no word; nor is it when it is given out from there.
"""

import contextlib
import json
import re
from collections.abc import Callable, Collection
from typing import Any

import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription  # noqa: TC002  # as all imports

from keyplane.adapters.nats import subjects
from keyplane.adapters.nats.client import STORED_ANEW
from keyplane.adapters.nats.link import Link
from keyplane.journal import Journal
from keyplane.ports.bus import BusRefusedError, BusUnavailableError

log = Journal(__name__.removeprefix("keyplane."))

VALUE_BYTES_MAX = 64 * 1024
"""A list of some thousand addresses. What is larger is a file, and belongs into an archive."""

_ONLY_IF_NONE = {"Nats-Expected-Last-Subject-Sequence": "0"}
_OTHER_LAST = re.compile(r"wrong last sequence: (\d+)")
_OTHER_LAST_CODE = 10071
_NOT_FOUND = "404"
_OF_STORE = ("Nats-Stream", "Nats-Sequence", "Nats-Subject", "Status")


class NatsValues:
    """The part of an agent's bus that carries values."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._subscriptions: dict[str, Subscription] = {}
        self._life = 0
        link.on_connected(self._begin_anew)

    def _begin_anew(self) -> None:
        """What was subscribed to went with the former connection."""
        self._subscriptions.clear()
        self._life += 1

    def on_connected(self, wake: Callable[[], None]) -> None:
        self._link.on_connected(wake)

    async def say(self, export: str, payload: bytes, *, only_if_none: bool, timeout_ms: int) -> int:
        subject = subjects.value(export)
        if subject is None:
            raise BusRefusedError(f"{export} is no export of a machine")
        if len(payload) > VALUE_BYTES_MAX:
            raise BusRefusedError(
                f"{len(payload)} bytes of {export}: the bus carries {VALUE_BYTES_MAX} at most"
            )
        headers = _ONLY_IF_NONE if only_if_none else None
        answer = await self._link.request(subject, payload, timeout_ms=timeout_ms, headers=headers)
        return _sequence(answer)

    async def read(self, export: str, *, timeout_ms: int) -> bytes | None:
        subject = subjects.stored_value(export)
        if subject is None:
            return None
        answer = await self._link.request(subject, b"", timeout_ms=timeout_ms)
        headers = answer.headers or {}
        status = headers.get("Status")
        if status == _NOT_FOUND:
            return None
        if status is not None or headers.get("Nats-Stream") != subjects.BUCKET:
            raise BusUnavailableError(f"the bus answers {status} to a question for {export}")
        if STORED_ANEW in headers:
            log.warning("a value is refused: its provider did not say it", export=export)
            return None
        return answer.data

    async def listen(
        self, exports: Collection[str], take: Callable[[str, bytes], None]
    ) -> frozenset[str]:
        wanted = {subjects.value(export): export for export in exports}
        wanted.pop(None, None)
        named = {subject: export for subject, export in wanted.items() if subject is not None}
        for subject in sorted(self._subscriptions.keys() - named.keys()):
            gone = self._subscriptions.pop(subject)
            with contextlib.suppress(nats.errors.Error, OSError, RuntimeError):
                await gone.unsubscribe()
        missing = {
            subject: _taking(export, take)
            for subject, export in sorted(named.items())
            if subject not in self._subscriptions
        }
        life = self._life
        if missing:
            made = await self._link.attach(missing)
            if life == self._life:
                self._subscriptions.update(made)
        return frozenset(
            export for subject, export in named.items() if subject in self._subscriptions
        )


def _taking(export: str, take: Callable[[str, bytes], None]) -> Callable[[Msg], Any]:
    async def hear(message: Msg) -> None:
        headers = message.headers or {}
        if not any(name in headers for name in _OF_STORE):
            take(export, message.data)

    return hear


def _sequence(answer: Msg) -> int:
    """Of the last word that the bucket has of the export."""
    try:
        said: dict[str, Any] = json.loads(answer.data)
        error = said.get("error")
        if error is None:
            return int(said["seq"])
        found = _OTHER_LAST.search(str(error.get("description")))
        if error.get("err_code") == _OTHER_LAST_CODE and found is not None:
            return int(found[1])
    except (ValueError, KeyError, AttributeError) as err:
        raise BusUnavailableError("the bus does not say that it has the value") from err
    raise BusUnavailableError(f"the bus does not take the value: {error.get('description')}")
