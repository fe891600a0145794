"""Which revision a directory's text descends from, and who edited since."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from keyplane.adapters import directory
from keyplane.documents.reading import Reading
from keyplane.parts import change_messages as changes
from keyplane.parts.control_client import RefusedError
from keyplane.parts.knowing import Knowing
from keyplane.parts.planning import Planning
from keyplane.parts.revising import Revising
from keyplane.ports import ordering
from keyplane.ports.store import Pack
from keyplane.testing.clock import LoopClock
from keyplane.testing.inventory import MemoryInventory


def read(files: Mapping[str, bytes]) -> Reading:
    def nothing_to_run(*_: object) -> Any:
        pytest.fail("no document here is a program")

    return directory.documents_of(files, nothing_to_run)


def archive(_: Mapping[str, bytes], __: str, ___: str) -> Pack:
    pytest.fail("nothing is packed here")


def text(said: str) -> dict[str, bytes]:
    return {"fleet.toml": f'fleet = "{said}"\n'.encode()}


async def revising(*texts: str) -> Revising:
    """Over revisions of these texts, one each second."""
    inventory = MemoryInventory()
    for at, said in enumerate(texts, start=1):
        made = await inventory.add_revision(text(said), who="ada", why="", at_ms=at * 1000)
        assert made.number == at
    # As this release writes them; what an older one wrote has no verb.
    rows = inventory._truth.revisions
    rows[:] = [replace(each, verb="set") for each in rows]
    return Revising(
        inventory=inventory,
        planning=Planning(read=read, archive=archive),
        facts=Knowing(inventory=inventory, clock=LoopClock(), hold_ms=0),
    )


def descent(revision: int, said: str, *, sent: str | None = None, at_ms: int = 0):
    return changes.Descent(
        revision=revision,
        digest=ordering.revision_digest(text(said)),
        sent=None if sent is None else ordering.revision_digest(text(sent)),
        at_ms=at_ms,
    )


async def refusal(one: Revising, asked: changes.Asked):
    with pytest.raises(RefusedError) as refused:
        await one.made(asked)
    return refused.value.problem


async def test_a_text_that_descends_from_the_newest_is_made_from_it() -> None:
    one = await revising("a", "b")
    made = await one.made(changes.Directory(files=text("c"), descent=descent(2, "b")))
    assert (made.parent, made.revision) == (2, 3)
    made = await one.made(changes.Directory(files=text("b"), descent=None))
    assert (made.parent, made.revision) == (2, 2)


async def test_edits_since_are_told_the_oldest_first() -> None:
    one = await revising("a", "b", "c")
    problem = await refusal(one, changes.Directory(files=text("x"), descent=descent(1, "a")))
    assert problem.code == "edited-since"
    since = "the fleet was edited since revision 1, which this directory descends from"
    assert problem.message == f"{since}: with `set` by ada"
    assert [each.revision.revision for each in problem.edits] == [2, 3]
    assert '-fleet = "b"\n+fleet = "c"\n' in problem.edits[1].difference
    made = await one.made(changes.Directory(files=text("x"), over=3))
    assert made.parent == 3
    problem = await refusal(one, changes.Directory(files=text("x"), over=2))
    assert "since revision 2, which `--over` names" in problem.message
    assert [each.revision.revision for each in problem.edits] == [3]


async def test_one_knows_his_own_text_again_that_nobody_told_him_of() -> None:
    """And what was edited after that is another's."""
    one = await revising("a", "b")
    asked = changes.Directory(files=text("x"), descent=descent(1, "a", sent="b"))
    assert (await one.made(asked)).parent == 2
    one = await revising("a", "b", "c")
    problem = await refusal(one, asked)
    assert [each.revision.revision for each in problem.edits] == [3]


async def test_a_revision_of_another_fleet_is_none_to_descend_from() -> None:
    one = await revising("a", "b")
    for known in (None, descent(2, "elsewhere"), descent(7, "later")):
        problem = await refusal(one, changes.Directory(files=text("x"), descent=known))
        assert problem.code == "unknown-descent"
        assert '-fleet = "b"\n+fleet = "x"\n' in problem.difference


async def test_a_directory_is_ahead_of_an_inventory_that_was_restored() -> None:
    """Unless somebody edited that since."""
    one = await revising("a", "b")
    ahead = changes.Directory(files=text("x"), descent=descent(7, "later", at_ms=7000))
    assert (await one.made(ahead)).parent == 2
    stale = changes.Directory(files=text("x"), descent=descent(7, "later", at_ms=1500))
    assert (await refusal(one, stale)).code == "unknown-descent"


async def test_nothing_can_be_edited_before_the_first_apply() -> None:
    one = await revising()
    for asked in (changes.Unpin(machine="a", interface="b"), changes.Rollback()):
        assert "nothing was applied yet" in (await refusal(one, asked)).message
