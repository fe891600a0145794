"""An edit of what a fact waits for is planned by it; an edit of anything else is not."""

import asyncio

from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from tests.unit.parts.fact_fleet import instance, named, text
from tests.unit.parts.fact_world import HOLD_S, SETTLED_S, World, in_virtual_time

WIREGUARD = ["wireguard"]
NONE = ["ext4"]
VPN = instance("vpn", "count { count = 1 }")


def versioned(files: dict[str, bytes], module: str) -> dict[str, bytes]:
    """The same, with another version of a module."""
    path = f"modules/{module}/module.toml"
    return {**files, path: files[path].replace(b'["run"]', b'["run", "newer"]')}


async def with_a_fact_that_waits(world: World, files: dict[str, bytes], *machines: str) -> None:
    """Alpha has lost its module, and the tunnel there waits for a person."""
    for machine in machines:
        world.say(machine, kernel__modules=WIREGUARD)
    await asyncio.sleep(SETTLED_S)
    await world.apply(files)
    world.say("alpha", kernel__modules=NONE)
    await asyncio.sleep(HOLD_S + 2 * SETTLED_S)
    assert list(await world.waiting()) == ["alpha"]


def test_an_edit_of_what_waits_shows_the_move_and_makes_it() -> None:
    """It was shown, so the person has said it; who took the fact stands in the audit log."""

    async def main() -> None:
        async with World().running() as world:
            files = text(VPN)
            await with_a_fact_that_waits(world, files, "alpha", "beta")
            edited = versioned(files, "vpn")
            newest = await world.inventory.revision()
            assert newest is not None
            asked = changes.Directory(files=edited, over=newest.number)
            proposal = await world.controller.propose(messages.Propose(asked=asked))
            moves = [(each.entry, each.from_, each.to) for each in proposal.diff.moves]
            assert moves == [("vpn:node", "alpha", "beta")]
            assert proposal.said == "planned by kernel.modules of alpha"
            await world.apply(edited)
            assert list(world.runs()) == ["vpn:node@beta"]
            [(_, who, verb, detail)] = await world.inventory.audit_log(1)
            assert (who, verb, detail["facts"]) == ("ada", "apply", {"alpha": ["kernel.modules"]})
            await asyncio.sleep(SETTLED_S)
            assert await world.waiting() == {}

    in_virtual_time(main)


def test_an_edit_of_another_entry_moves_nothing() -> None:
    """Nobody has said anything of the one that would move."""

    async def main() -> None:
        async with World().running() as world:
            files = text(VPN, named("plain", "alpha"))
            await with_a_fact_that_waits(world, files, "alpha", "beta")
            end = await world.apply(versioned(files, "plain"))
            assert (end.restarted, end.started, end.stopped) == (1, 0, 0)
            assert sorted(world.runs()) == ["plain:main@alpha", "vpn:node@alpha"]
            await asyncio.sleep(HOLD_S)
            assert list(await world.waiting()) == ["alpha"]

    in_virtual_time(main)


def test_an_edit_of_one_that_waits_moves_no_other_that_waits_for_the_same() -> None:
    """Both hang on one fact: it is taken for both, or for none."""

    async def main() -> None:
        async with World().running() as world:
            twin = instance("twin", "count { count = 1 }", "twin")
            files = text(VPN, twin)
            module = files["modules/vpn/module.toml"].replace(b'"vpn"', b'"twin"')
            files["modules/twin/module.toml"] = module.replace(b"roles.node", b"roles.main")
            await with_a_fact_that_waits(world, files, "alpha", "beta")
            await world.apply(versioned(files, "vpn"))
            assert sorted(world.runs()) == ["twin:main@alpha", "vpn:node@alpha"]

    in_virtual_time(main)


def test_an_edit_of_one_that_has_no_other_place_is_held() -> None:
    """Its machine does not fit it: it is not started anew there, and goes on as it runs."""

    async def main() -> None:
        async with World().running() as world:
            files = text(named("vpn", "alpha"))
            await with_a_fact_that_waits(world, files, "alpha")
            pids = world.pids()
            end = await world.apply(versioned(files, "vpn"))
            assert [held.entry for held in end.held] == ["vpn:node@alpha"]
            assert world.pids() == pids
            world.say("alpha", kernel__modules=WIREGUARD)
            await asyncio.sleep(HOLD_S + 3 * SETTLED_S)
            assert list(world.runs()) == ["vpn:node@alpha"]
            assert world.pids() != pids

    in_virtual_time(main)


def test_a_fact_that_is_back_is_in_no_edit() -> None:
    """What waited a moment ago is planned by no more, whatever was found last."""

    async def main() -> None:
        async with World().running() as world:
            files = text(VPN)
            await with_a_fact_that_waits(world, files, "alpha", "beta")
            waiting = world.controller.fact_plans.waiting
            world.say("alpha", kernel__modules=WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            world.controller.fact_plans.waiting = waiting
            await world.apply(versioned(files, "vpn"))
            assert list(world.runs()) == ["vpn:node@alpha"]

    in_virtual_time(main)


def test_what_only_follows_its_provider_is_not_edited() -> None:
    """Its key moves with the provider's, and nobody has edited it."""

    async def main() -> None:
        async with World().running() as world:
            files = text(named("cache", "beta"), instance("reader", "count { count = 1 }"))
            needs = '[[roles.main.requirements]]\nsubject = "kernel.module.wireguard"\n'
            files["modules/reader/module.toml"] += (needs + 'predicate = "exists"\n').encode()
            world.say("beta", cache__key="k")
            await with_a_fact_that_waits(world, files, "alpha", "gamma")
            end = await world.apply(versioned(files, "cache"))
            assert (end.restarted, end.started, end.stopped) == (2, 0, 0)
            assert sorted(world.runs()) == ["cache:main@beta", "reader:main@alpha"]

    in_virtual_time(main)
