"""Which machines were heard, when, and of which life of their agents: kept in memory only.

A controller that was just started knows nothing of it, and hears all that live within a heartbeat.
"""

from collections.abc import Mapping

from keyplane.model.names import MachineName
from keyplane.parts.status import SILENT_MS
from keyplane.ports.clock import Clock


class Hearing:
    """What was heard since the controller started."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms = clock.monotonic_ms()
        self._heard_ms: dict[MachineName, int] = {}
        self._lives: dict[MachineName, str] = {}
        self.back: set[MachineName] = set()
        """Machines that were heard after a silence, or for the first time; until somebody has
        seen to what they missed."""

    def heard(self, machine: MachineName, life: str | None = None) -> None:
        """It said anything, and maybe which life of its agent does."""
        now = self._clock.monotonic_ms()
        before = self._heard_ms.get(machine)
        if before is None or before < now - SILENT_MS:
            self.back.add(machine)
        self._heard_ms[machine] = now
        if life is not None:
            self._lives[machine] = life

    def reported(self, machine: MachineName, life: str) -> None:
        """It told what it found. A late report of a former life is none of the one that spoke."""
        self._lives.setdefault(machine, life)

    @property
    def lives(self) -> Mapping[MachineName, str]:
        """Which life of its agent each has, where it said so."""
        return self._lives

    def ms_ago(self) -> dict[MachineName, int]:
        now = self._clock.monotonic_ms()
        return {machine: now - at for machine, at in self._heard_ms.items()}

    def lately(self) -> frozenset[MachineName]:
        since = self._clock.monotonic_ms() - SILENT_MS
        return frozenset(machine for machine, at in self._heard_ms.items() if at >= since)

    @property
    def is_long_enough(self) -> bool:
        """Whether whoever could speak would have done so by now."""
        return self._clock.monotonic_ms() >= self._since_ms + SILENT_MS
