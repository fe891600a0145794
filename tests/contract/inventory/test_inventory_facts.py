"""What machines say of themselves, since when, and by what of it plans are made."""

from keyplane.model.names import MachineName
from keyplane.ports.fact_order import StoredFact
from keyplane.ports.inventory import Inventory

ALPHA, BETA = MachineName("alpha"), MachineName("beta")


async def test_a_machine_that_never_said_any_has_none(inventory: Inventory) -> None:
    """Not even a row."""
    assert await inventory.facts() == {}
    await inventory.record_facts(BETA, {"os.id": "debian"}, received_ms=5)
    assert list(await inventory.facts()) == [BETA]


async def test_a_fact_keeps_its_time_until_it_is_another(inventory: Inventory) -> None:
    """Of values that look alike too: `1` and `true` are two."""
    said = {"cpu.count": 1, "addresses": ["10.0.0.1"], "disk.bytes": 2.5}
    await inventory.record_facts(ALPHA, said, received_ms=100)
    await inventory.record_facts(ALPHA, {**said, "cpu.count": True}, received_ms=200)
    found = (await inventory.facts())[ALPHA]
    assert found.at_ms == 200
    assert {name: (each.value, each.since_ms) for name, each in found.facts.items()} == {
        "addresses": (["10.0.0.1"], 100),
        "cpu.count": (True, 200),
        "disk.bytes": (2.5, 100),
    }
    assert found.facts["cpu.count"].value is True


async def test_plans_go_by_what_was_taken(inventory: Inventory) -> None:
    """What is said since then waits beside it, and nothing of another machine is touched."""
    for machine in (ALPHA, BETA):
        await inventory.record_facts(machine, {"gpu": True, "disk": 4}, received_ms=100)
    assert (await inventory.facts())[ALPHA].planned == {}
    await inventory.take_facts(ALPHA, {"gpu": True})
    found = await inventory.record_facts(ALPHA, {"gpu": False, "disk": 4}, received_ms=200)
    assert found == (await inventory.facts())[ALPHA]
    assert found.planned == {"gpu": True}
    assert found.said == {"disk": 4, "gpu": False}
    assert (await inventory.facts())[BETA].planned == {}


async def test_what_is_taken_is_what_plans_were_made_by(inventory: Inventory) -> None:
    """Also where the machine says something else by now, or nothing: that is planned by later."""
    await inventory.record_facts(ALPHA, {"gpu": True}, received_ms=100)
    await inventory.record_facts(ALPHA, {"gpu": False}, received_ms=200)
    await inventory.take_facts(ALPHA, {"gpu": True, "gone": 1})
    found = (await inventory.facts())[ALPHA]
    assert found.facts == {
        "gone": StoredFact(value=None, since_ms=200, planned=1),
        "gpu": StoredFact(value=False, since_ms=200, planned=True),
    }
    assert found.moved == ("gone", "gpu")


async def test_a_fact_that_is_gone_stands_until_plans_let_go_of_it(inventory: Inventory) -> None:
    """Then nothing is left of it."""
    await inventory.record_facts(ALPHA, {"key": "a"}, received_ms=100)
    await inventory.take_facts(ALPHA, {"key": "a"})
    await inventory.record_facts(ALPHA, {}, received_ms=200)
    found = (await inventory.facts())[ALPHA]
    assert found.facts == {"key": StoredFact(value=None, since_ms=200, planned="a")}
    assert (found.said, found.planned) == ({}, {"key": "a"})
    await inventory.take_facts(ALPHA, {"key": None})
    assert (await inventory.facts())[ALPHA].facts == {}
