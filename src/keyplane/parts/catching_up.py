"""Machines that were off come to what they missed, no more of a role at once than may be away.

How many that is says `rollout.catching_up`. One that has to wait is told of nothing newer than it
has, and asks again with its next heartbeat; so nothing is kept here that has to outlive a life.
"""

from collections.abc import Mapping

from keyplane.model.declaration import Report
from keyplane.model.names import EntryId, MachineName
from keyplane.parts.hearing import Hearing
from keyplane.parts.rolling import Rolling
from keyplane.ports.clock import Clock
from keyplane.ports.inventory import Inventory
from keyplane.rollout import catching_up
from keyplane.rollout.state import State

PATIENCE_MS = 120_000
"""One that has come to nothing for as long as a step is waited for is waited for no more."""


class CatchingUp:
    """Of one controller."""

    def __init__(
        self, *, inventory: Inventory, rolling: Rolling, hearing: Hearing, clock: Clock
    ) -> None:
        self._inventory = inventory
        self._rolling = rolling
        self._hearing = hearing
        self._clock = clock
        self._reports: dict[MachineName, Report] = {}
        """The newest of each machine, as far as this life heard it or has read it."""
        self._is_read = False
        self._busy_ms: dict[MachineName, int] = {}
        """Machines that were let go on, or found at it, since when."""

    def reported(self, report: Report) -> None:
        self._reports[report.machine] = report

    async def has_to_wait(self, machine: MachineName) -> bool:
        """Whether a machine that asks is to go on with what it has, for now."""
        if machine not in self._hearing.back:
            return False
        state, reports = self._rolling.latest, await self._newest()
        report = reports.get(machine)
        if state is None or report is None or not catching_up.outdated(state, report):
            self._hearing.back.discard(machine)
            return False
        if catching_up.has_to_wait(state, report, self._busy(state, reports, machine)):
            return True
        self._busy_ms[machine] = self._clock.monotonic_ms()
        self._hearing.back.discard(machine)
        return False

    def _busy(
        self, state: State, reports: Mapping[MachineName, Report], but: MachineName
    ) -> list[EntryId]:
        now, found = self._clock.monotonic_ms(), list[EntryId]()
        for machine in sorted(state.left & reports.keys() & self._hearing.lately() - {but}):
            report = reports[machine]
            is_let = machine in self._busy_ms and machine not in self._hearing.back
            outdated = catching_up.outdated(state, report) if is_let else ()
            entries = {*outdated, *catching_up.unwell(state, report)}
            if not entries:
                self._busy_ms.pop(machine, None)
            elif now - self._busy_ms.setdefault(machine, now) < PATIENCE_MS:
                found.extend(sorted(entries))
        return found

    async def _newest(self) -> Mapping[MachineName, Report]:
        if not self._is_read:
            for name, stored in (await self._inventory.reports()).items():
                self._reports.setdefault(name, stored.report)
            self._is_read = True
        return self._reports
