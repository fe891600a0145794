"""Reports are recorded together, and each is answered for itself."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from keyplane.model.declaration import NO_OFFER, Report
from keyplane.model.names import MachineName
from keyplane.parts.mixing import OvertakenError
from keyplane.parts.recording import Recording
from keyplane.ports.inventory import InventoryUnavailableError, InventoryUnusableError
from keyplane.testing.clock import ManualClock
from keyplane.testing.inventory import MemoryInventory


def report(machine: str, sequence: int = 1) -> Report:
    return Report(
        machine=MachineName(machine),
        offer=NO_OFFER,
        settled=NO_OFFER,
        sequence=sequence,
        boot="one",
    )


class Writes(MemoryInventory):
    """Remembers which machines' reports were one write; refuses any with `bad` among them."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[str]] = []

    async def record_reports(self, reports: Sequence[Report], **keys: Any) -> Sequence[bool]:
        self.writes.append([each.machine for each in reports])
        await asyncio.sleep(0)
        if any(each.machine == "bad" for each in reports):
            raise InventoryUnusableError("text that is no Unicode cannot be kept")
        return await super().record_reports(reports, **keys)


async def all_of(recording: Recording, *told: Report) -> list[BaseException | None]:
    calls = [recording.record(each) for each in told]
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_reports_that_come_together_are_one_write() -> None:
    """Each is held from then on, and told of, in the order in which they came."""
    inventory = Writes()
    recording = Recording(inventory=inventory, clock=ManualClock())
    heard: list[str] = []
    recording.recorded = lambda each: heard.append(each.machine)
    assert await recording.known() == frozenset()
    names = ["a", "b", "c", "d"]
    assert await all_of(recording, *map(report, names)) == [None] * 4
    assert inventory.writes == [["a"], ["b", "c", "d"]]
    assert heard == names
    assert await recording.known() == frozenset(names)
    assert await recording.heard(MachineName("c")) == ("one", 1)
    assert list(await inventory.reports()) == names


async def test_one_that_came_too_late_is_refused_alone() -> None:
    recording = Recording(inventory=Writes(), clock=ManualClock())
    found = await all_of(recording, report("a", 5), report("b"), report("a", 4), report("c"))
    assert [type(each) for each in found] == [type(None), type(None), OvertakenError, type(None)]
    assert await recording.heard(MachineName("a")) == ("one", 5)


async def test_one_that_cannot_be_kept_keeps_no_other_away() -> None:
    """A machine that says what no database takes is refused, and it alone."""
    inventory = Writes()
    recording = Recording(inventory=inventory, clock=ManualClock())
    found = await all_of(recording, report("a"), report("b"), report("bad"), report("c"))
    assert [type(each) for each in found] == [
        type(None),
        type(None),
        InventoryUnusableError,
        type(None),
    ]
    assert list(await inventory.reports()) == ["a", "b", "c"]


async def test_none_is_written_one_by_one_while_the_inventory_is_away() -> None:
    """Each would wait as long as all of them: whoever told it says it again."""
    inventory = Writes()
    recording = Recording(inventory=inventory, clock=ManualClock())
    inventory.break_down("locked")
    found = await all_of(recording, report("a"), report("b"), report("c"))
    assert [type(each) for each in found] == [InventoryUnavailableError] * 3
    assert inventory.writes == [["a"], ["b", "c"]]
    inventory.break_down(None)
    await recording.record(report("a", 2))
    with pytest.raises(OvertakenError):
        await recording.record(report("a", 1))
