"""The newest report of each machine, as it is kept. What follows from one is not decided here."""

from collections.abc import Callable, Mapping, Sequence

from keyplane.model.declaration import Report
from keyplane.model.names import MachineName
from keyplane.parts.mixing import OvertakenError
from keyplane.parts.together import Together
from keyplane.ports.clock import Clock
from keyplane.ports.errors import TransientError
from keyplane.ports.inventory import Inventory, LeaseLostError


class Recording:
    """Of one controller. Reports that come together are one write."""

    def __init__(self, *, inventory: Inventory, clock: Clock) -> None:
        self._inventory = inventory
        self._clock = clock
        self._heard: dict[MachineName, tuple[str, int]] | None = None
        self._together = Together(self._record)
        self.recorded: Callable[[Report], None] = lambda _: None
        """Told of each report that is recorded as the newest of its machine, before all else."""

    async def record(self, report: Report) -> None:
        """Returns once it is recorded. Whoever sent one that was not must not take it as told."""
        if not await self._together(report):
            # A life that lasts says it again, until nothing of another can be on its way.
            raise OvertakenError(f"another report of {report.machine} came before this one")

    async def heard(self, machine: MachineName) -> tuple[str, int]:
        """Of which life the report is that is held of a machine, and its sequence."""
        return (await self._last_heard()).get(machine, ("", 0))

    async def known(self) -> frozenset[MachineName]:
        """Machines that ever reported."""
        return frozenset(await self._last_heard())

    async def _last_heard(self) -> Mapping[MachineName, tuple[str, int]]:
        if self._heard is None:
            stored = await self._inventory.reports()
            self._heard = {
                name: (each.report.boot, each.report.sequence) for name, each in stored.items()
            }
        return self._heard

    async def _record(self, reports: Sequence[Report]) -> list[bool | Exception]:
        try:
            return [*await self._written(reports)]
        except (TransientError, LeaseLostError):
            raise
        except Exception:
            if len(reports) == 1:
                raise
        # One that cannot be kept, whatever it says, keeps none of the others away.
        found: list[bool | Exception] = []
        for each in reports:
            try:
                found += await self._written([each])
            except Exception as error:  # noqa: BLE001  # raised to whoever told it
                found.append(error)
        return found

    async def _written(self, reports: Sequence[Report]) -> Sequence[bool]:
        now_ms = self._clock.now_ms()
        newest = await self._inventory.record_reports(reports, received_ms=now_ms)
        for report, is_newest in zip(reports, newest, strict=True):
            if not is_newest:
                continue
            if self._heard is not None:
                self._heard[report.machine] = (report.boot, report.sequence)
            self.recorded(report)
        return newest
