"""What people said of entries, and what happened on machines."""

from dataclasses import replace
from typing import Any

from keyplane.model.declaration import NO_OFFER, Report, Word
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.occurrence import Act, Cause, Occurrence
from keyplane.model.volumes import Backup, OrderChange, OrderKind, SavedVolume, VolumeOrder
from keyplane.ports import ordering
from keyplane.ports.inventory import Inventory
from tests.contract.inventory.values import record

ALPHA, BETA = MachineName("alpha"), MachineName("beta")
WEB, DB = EntryId("web:main@alpha"), EntryId("db:main@alpha")


def occurrence(number: int, entry: EntryId = WEB) -> Occurrence:
    return Occurrence(
        number=number,
        at_ms=1_000 + number,
        entry=entry,
        unit=UnitName("server"),
        act=Act.RESTART,
        cause=Cause.CRASH,
        detail=f"pid {number}",
    )


def report(
    *numbers: int, sequence: int = 1, history: str = "a", entry: EntryId = WEB, boot: str = "one"
) -> Report:
    return Report(
        machine=ALPHA,
        offer=NO_OFFER,
        settled=NO_OFFER,
        sequence=sequence,
        boot=boot,
        history=history,
        occurrences=tuple(occurrence(number, entry) for number in numbers),
    )


async def told(inventory: Inventory, entry: EntryId | None = None) -> list[tuple[str, int]]:
    found = await inventory.occurrences(ALPHA, entry, after=0, since_ms=0, limit=1_000)
    return [(each.occurrence.act.value, each.occurrence.number) for each in found]


async def test_the_last_word_on_an_entry_stands(inventory: Inventory) -> None:
    """Numbers rise over all entries, also where the clock does not."""
    first = await inventory.say(WEB, stop=True, who="ada", at_ms=500)
    second = await inventory.say(DB, stop=True, who="ada", at_ms=400)
    third = await inventory.say(WEB, stop=False, who="bob", at_ms=300)
    assert first.number < second.number < third.number
    assert third == Word(number=third.number, stop=False, who="bob", at_ms=300)
    assert await inventory.words() == {DB: second, WEB: third}
    await inventory.forget_words([WEB])
    assert await inventory.words() == {DB: second}


async def test_what_a_report_tells_is_taken_in_once(inventory: Inventory) -> None:
    """The same again, in part or whole, adds nothing; nor is it kept with the report."""
    assert await record(inventory, report(1, 2), received_ms=1)
    assert await record(inventory, report(1, 2), received_ms=2)
    assert await record(inventory, report(2, 3, sequence=2), received_ms=3)
    assert await told(inventory) == [("restart", 1), ("restart", 2), ("restart", 3)]
    found = await inventory.occurrences(ALPHA, WEB, after=0, since_ms=0, limit=1)
    assert found[0].occurrence == occurrence(3)
    assert (await inventory.reports())[ALPHA].report.occurrences == ()


async def test_what_is_missing_is_said_to_whoever_asks_for_any_entry(
    inventory: Inventory,
) -> None:
    await record(inventory, report(1), received_ms=1)
    await record(inventory, report(5, sequence=2, entry=DB), received_ms=2)
    assert await told(inventory, WEB) == [("restart", 1), ("gap", 5)]
    assert await told(inventory, DB) == [("gap", 5), ("restart", 5)]


async def test_a_history_that_begins_anew_is_said_and_taken_in(inventory: Inventory) -> None:
    await record(inventory, report(1, 2), received_ms=1)
    await record(inventory, report(1, history="b", sequence=2), received_ms=2)
    await record(inventory, report(3, sequence=3), received_ms=3)
    acts = ["restart", "restart", "gap", "restart", "restart"]
    assert [act for act, _ in await told(inventory)] == acts


async def test_a_late_report_still_tells_what_happened(inventory: Inventory) -> None:
    await record(inventory, report(sequence=5), received_ms=1)
    assert not await record(inventory, report(1, sequence=4), received_ms=2)
    assert await told(inventory) == [("restart", 1)]


async def test_each_entry_keeps_its_last(inventory: Inventory) -> None:
    """One that ends over and over pushes out none of another."""
    await record(inventory, report(1, entry=DB), received_ms=1)
    many = range(2, ordering.OCCURRENCES_KEPT + 12)
    await record(inventory, report(*many, sequence=2), received_ms=2)
    found = await told(inventory)
    assert found[0] == ("restart", 1)
    assert len(found) == ordering.OCCURRENCES_KEPT + 1
    assert found[-1] == ("restart", many[-1])


async def test_occurrences_are_found_by_time_and_after_one_that_is_known(
    inventory: Inventory,
) -> None:
    await record(inventory, report(1, 2, 3), received_ms=1)
    found = await inventory.occurrences(ALPHA, None, after=0, since_ms=1_002, limit=10)
    assert [each.occurrence.number for each in found] == [2, 3]
    rest = await inventory.occurrences(ALPHA, None, after=found[0].id, since_ms=0, limit=10)
    assert [each.occurrence.number for each in rest] == [3]
    assert await inventory.occurrences(BETA, None, after=0, since_ms=0, limit=10) == ()


async def test_what_is_said_on_a_machine_is_audited_once(inventory: Inventory) -> None:
    """What was said to the controller was audited when it was said."""
    here = replace(occurrence(1), unit=UnitName(""), act=Act.STOP, cause=Cause.PERSON, who="ada")
    elsewhere = replace(here, number=2, who="")
    said = replace(report(), occurrences=(here, elsewhere))
    await record(inventory, said, received_ms=1)
    await record(inventory, said, received_ms=2)
    assert await inventory.audit_log(10) == (
        (here.at_ms, "ada", "stop", {"entry": WEB, "machine": "alpha"}),
    )


def order(number: int, kind: OrderKind = OrderKind.TAKE, **given: Any) -> VolumeOrder:
    return VolumeOrder(entry=DB, kind=kind, number=number, who="ada", at_ms=5, **given)


async def test_orders_on_volumes_stand_until_they_are_dropped(inventory: Inventory) -> None:
    """One of a kind on an entry; what is filled or dropped is the one of that number alone."""
    volumes = {"data": "/var/lib/db"}
    take, save = order(3, volumes=volumes, other=WEB), order(4, OrderKind.SAVE)
    await inventory.change_volume_orders(OrderChange(put=(take, save)))
    assert await inventory.volume_orders() == (save, take)
    filled = replace(take, contents={"/var/lib/db": Digest("sha256-1"), "/other": None})
    stale = replace(filled, number=2)
    await inventory.change_volume_orders(
        OrderChange(fill=(stale,), drop=(replace(save, number=9),))
    )
    assert await inventory.volume_orders() == (save, take)
    await inventory.change_volume_orders(OrderChange(fill=(filled,), drop=(save,)))
    assert await inventory.volume_orders() == (filled,)
    newer = order(7, keeps=True)
    await inventory.change_volume_orders(OrderChange(put=(newer,)))
    assert await inventory.volume_orders() == (newer,)


async def test_a_backup_is_kept_under_its_number(inventory: Inventory) -> None:
    """The newest first; kept again it is the same one, and it goes when it is forgotten."""
    saved = SavedVolume(name="data", path="/var/lib/db", digest=Digest("sha256-1"), size=7)
    first = Backup(number=5, entry=DB, at_ms=1, who="ada", why="backup", volumes=(saved, saved))
    second = replace(first, number=6)
    await inventory.keep_backup(second)
    await inventory.keep_backup(first)
    await inventory.keep_backup(replace(first, who="bob"))
    assert await inventory.backups() == (second, first)
    assert first.size == 14
    assert await inventory.forget_backup(5)
    assert not await inventory.forget_backup(5)
    assert await inventory.backups() == (second,)


async def test_what_reports_tell_together_is_taken_in_as_one_after_another(
    inventory: Inventory,
) -> None:
    """Of each machine once, with its gaps, whatever else is told in the same write."""
    beta = replace(report(1, 2), machine=BETA)
    kept = ordering.OCCURRENCES_KEPT
    many = report(*range(5, kept + 5), sequence=3)
    told = [report(1, 2), beta, report(2, 3, sequence=2), many, beta]
    await inventory.record_reports(told, received_ms=1)
    here = await inventory.occurrences(ALPHA, None, after=0, since_ms=0, limit=kept * 2)
    there = await inventory.occurrences(BETA, None, after=0, since_ms=0, limit=9)
    assert [each.occurrence.number for each in there] == [1, 2]
    acts = [(each.occurrence.number, each.occurrence.act) for each in here]
    assert acts[0] == (5, Act.GAP)
    of_entry = [number for number, act in acts if act is not Act.GAP]
    assert of_entry == list(range(5, kept + 5))
    await record(inventory, report(kept + 5, sequence=4), received_ms=2)
    after = await inventory.occurrences(ALPHA, None, after=here[-1].id, since_ms=0, limit=9)
    assert [each.occurrence.number for each in after] == [kept + 5]
