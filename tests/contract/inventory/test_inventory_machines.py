"""The lease, offers, reports and the audit log, as the port promises them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from keyplane.model.declaration import OfferNumber
from keyplane.model.names import EntryId, MachineName
from keyplane.ports import ordering
from keyplane.ports.inventory import (
    Build,
    Inventory,
    LeaseLostError,
    Send,
    StaleWriteError,
    StoredOffer,
)
from keyplane.ports.leases import Lease
from tests.contract.inventory.conftest import Open
from tests.contract.inventory.values import ALPHA, digest, record, report, stored


def offer(counter: int, text: str, *, epoch: int = 0, machine: str = "alpha") -> StoredOffer:
    return StoredOffer(
        machine=MachineName(machine),
        offer=OfferNumber(epoch, counter),
        digest=digest(text),
        signed=text.encode() + b"\x00",
    )


WRITES: dict[str, Callable[[Inventory], Awaitable[object]]] = {
    "add_revision": lambda each: each.add_revision({"a": b"1"}, who="", why="", at_ms=1),
    "commit": lambda each: each.commit(
        stored("1", {}), parent=None, rollout=b"", base={}, who="", at_ms=1
    ),
    "save_rollout": lambda each: each.save_rollout(1, state=b"", is_open=True),
    "store_offers": lambda each: each.store_offers([offer(1, "x")], at_ms=1),
    "freeze": lambda each: each.freeze("x"),
    "record_reports": lambda each: record(each, report(), received_ms=1),
    "audit": lambda each: each.audit(who="", what="", detail=None, at_ms=1),
}


async def test_one_holds_the_lease(open_one: Open) -> None:
    """It is taken when free, renewed by its holder, and another's only once it ran out."""
    one, two = await open_one("one"), await open_one("two")
    assert await one.take_lease("one", now_ms=100, until_ms=200)
    assert not await two.take_lease("two", now_ms=199, until_ms=300)
    assert await one.take_lease("one", now_ms=199, until_ms=400)
    assert not await two.take_lease("two", now_ms=399, until_ms=500)
    assert await two.lease() == Lease("one", 400)
    assert await two.take_lease("two", now_ms=400, until_ms=500)
    assert not await one.take_lease("one", now_ms=401, until_ms=600)


async def test_of_those_that_take_a_free_lease_at_once_one_has_it(open_one: Open) -> None:
    """Two controllers that start together do not both lead."""
    all_ = {name: await open_one(name) for name in ("one", "two", "three")}
    taken = await asyncio.gather(
        *(each.take_lease(name, now_ms=1, until_ms=9) for name, each in all_.items())
    )
    assert sum(taken) == 1


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_no_write_passes_without_the_lease(
    open_one: Open, write: Callable[[Inventory], Awaitable[object]]
) -> None:
    """One that lost it, one that never had it and one without a name are refused each write."""
    lost, holder, nameless = await open_one("lost"), await open_one("holder"), await open_one()
    await lost.take_lease("lost", now_ms=1, until_ms=2)
    await holder.take_lease("holder", now_ms=2, until_ms=3)
    for each in (lost, await open_one("never"), nameless):
        with pytest.raises(LeaseLostError, match="holder"):
            await write(each)
    assert await holder.revision() is None
    assert await holder.target() is None
    assert await holder.last_offer(ALPHA) is None
    assert not await holder.reports()
    assert not await holder.audit_log(9)


async def test_a_lease_that_ran_out_is_good_until_another_takes_it(open_one: Open) -> None:
    """Fencing asks who holds it, not what time it is."""
    late, other = await open_one("late"), await open_one("other")
    await late.take_lease("late", now_ms=1, until_ms=2)
    await late.audit(who="late", what="x", detail=None, at_ms=10_000)
    await other.take_lease("other", now_ms=10_001, until_ms=20_000)
    with pytest.raises(LeaseLostError):
        await late.audit(who="late", what="y", detail=None, at_ms=10_002)
    assert [what for _, _, what, _ in await other.audit_log(9)] == ["x"]


async def test_a_tool_writes_only_while_the_lease_is_free(open_one: Open) -> None:
    """Without a holder: before the first controller, and again after a clean stop."""
    tool, controller = await open_one(), await open_one("controller")
    await tool.audit(who="tool", what="before", detail=None, at_ms=1)
    with pytest.raises(LeaseLostError, match="is free"):
        await controller.audit(who="controller", what="unled", detail=None, at_ms=1)
    await controller.take_lease("controller", now_ms=1, until_ms=9)
    with pytest.raises(LeaseLostError):
        await tool.audit(who="tool", what="during", detail=None, at_ms=2)
    await tool.release_lease()  # another's: nothing
    await controller.audit(who="controller", what="led", detail=None, at_ms=3)
    await controller.release_lease()
    assert await tool.lease() is None
    await tool.audit(who="tool", what="after", detail=None, at_ms=4)
    said = [what for _, _, what, _ in await tool.audit_log(9)]
    assert said == ["after", "led", "before"]


async def test_an_inventory_writes_as_who_took_its_lease(open_one: Open) -> None:
    """The name given to take_lease is the holder from then on, whether it was taken or not."""
    one, two = await open_one(), await open_one()
    assert await one.take_lease("one", now_ms=1, until_ms=9)
    await one.audit(who="one", what="x", detail=None, at_ms=1)
    assert not await two.take_lease("two", now_ms=1, until_ms=9)
    with pytest.raises(LeaseLostError, match="two may not write: one holds"):
        await two.audit(who="two", what="x", detail=None, at_ms=1)


async def test_the_last_offer_of_each_machine_is_kept(inventory: Inventory) -> None:
    """Of those that are asked for and were ever offered something, however many they are."""
    assert await inventory.last_offer(ALPHA) is None
    assert await inventory.last_offers([ALPHA]) == {}
    many = [offer(1, "x", machine=f"m{number}") for number in range(1_200)]
    await inventory.store_offers([offer(1, "x"), *many], at_ms=1)
    await inventory.store_offers([offer(2, "y")], at_ms=2)
    assert await inventory.last_offer(ALPHA) == offer(2, "y")
    never = MachineName("never")
    asked = [ALPHA, never, *(each.machine for each in many)]
    found = await inventory.last_offers(asked)
    assert found == {ALPHA: offer(2, "y"), **{each.machine: each for each in many}}


async def test_offers_are_stored_all_or_none(inventory: Inventory) -> None:
    """One number that is not above the last one of its machine keeps the others away too."""
    await inventory.store_offers([offer(5, "five")], at_ms=1)
    beta = offer(1, "b", machine="beta")
    with pytest.raises(StaleWriteError, match="alpha was offered"):
        await inventory.store_offers([beta, offer(5, "other")], at_ms=2)
    assert await inventory.last_offer(beta.machine) is None
    assert beta.machine not in await inventory.sends()
    await inventory.store_offers([beta, offer(6, "six")], at_ms=3)
    assert await inventory.last_offers([ALPHA, beta.machine]) == {
        ALPHA: offer(6, "six"),
        beta.machine: beta,
    }


async def test_offers_never_fall(inventory: Inventory) -> None:
    """A number that is not above the last one is refused; a higher epoch is above all others."""
    await inventory.store_offers([offer(5, "five")], at_ms=1)
    for stale in (offer(5, "five"), offer(5, "other"), offer(4, "four")):
        with pytest.raises(StaleWriteError):
            await inventory.store_offers([stale], at_ms=2)
    assert await inventory.last_offer(ALPHA) == offer(5, "five")
    await inventory.store_offers([offer(1, "restored", epoch=1)], at_ms=3)
    with pytest.raises(StaleWriteError):
        await inventory.store_offers([offer(6, "six")], at_ms=4)


async def test_what_an_offer_carries_is_recorded_with_it(inventory: Inventory) -> None:
    """Of each machine what the last one did; a number that is refused records nothing."""
    assert await inventory.sends() == {}
    web, db = (EntryId(f"{name}:main@alpha") for name in ("web", "db"))
    first = {web: Build("web", "1", digest("a"))}
    second = {web: Build("web", "2", digest("b")), db: Build("pg", "1", digest("c"))}
    await inventory.store_offers([replace(offer(1, "one"), carried=first)], at_ms=10)
    assert await inventory.sends() == {
        ALPHA: Send(offer=OfferNumber(0, 1), at_ms=10, carried=first)
    }
    with pytest.raises(StaleWriteError):
        await inventory.store_offers([replace(offer(1, "other"), carried=second)], at_ms=11)
    await inventory.store_offers([replace(offer(2, "two"), carried=second)], at_ms=12)
    await inventory.store_offers([offer(7, "none", machine="beta")], at_ms=13)
    assert await inventory.sends() == {
        ALPHA: Send(offer=OfferNumber(0, 2), at_ms=12, carried=second),
        MachineName("beta"): Send(offer=OfferNumber(0, 7), at_ms=13, carried={}),
    }


async def test_the_fleet_is_frozen_until_that_is_over(inventory: Inventory) -> None:
    """Also where nothing was ever applied."""
    assert not await inventory.frozen()
    await inventory.freeze("by ada")
    await inventory.freeze("by bob: a release")
    assert await inventory.frozen() == "by bob: a release"
    await inventory.freeze("")
    assert not await inventory.frozen()


async def test_of_offers_stored_at_once_the_number_is_used_once(open_one: Open) -> None:
    """Two that were given the same next number cannot both store it."""
    writers = [await open_one() for _ in range(4)]
    done = await asyncio.gather(
        *(each.store_offers([offer(1, str(n))], at_ms=n) for n, each in enumerate(writers)),
        return_exceptions=True,
    )
    assert done.count(None) == 1
    assert sum(isinstance(each, StaleWriteError) for each in done) == 3


async def test_the_newest_report_of_each_machine_is_kept(inventory: Inventory) -> None:
    """Whole, with when it came; a later one replaces it."""
    assert not await inventory.reports()
    assert await record(inventory, report(sequence=1), received_ms=10)
    assert await record(inventory, report(sequence=3), received_ms=30)
    assert await record(inventory, report(machine="beta"), received_ms=20)
    kept = await inventory.reports()
    assert {name: (each.report, each.received_ms) for name, each in kept.items()} == {
        "alpha": (report(sequence=3), 30),
        "beta": (report(machine="beta"), 20),
    }


async def test_a_report_that_was_overtaken_is_refused(inventory: Inventory) -> None:
    """Within one life the sequence decides; the same report again is no older."""
    assert await record(inventory, report(sequence=2), received_ms=10)
    assert not await record(inventory, report(sequence=1), received_ms=11)
    assert await record(inventory, report(sequence=2), received_ms=12)
    assert (await inventory.reports())[ALPHA].report == report(sequence=2)


async def test_a_new_life_of_an_agent_counts_anew(inventory: Inventory) -> None:
    """A restarted agent begins at a low sequence; what its former life sent late is refused."""
    assert await record(inventory, report(sequence=50, boot="one"), received_ms=10)
    assert await record(inventory, report(sequence=1, boot="two"), received_ms=20)
    assert not await record(inventory, report(sequence=50, boot="one"), received_ms=21)
    assert not await record(inventory, report(sequence=51, boot="one"), received_ms=22)
    assert (await inventory.reports())[ALPHA].report == report(sequence=1, boot="two")


async def test_an_agent_is_not_shut_out_by_a_stray_report_of_its_former_life(
    inventory: Inventory,
) -> None:
    """The first word of a life that is over comes late: the agent that lives is heard again."""
    assert await record(inventory, report(sequence=7, boot="new"), received_ms=10)
    assert await record(inventory, report(sequence=1, boot="old"), received_ms=20)
    late = 20 + ordering.OVERTAKEN_MAX_MS
    assert not await record(inventory, report(sequence=7, boot="new"), received_ms=late)
    assert await record(inventory, report(sequence=8, boot="new"), received_ms=late)
    assert (await inventory.reports())[ALPHA].report == report(sequence=8, boot="new")


async def test_reports_that_are_recorded_together_count_one_after_another(
    inventory: Inventory,
) -> None:
    """Each is told apart; of several of one machine the newest is kept."""
    told = [
        report(sequence=2),
        report(machine="beta", sequence=7),
        report(sequence=1),
        report(sequence=4),
        report(sequence=9, boot="two"),
        report(sequence=5),
    ]
    assert list(await inventory.record_reports(told, received_ms=10)) == [
        True, True, False, True, True, False,
    ]  # fmt: skip
    kept = await inventory.reports()
    assert {name: each.report for name, each in kept.items()} == {
        "alpha": report(sequence=9, boot="two"),
        "beta": report(machine="beta", sequence=7),
    }
    late = 10 + ordering.OVERTAKEN_MAX_MS
    assert await record(inventory, report(sequence=5), received_ms=late)


async def test_reports_that_come_at_once_leave_the_newest(open_one: Open) -> None:
    """In whatever order several writers record them."""
    writers = [await open_one() for _ in range(4)]
    order = [3, 9, 1, 12, 7, 10, 2, 11]
    await asyncio.gather(
        *(
            record(writers[n % 4], report(sequence=sequence), received_ms=n)
            for n, sequence in enumerate(order)
        )
    )
    assert (await writers[0].reports())[ALPHA].report == report(sequence=12)


async def test_the_audit_log_is_read_from_its_end(inventory: Inventory) -> None:
    """The newest first, no more than asked, details as they were."""
    detail = {"entries": ["a", 1, 2.5, None, True], "why": "“ä”"}
    for n in range(5):
        await inventory.audit(who="ada", what=f"set {n}", detail=detail, at_ms=10 - n)
    assert await inventory.audit_log(2) == (
        (6, "ada", "set 4", detail),
        (7, "ada", "set 3", detail),
    )
    assert len(await inventory.audit_log(100)) == 5
