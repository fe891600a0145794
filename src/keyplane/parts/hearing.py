"""Which machines were heard, when, and of which life of their agents: kept in memory only.

A controller that was just started knows nothing of it, and hears all that live within a heartbeat.
"""

from collections.abc import Mapping

from keyplane.model.names import MachineName
from keyplane.parts.attention import Attention
from keyplane.parts.status import SILENT_MS
from keyplane.ports.clock import Clock


class Hearing:
    """What was heard since the controller started."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attention = Attention(clock)
        self._heard_ms: dict[MachineName, int] = {}
        self._attended_ms: dict[MachineName, int] = {}
        """The same by the time in which it was listened."""
        self._lives: dict[MachineName, str] = {}
        self.back: set[MachineName] = set()
        """Machines that were heard after a silence, or for the first time; until somebody has
        seen to what they missed."""

    def heard(self, machine: MachineName, life: str | None = None) -> None:
        """It said anything, and maybe which life of its agent does."""
        now = self._attention.now_ms()
        before = self._attended_ms.get(machine)
        if before is None or before < now - SILENT_MS:
            self.back.add(machine)
        self._attended_ms[machine] = now
        self._heard_ms[machine] = self._clock.monotonic_ms()
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
        """Machines that are not silent."""
        since = self._attention.now_ms() - SILENT_MS
        return frozenset(machine for machine, at in self._attended_ms.items() if at >= since)

    @property
    def is_long_enough(self) -> bool:
        """Whether whoever could speak would have done so by now."""
        return self._attention.now_ms() >= SILENT_MS
