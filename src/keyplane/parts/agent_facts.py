"""Tells the controller what the machine is: at the start, whenever it is another, and when asked.

Whole each time, so that one that was lost or came late costs nothing: each heartbeat carries the
digest of what is true now.
"""

import asyncio
import contextlib
from typing import Any

from keyplane import wire
from keyplane.journal import Journal
from keyplane.model import facts as model
from keyplane.ports.bus import AgentBus
from keyplane.ports.errors import PortError
from keyplane.ports.facts import MachineFacts

Json = Any

log = Journal(__name__.removeprefix("keyplane."))

LOOK_S = 2.0
"""A service that was just started says its fact within it; a look that finds
nothing new costs next to nothing."""
AGAIN_S = 5.0
"""What could not be told is told again so often: a heartbeat would ask for it too."""
TIMEOUT_MS = 10_000


class Telling:
    """Of one life of an agent."""

    def __init__(self, *, bus: AgentBus, facts: MachineFacts, boot: str) -> None:
        self._bus = bus
        self._facts = facts
        self._boot = boot
        self._gathered: object = None
        self._now: dict[str, Json] = {}
        self._digest: str | None = None
        """Of what was gathered last; None before the first look."""
        self._told: str | None = None
        """Of what the controller has, as far as is known."""
        self._due = asyncio.Event()
        self._is_cut = False

    @property
    def digest(self) -> str | None:
        return self._digest

    def heard(self, digest: str | None) -> None:
        """The controller says what it has; None where it does not say."""
        if digest is not None and self._digest is not None:
            self._told = digest
            if digest != self._digest:
                self._due.set()

    async def run(self) -> None:
        while True:
            await self._look()
            wait_s = LOOK_S
            if self._digest != self._told:
                wait_s = LOOK_S if await self._tell() else AGAIN_S
            self._due.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._due.wait()

    async def _look(self) -> None:
        gathered = await self._facts.gather()
        if gathered is self._gathered:
            return
        self._gathered = gathered
        now = {
            name: value
            for name, value in gathered.items()
            if value is not None and wire.fact_fault(name, value) is None
        }
        digest = model.digest(now)
        if digest != self._digest:
            self._now, self._digest = now, digest

    async def _tell(self) -> bool:
        digest = self._digest
        payload = wire.encode_facts(wire.Facts(boot=self._boot, facts=self._now))
        try:
            await self._bus.tell_facts(payload, timeout_ms=TIMEOUT_MS)
        except PortError as error:
            if not self._is_cut:
                self._is_cut = True
                log.warning("facts cannot be told", cause=str(error))
            return False
        self._is_cut = False
        self._told = digest
        return True
