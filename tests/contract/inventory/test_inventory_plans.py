"""Revisions, plans, the target and rollouts, as the port promises them."""

import asyncio
from dataclasses import replace

import pytest

from keyplane.ports.inventory import (
    Inventory,
    StaleWriteError,
    StoredPlan,
    StoredRollout,
    TargetMovedError,
)
from tests.contract.inventory.conftest import Open
from tests.contract.inventory.values import digest, planned, stored


async def commit(
    inventory: Inventory, plan: StoredPlan, parent: str | None = None, **given: object
) -> StoredRollout:
    return await inventory.commit(
        plan,
        parent=None if parent is None else digest(parent),
        rollout=b"begun",
        base=given.get("base", {}),  # type: ignore[arg-type]
        who="ada",
        at_ms=5,
        request=str(given.get("request", "")),
    )


async def test_revisions_count_up_and_keep_the_whole_text(inventory: Inventory) -> None:
    """A revision is read back as it was given, by number or as the latest."""
    assert await inventory.revision() is None
    files = {"fleet.toml": b"a = 1\r\n\x00\xff", "modules/ä.star": b""}
    first = await inventory.add_revision(files, who="ada", why="begin", at_ms=2**41)
    second = await inventory.add_revision({"fleet.toml": b"2"}, who="bob", why="", at_ms=3)
    assert (first.number, second.number) == (1, 2)
    assert await inventory.revision() == second
    assert await inventory.revision(1) == first
    assert dict(first.files) == files
    assert first.at_ms == 2**41
    assert await inventory.revision(3) is None
    assert await inventory.revision(0) is None


async def test_the_same_text_is_the_same_revision_only_while_it_is_the_latest(
    inventory: Inventory,
) -> None:
    """Saying the latest text again adds nothing; going back to an older one does."""
    first = await inventory.add_revision({"a": b"1"}, who="ada", why="x", at_ms=1)
    assert await inventory.add_revision({"a": b"1"}, who="bob", why="y", at_ms=2) == first
    await inventory.add_revision({"a": b"2"}, who="ada", why="x", at_ms=3)
    again = await inventory.add_revision({"a": b"1"}, who="ada", why="back", at_ms=4)
    assert (again.number, again.digest) == (3, first.digest)
    empty = await inventory.add_revision({}, who="ada", why="none", at_ms=5)
    assert await inventory.revision() == empty


async def test_revisions_added_at_once_all_count(open_one: Open) -> None:
    """No update is lost among several writers."""
    writers = [await open_one() for _ in range(4)]
    made = await asyncio.gather(
        *(
            writers[n % 4].add_revision({"a": b"%d" % n}, who="ada", why="", at_ms=n)
            for n in range(24)
        )
    )
    assert sorted(each.number for each in made) == list(range(1, 25))


async def test_a_committed_plan_is_the_target_and_comes_back_whole(inventory: Inventory) -> None:
    """Every field of a plan, its grants and its contents survive."""
    assert await inventory.target() is None
    assert await inventory.rollout() is None
    plan = stored("one", {"a": "1", "b": "2"}, contents={digest("a"): b"\x00", digest("e"): b""})
    made = await commit(inventory, plan)
    assert await inventory.target() == plan
    assert await inventory.plan(digest("one")) == plan
    assert await inventory.plan(digest("two")) is None
    assert await inventory.rollout() == made
    assert (made.number, made.generation, made.open, made.state, made.who, made.created_ms) == (
        1, digest("one"), True, b"begun", "ada", 5,
    )  # fmt: skip


async def test_each_kept_plan_reads_as_it_was(inventory: Inventory) -> None:
    """Entries, contents and sections that came, changed, went and came back."""
    plans = [
        stored("1", {"a": "1", "b": "1"}),
        stored("2", {"a": "2", "b": "1", "c": "1"}, contents={digest("z"): b"z"}),
        stored("3", {"c": "1"}, contents={}),
        stored("4", {"a": "1", "c": "3"}),
    ]
    plans[2] = replace(plans[2], revision=7)
    parent = None
    for n, plan in enumerate(plans, start=1):
        await commit(inventory, plan, parent)
        parent = str(n)
    for n, plan in enumerate(plans, start=1):
        assert await inventory.plan(digest(str(n))) == plan
    assert await inventory.target() == plans[3]


async def test_only_a_plan_made_from_the_target_becomes_the_target(inventory: Inventory) -> None:
    """The wrong parent, none where there is one, and one where there is none are all refused."""
    with pytest.raises(TargetMovedError):
        await commit(inventory, stored("1", {"a": "1"}), "0")
    first = stored("1", {"a": "1"})
    await commit(inventory, first)
    for parent in (None, "0", "2"):
        with pytest.raises(TargetMovedError):
            await commit(inventory, stored("2", {"a": "2"}), parent)
    assert await inventory.target() == first
    assert await inventory.plan(digest("2")) is None
    rollout = await inventory.rollout()
    assert rollout is not None
    assert (rollout.number, rollout.open) == (1, True)


async def test_of_commits_at_once_one_wins(open_one: Open) -> None:
    """Several controllers that planned from the same target: one moves it, the others hear so."""
    writers = [await open_one() for _ in range(5)]
    await commit(writers[0], stored("base", {"a": "0"}))
    plans = [stored(str(n), {"a": str(n), "b": "1"}) for n in range(5)]
    made = await asyncio.gather(
        *(commit(each, plan, "base") for each, plan in zip(writers, plans, strict=True)),
        return_exceptions=True,
    )
    won = [n for n, each in enumerate(made) if isinstance(each, StoredRollout)]
    assert len(won) == 1
    assert sum(isinstance(each, TargetMovedError) for each in made) == 4
    assert await writers[won[0] - 1].target() == plans[won[0]]
    last = await writers[0].rollout()
    assert last == made[won[0]]


async def test_twenty_generations_are_kept(inventory: Inventory) -> None:
    """The newest twenty can be read, one committed again counts as new, older ones are gone."""
    parent = None
    for n in range(23):
        await commit(inventory, stored(str(n), {"a": str(n)}), parent)
        parent = str(n)
        if n == 3:
            await commit(inventory, stored("0", {"a": "0"}), "3")
            parent = "0"
    there = [n for n in range(23) if await inventory.plan(digest(str(n))) is not None]
    assert there == [0, *range(4, 23)]
    assert await inventory.plan(digest("0")) == stored("0", {"a": "0"})


async def test_generations_that_alternate_push_no_other_out(inventory: Inventory) -> None:
    """Going to and fro between two generations keeps a third, however often."""
    await commit(inventory, stored("old", {"a": "old"}))
    parent = "old"
    for n in range(50):
        name = f"g{n % 2}"
        await commit(inventory, stored(name, {"a": name}), parent)
        parent = name
    assert await inventory.plan(digest("old")) == stored("old", {"a": "old"})
    assert await inventory.target() == stored("g1", {"a": "g1"})


async def test_a_new_rollout_closes_the_open_one(inventory: Inventory) -> None:
    """One at most is open, and the earlier ones are kept to look at, without their base."""
    base = stored("0", {"a": "0"}).entries
    first = await commit(inventory, stored("1", {"a": "1"}), base=base)
    second = await commit(inventory, stored("2", {"a": "2"}), "1", base=base)
    assert await inventory.rollout(1) == replace(first, open=False, base={})
    assert await inventory.rollout() == await inventory.rollout(2) == second
    assert second.number == 2
    assert await inventory.rollout(3) is None


async def test_a_rollout_keeps_by_which_request_it_began(inventory: Inventory) -> None:
    made = await commit(inventory, stored("1", {"a": "1"}), request="it")
    assert made.request == "it"
    assert await inventory.rollout() == made
    await commit(inventory, stored("2", {"a": "2"}), "1")
    latest = await inventory.rollout()
    assert latest is not None
    assert latest.request == ""


async def test_a_rollout_keeps_the_base_that_it_began_with(inventory: Inventory) -> None:
    """A base may be the parent, a mixture of it and older entries, or unlike it altogether."""
    parent = stored("1", {"a": "1", "b": "1", "c": "1"})
    await commit(inventory, parent)
    later = stored("2", {"a": "2", "b": "1", "d": "1"})
    as_parent = await commit(inventory, later, "1", base=parent.entries)
    read = await inventory.rollout()
    assert read == as_parent
    assert read.base == parent.entries
    mixture = dict(parent.entries)
    del mixture[next(iter(mixture))]
    mixture[next(iter(mixture))] = planned("older")
    mixture[next(iter(later.entries))] = planned("held")
    for n, base in enumerate((mixture, {}, later.entries), start=3):
        await commit(inventory, stored(str(n), {"a": str(n)}), str(n - 1), base=base)
        read = await inventory.rollout()
        assert read is not None
        assert read.base == base


async def test_a_rollouts_state_is_saved(inventory: Inventory) -> None:
    """State and openness are as last saved; the latest may be opened again."""
    made = await commit(inventory, stored("1", {"a": "1"}))
    await inventory.save_rollout(1, state=b"half", is_open=True)
    assert await inventory.rollout() == replace(made, state=b"half")
    await inventory.save_rollout(1, state=b"done", is_open=False)
    assert await inventory.rollout(1) == replace(made, state=b"done", open=False)
    await inventory.save_rollout(1, state=b"retried", is_open=True)
    assert await inventory.rollout() == replace(made, state=b"retried")


async def test_no_rollout_but_the_latest_is_opened(inventory: Inventory) -> None:
    """A superseded one may still say how it ended; one that never was cannot be saved."""
    await commit(inventory, stored("1", {"a": "1"}))
    await commit(inventory, stored("2", {"a": "2"}), "1")
    with pytest.raises(StaleWriteError):
        await inventory.save_rollout(1, state=b"", is_open=True)
    with pytest.raises(StaleWriteError):
        await inventory.save_rollout(9, state=b"", is_open=False)
    await inventory.save_rollout(1, state=b"superseded", is_open=False)
    first = await inventory.rollout(1)
    assert first is not None
    assert (first.state, first.open) == (b"superseded", False)
    second = await inventory.rollout()
    assert second is not None
    assert (second.number, second.open, second.state) == (2, True, b"begun")


async def test_rollouts_kept_have_a_bound(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go once there are more than is kept, and numbers go on."""
    monkeypatch.setattr("keyplane.ports.ordering.ROLLOUTS_KEPT", 3)
    parent = None
    for n in range(1, 6):
        await commit(inventory, stored(str(n), {"a": str(n)}), parent)
        parent = str(n)
    there = [n for n in range(1, 7) if await inventory.rollout(n) is not None]
    assert there == [3, 4, 5]


async def test_an_empty_plan_is_a_plan(inventory: Inventory) -> None:
    """A fleet without entries can be committed and read."""
    empty = stored("empty", {}, contents={})
    await commit(inventory, empty)
    assert await inventory.target() == empty
