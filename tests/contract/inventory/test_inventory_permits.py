"""Permits that are out, cordons, and machines that are gone."""

from keyplane.model.declaration import NO_OFFER, Report
from keyplane.model.names import EntryId, MachineName
from keyplane.ports.guarding import Cordon
from keyplane.ports.inventory import Inventory
from tests.contract.inventory.test_inventory_changes import change, commit
from tests.contract.inventory.values import record

ALPHA, BETA = MachineName("alpha"), MachineName("beta")
ON_ALPHA, ON_BETA = EntryId("web:main@alpha"), EntryId("web:main@beta")
CORDON = Cordon(drain=False, who="ada", why="its disk", at_ms=7)


def report(machine: MachineName, *, boot: str = "one", sequence: int = 1) -> Report:
    return Report(machine=machine, offer=NO_OFFER, settled=NO_OFFER, sequence=sequence, boot=boot)


async def test_permits_are_out_until_they_are_over(inventory: Inventory) -> None:
    """One call grants some and ends others; an entry has one at most."""
    assert await inventory.permits() == {}
    granted = {ON_ALPHA: "one/1", ON_BETA: "two/1"}
    await inventory.change_permits(granted=granted, over=[], at_ms=1)
    assert await inventory.permits() == granted
    await inventory.change_permits(granted={ON_BETA: "two/2"}, over=[ON_ALPHA], at_ms=2)
    assert await inventory.permits() == {ON_BETA: "two/2"}
    await inventory.change_permits(granted={ON_BETA: "two/3"}, over=[ON_BETA, ON_ALPHA], at_ms=3)
    assert await inventory.permits() == {ON_BETA: "two/3"}


async def test_a_cordon_stands_until_it_is_taken_away(inventory: Inventory) -> None:
    """The last one counts, with who put it up and why."""
    await inventory.cordon(ALPHA, CORDON)
    drained = Cordon(drain=True, who="bob", why="", at_ms=9)
    await inventory.cordon(BETA, CORDON)
    await inventory.cordon(ALPHA, drained)
    assert await inventory.cordons() == {ALPHA: drained, BETA: CORDON}
    await inventory.cordon(BETA, None)
    await inventory.cordon(BETA, None)
    assert await inventory.cordons() == {ALPHA: drained}


async def test_a_machine_that_is_gone_is_forgotten(inventory: Inventory) -> None:
    """With the change that takes it out; nothing of the others, and if it speaks it is a new one."""
    for machine in (ALPHA, BETA):
        assert await record(inventory, report(machine, sequence=9), received_ms=1)
        await inventory.cordon(machine, CORDON)
    granted = {ON_ALPHA: "one/1", ON_BETA: "two/1"}
    await inventory.change_permits(granted=granted, over=[], at_ms=1)
    await commit(inventory, "one", None, change(b"1", None))
    assert set(await inventory.reports()) == {ALPHA, BETA}
    await commit(inventory, "two", "one", change(b"2", 1, forgets=ALPHA), revision=2)
    assert list(await inventory.reports()) == [BETA]
    assert await inventory.cordons() == {BETA: CORDON}
    assert await inventory.permits() == {ON_BETA: "two/1"}
    assert await record(inventory, report(ALPHA, sequence=2), received_ms=2)
