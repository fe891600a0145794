"""The bus only wakes and carries; nothing is true because it was said here."""

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from keyplane.model.names import MachineName
from keyplane.ports.errors import PermanentError, TransientError


class BusUnavailableError(TransientError):
    """Not connected, or nobody answered in time, or who answered could not do it now."""


class BusRefusedError(PermanentError):
    """The bus does not let this principal do that, or does not carry a message so large."""


class BusServerError(PermanentError):
    """The embedded server does not start or does not take its configuration."""


class BusKeyError(PermanentError):
    """A key's file is torn, cannot be read or written, or is open to others."""


class AgentBus(Protocol):
    """The bus as one machine's agent sees it: its own subjects and no other's."""

    @property
    def values(self) -> "ValueBus": ...

    async def on_hint(self, wake: Callable[[], None]) -> None:
        """Call `wake` on each hint, and after each reconnect. A hint carries nothing.

        Returns at once while there is no connection: the first one is then a reconnect.
        """
        ...

    async def ask(self, payload: bytes, *, timeout_ms: int) -> bytes:
        """Ask for what this machine should be (`wire.Ask`); the answer is a `wire.Answer`."""
        ...

    async def report(self, payload: bytes, *, timeout_ms: int) -> None:
        """Deliver a report; returns once the controller has recorded it."""
        ...

    async def tell_facts(self, payload: bytes, *, timeout_ms: int) -> None:
        """Deliver what the machine says of itself (`wire.Facts`); returns once it is recorded."""
        ...

    async def beat(self, payload: bytes) -> None:
        """A heartbeat (`wire.Beat`); may be lost."""
        ...

    async def close(self) -> None: ...


class ValueBus(Protocol):
    """Dynamic values, as one machine's agent sees them: those it says, and those its units read.

    Nothing is kept here that its providers do not know better: the store of the bus may be lost.
    """

    def on_connected(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever a connection was made: nothing is listened to on it yet."""
        ...

    async def say(self, export: str, payload: bytes, *, only_if_none: bool, timeout_ms: int) -> int:
        """Say an export of this machine; who listens hears it, stored or not.

        With `only_if_none` it is stored only where nothing is. Returns, in each case, which number
        the bus gave to what it now has of the export: the same as long as nobody said another.
        """
        ...

    async def read(self, export: str, *, timeout_ms: int) -> bytes | None:
        """What was said last of it, as the bus has it; None if it has nothing."""
        ...

    async def listen(
        self, exports: Collection[str], take: Callable[[str, bytes], None]
    ) -> frozenset[str]:
        """From now until the connection is lost, call `take` with each word of just these.

        Returns those that are heard; the others are not let in, now.
        """
        ...


class ControllerBus(Protocol):
    """The bus as the controller sees it."""

    async def hint(self, machine: MachineName) -> None: ...

    async def serve(
        self,
        *,
        on_ask: Callable[[MachineName, bytes], Awaitable[bytes]],
        on_report: Callable[[MachineName, bytes], Awaitable[None]],
        on_facts: Callable[[MachineName, bytes], Awaitable[None]],
        on_beat: Callable[[MachineName, bytes], Awaitable[None]],
    ) -> None:
        """Answer until closed. The machine is known by the subject, never by the payload.

        An answer goes under the asker's own inbox prefix or nowhere: what asks for another place
        is dropped before its function is called. A port error of `on_ask`, `on_report` or `on_facts`
        reaches the machine as a BusUnavailableError; any other error is a bug, and is raised from here.
        """
        ...

    async def close(self) -> None: ...
