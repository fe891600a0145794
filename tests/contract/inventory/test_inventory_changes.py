"""Changes: a revision, its target and its row of the audit log, all or nothing."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from keyplane.model.names import MachineName
from keyplane.ports import ordering
from keyplane.ports.inventory import (
    Change,
    Inventory,
    KeptGeneration,
    RevisionMovedError,
    StoredRollout,
    TargetMovedError,
)
from tests.contract.inventory.conftest import Open
from tests.contract.inventory.values import digest, stored


def change(text: bytes, parent: int | None, **given: object) -> Change:
    made = Change(files={"fleet.toml": text}, parent=parent, verb="apply", why="", moved=1)
    return replace(made, **given)  # type: ignore[arg-type]


async def commit(
    inventory: Inventory,
    name: str,
    parent: str | None,
    made: Change | None,
    *,
    revision: int = 1,
    values: Mapping[str, str] | None = None,
) -> StoredRollout:
    return await inventory.commit(
        replace(stored(name, values or {"a": name}), revision=revision),
        parent=None if parent is None else digest(parent),
        rollout=b"",
        base={},
        who="ada",
        at_ms=len(name) * 10,
        change=made,
    )


async def test_a_change_is_a_revision_a_target_and_a_row_of_the_audit_log(
    inventory: Inventory,
) -> None:
    """Each names the others."""
    made = change(b"1", None, verb="set", why="more", moved=3, detail={"slots": 64})
    await commit(inventory, "one", None, made)
    revision = await inventory.revision()
    assert revision is not None
    assert (revision.number, revision.who, revision.why) == (1, "ada", "more")
    assert (revision.verb, revision.parent) == ("set", None)
    assert dict(revision.files) == {"fleet.toml": b"1"}
    target = await inventory.target()
    assert target is not None
    assert target.revision == 1
    detail = {
        "slots": 64, "why": "more", "revision": 1, "generation": digest("one"), "rollout": 1,
    }  # fmt: skip
    assert await inventory.audit_log(9) == ((30, "ada", "set", detail),)


async def test_history_tells_of_each_revision_and_what_it_moved(inventory: Inventory) -> None:
    """The newest first, no more than asked."""
    assert await inventory.history(5) == ()
    await commit(inventory, "one", None, change(b"1", None, why="begin", moved=2))
    await commit(inventory, "three", "one", change(b"2", 1, verb="set", moved=7), revision=2)
    last, first = await inventory.history(5)
    assert (last.number, last.verb, last.why, last.parent) == (2, "set", "", 1)
    assert (last.generation, last.moved, last.who, last.at_ms) == (digest("three"), 7, "ada", 50)
    assert (first.number, first.why, first.generation, first.moved) == (
        1,
        "begin",
        digest("one"),
        2,
    )
    assert await inventory.history(1) == (last,)


async def test_the_same_text_again_is_that_revision_and_keeps_what_it_moved(
    inventory: Inventory,
) -> None:
    """Until another generation is planned from it; the audit log has each time."""
    await commit(inventory, "one", None, change(b"1", None, moved=2))
    await commit(inventory, "one", "one", change(b"1", 1, verb="up", moved=0))
    (only,) = await inventory.history(5)
    assert (only.number, only.verb, only.generation, only.moved) == (1, "apply", digest("one"), 2)
    await commit(inventory, "two", "one", change(b"1", 1, moved=5))
    (only,) = await inventory.history(5)
    assert (only.generation, only.moved) == (digest("two"), 5)
    assert [what for _, _, what, _ in await inventory.audit_log(9)] == ["apply", "up", "apply"]


async def test_a_revision_that_no_target_was_made_of_has_none(inventory: Inventory) -> None:
    await inventory.add_revision({"a": b"1"}, who="bob", why="", at_ms=1)
    (only,) = await inventory.history(1)
    assert (only.generation, only.moved, only.verb) == (None, None, "")


@pytest.mark.parametrize("parent", [None, 1, 3])
async def test_a_change_from_another_revision_than_the_newest_changes_nothing(
    inventory: Inventory, parent: int | None
) -> None:
    await commit(inventory, "one", None, change(b"1", None))
    await commit(inventory, "two", "one", change(b"2", 1), revision=2)
    with pytest.raises(RevisionMovedError):
        await commit(inventory, "late", "two", change(b"3", parent), revision=3)
    revision = await inventory.revision()
    assert revision is not None
    assert revision.number == 2
    target = await inventory.target()
    assert target is not None
    assert target.plan.generation == digest("two")
    assert len(await inventory.audit_log(9)) == 2
    rollout = await inventory.rollout()
    assert rollout is not None
    assert (rollout.number, rollout.open) == (2, True)


async def test_a_change_whose_target_moved_leaves_no_revision(inventory: Inventory) -> None:
    await commit(inventory, "one", None, change(b"1", None))
    with pytest.raises(TargetMovedError):
        await commit(inventory, "late", None, change(b"2", 1), revision=2)
    assert len(await inventory.history(9)) == len(await inventory.audit_log(9)) == 1


async def test_of_changes_at_once_one_wins_and_the_others_leave_nothing(open_one: Open) -> None:
    """Of five editors that began from one revision."""
    writers = [await open_one() for _ in range(5)]
    await commit(writers[0], "base", None, change(b"0", None))
    made = await asyncio.gather(
        *(
            commit(each, f"g{n}", "base", change(b"%d" % (n + 1), 1), revision=2)
            for n, each in enumerate(writers)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(each, StoredRollout) for each in made) == 1
    assert len(await writers[0].history(9)) == len(await writers[0].audit_log(9)) == 2


async def test_a_commit_without_a_change_leaves_the_text(inventory: Inventory) -> None:
    """As of a plan that a fact made anew."""
    await commit(inventory, "one", None, change(b"1", None))
    await commit(inventory, "two", "one", None)
    assert len(await inventory.history(9)) == len(await inventory.audit_log(9)) == 1


async def test_generations_are_told_from_the_target_back(inventory: Inventory) -> None:
    """Each once, as it was committed last."""
    assert await inventory.generations() == ()
    await commit(inventory, "one", None, change(b"1", None))
    await commit(inventory, "three", "one", change(b"2", 1), revision=2)
    await commit(inventory, "one", "three", change(b"1", 2), revision=3)
    assert await inventory.generations() == (
        KeptGeneration(generation=digest("one"), revision=3, who="ada", at_ms=30),
        KeptGeneration(generation=digest("three"), revision=2, who="ada", at_ms=50),
    )


async def test_as_many_generations_are_told_as_can_be_read(inventory: Inventory) -> None:
    parent = None
    for n in range(ordering.GENERATIONS_KEPT + 3):
        await commit(inventory, str(n), parent, None)
        parent = str(n)
    told = [each.generation for each in await inventory.generations()]
    assert told == [digest(str(n)) for n in range(22, 2, -1)]


async def test_a_target_and_the_facts_that_it_was_planned_by_are_written_at_once(
    inventory: Inventory,
) -> None:
    """Whoever dies after it leaves no target that was planned by what nobody knows to be taken."""
    alpha = MachineName("alpha")
    await inventory.record_facts(alpha, {"gpu": True}, received_ms=1)
    await commit(inventory, "one", None, change(b"1", None, facts={alpha: {"gpu": True}}))
    assert (await inventory.facts())[alpha].planned == {"gpu": True}
    late = change(b"2", None, facts={alpha: {"gpu": False}})
    with pytest.raises(RevisionMovedError):
        await commit(inventory, "two", "one", late, revision=2)
    assert (await inventory.facts())[alpha].planned == {"gpu": True}
