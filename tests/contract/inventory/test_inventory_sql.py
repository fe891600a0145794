"""What only an inventory on disk promises: what it writes, what it forgets, what survives."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from keyplane.adapters.sql import engine, schema
from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.ports import ordering
from keyplane.ports.inventory import Inventory
from tests.contract.inventory import postgres
from tests.contract.inventory.committer import nth
from tests.contract.inventory.conftest import Open
from tests.contract.inventory.values import digest, stored

ROOT = Path(__file__).parents[3]


async def rows(url: str) -> dict[str, int]:
    """How many rows each table has."""
    engines = engine.connect(url)
    try:
        async with engines.reader.connect() as connection:
            return {
                table.name: (
                    await connection.execute(sa.select(sa.func.count()).select_from(table))
                ).scalar_one()
                for table in schema.metadata.sorted_tables
            }
    finally:
        await engines.reader.dispose()


async def unnamed(url: str) -> int:
    """How many bodies no row names."""
    naming = (schema.plan_items, schema.rollout_base, schema.revision_files)
    query = sa.select(sa.func.count()).where(
        *(~sa.exists().where(table.c.body == schema.bodies.c.digest) for table in naming)
    )
    engines = engine.connect(url)
    try:
        async with engines.reader.connect() as connection:
            return (await connection.execute(query)).scalar_one()
    finally:
        await engines.reader.dispose()


def moved(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - count for name, count in before.items() if after[name] != count}


async def commit(inventory: Inventory, values: dict[str, str], name: str, parent: str) -> None:
    target = await inventory.target()
    await inventory.commit(
        stored(name, values),
        parent=digest(parent) if parent else None,
        rollout=b"",
        base={} if target is None else target.entries,
        who="ada",
        at_ms=1,
    )


async def test_an_edit_of_one_entry_writes_one_body(open_sql: Open, url: str) -> None:
    """In a plan of a thousand entries, of which the rollout's base are a thousand too."""
    inventory = await open_sql()
    values = {f"e{n}": str(n) for n in range(1000)}
    await commit(inventory, values, "first", "")
    before = await rows(url)
    assert before["bodies"] > 1000
    await commit(inventory, values | {"e500": "edited"}, "second", "first")
    assert moved(before, await rows(url)) == {
        "plans": 1, "rollouts": 1, "bodies": 1, "plan_items": 1,
    }  # fmt: skip


async def test_a_content_and_a_file_that_stay_are_written_once(open_sql: Open, url: str) -> None:
    """A revision that edits one file of many writes one body."""
    inventory = await open_sql()
    files = {f"modules/{n}.star": b"%d" % n for n in range(100)}
    await inventory.add_revision(files, who="ada", why="", at_ms=1)
    before = await rows(url)
    await inventory.add_revision(files | {"modules/5.star": b"new"}, who="ada", why="", at_ms=2)
    assert moved(before, await rows(url)) == {"revisions": 1, "revision_files": 100, "bodies": 1}


async def test_what_no_kept_plan_needs_is_dropped(open_sql: Open, url: str) -> None:
    """After many commits there is as much as twenty generations need, and no body unnamed."""
    inventory = await open_sql()
    await inventory.add_revision({"a": b"kept"}, who="ada", why="", at_ms=1)
    parent = ""
    for n in range(30):
        values = {"same": "same", "edited": str(n), **({"often": "x"} if n % 3 else {})}
        await commit(inventory, values, str(n), parent)
        parent = str(n)
    counted = await rows(url)
    assert counted["plans"] == ordering.GENERATIONS_KEPT
    texts = 1
    sections_and_content = 6
    assert counted["bodies"] == texts + sections_and_content + len(("same", "often")) + 20
    assert await unnamed(url) == 0
    assert await inventory.revision(1) is not None


async def test_a_base_is_dropped_with_its_rollout(open_sql: Open, url: str) -> None:
    """Entries that only a superseded rollout's base held are gone."""
    inventory = await open_sql()
    await commit(inventory, {"a": "1"}, "1", "")
    await inventory.commit(
        stored("2", {"a": "2"}),
        parent=digest("1"),
        rollout=b"",
        base=stored("x", {"a": "held", "b": "held"}).entries,
        who="ada",
        at_ms=1,
    )
    before = await rows(url)
    assert before["rollout_base"] == 2
    await commit(inventory, {"a": "2"}, "3", "2")
    assert moved(before, await rows(url)) == {
        "plans": 1, "rollouts": 1, "rollout_base": -2, "bodies": -1,
    }  # fmt: skip
    assert await unnamed(url) == 0


@pytest.mark.slow
async def test_what_is_read_beside_commits_is_of_one_moment(open_sql: Open) -> None:
    """A plan is read in several statements; none sees a later plan than the others."""
    writer, reader = await open_sql(), await open_sql()
    plans = [nth(n) for n in range(250)]
    whole = [0, 0]

    async def write() -> None:
        """Until each reader has seen some of it, and a while at the least."""
        for n, plan in enumerate(plans):
            if n >= 25 and min(whole) > 0:
                return
            await writer.commit(
                plan,
                parent=digest(f"{n - 1}") if n else None,
                rollout=b"%d" % n,
                base=plans[n - 1].entries,
                who="ada",
                at_ms=n,
            )

    async def read(reads: int) -> None:
        while not writing.done():
            target = await reader.target()
            rollout = await reader.rollout()
            if target is not None and rollout is not None:
                assert target in plans
                assert rollout.base == plans[int(rollout.state) - 1].entries
                whole[reads] += 1

    writing = asyncio.create_task(write())
    await asyncio.gather(read(0), read(1))
    await writing
    assert min(whole) > 0


async def test_what_is_written_is_there_for_who_opens_it_next(url: str) -> None:
    """Closed and opened again, everything is as it was."""
    first = await SqlInventory.open(url)
    await commit(first, {"a": "1"}, "1", "")
    rollout = await first.rollout()
    await first.close()
    second = await SqlInventory.open(url)
    assert await second.target() == stored("1", {"a": "1"})
    assert await second.rollout() == rollout
    await second.close()


async def test_a_write_that_is_cancelled_leaves_nothing_and_holds_nothing(
    open_sql: Open, url: str
) -> None:
    """Whenever a task is cancelled, the next write passes and counts from what was committed."""
    inventory = await open_sql()
    for turns in range(40):
        task = asyncio.create_task(
            inventory.add_revision({"a": b"%d" % turns}, who="ada", why="", at_ms=1)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    last = await inventory.add_revision({"a": b"last"}, who="ada", why="", at_ms=2)
    counted = await rows(url)
    assert last.number == counted["revisions"] == counted["revision_files"]


@pytest.mark.slow
async def test_it_is_whole_after_its_writer_was_killed(url: str) -> None:
    """Killed amid commits, again and again: the target is the last that was said or the next."""
    inventory = await SqlInventory.open(url)
    number = 0
    for life in range(3):
        ours = await postgres.serving(url)
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.contract.inventory.committer", url, str(number)),
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        said = [int(await child.stdout.readline()) for _ in range(5 + 10 * life)]
        child.kill()
        said.extend(int(line) for line in (await child.stdout.read()).split())
        await child.wait()
        async with asyncio.timeout(60):
            while await postgres.serving(url) - ours:
                await asyncio.sleep(0.01)  # what it had asked for may be carried out yet
        target = await inventory.target()
        assert target is not None
        last = next(n for n in (said[-1], said[-1] + 1) if target.plan.generation == digest(f"{n}"))
        assert target == nth(last)
        rollout = await inventory.rollout()
        assert rollout is not None
        assert (rollout.state, rollout.open, rollout.number) == (b"%d" % last, True, last + 1)
        assert rollout.base == nth(last - 1).entries
        for kept in range(max(0, last - ordering.GENERATIONS_KEPT + 1), last + 1):
            assert await inventory.plan(digest(f"{kept}")) == nth(kept)
        assert await unnamed(url) == 0
        number = last + 1
    await inventory.close()
