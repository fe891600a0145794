"""What a controller makes of facts that change: real agents, in memory and virtual time."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from keyplane.parts import change_messages as changes
from keyplane.parts.control_client import RefusedError
from keyplane.parts.fact_plans import WHO
from keyplane.testing.facts import MemoryFacts
from keyplane.testing.inventory import MemoryInventory
from tests.unit.parts.fact_fleet import HEARD, instance, named, text
from tests.unit.parts.fact_world import HOLD_S, SETTLED_S, World, in_virtual_time

WIREGUARD: dict[str, Any] = {"kernel__modules": ["wireguard"]}
NONE: dict[str, Any] = {"kernel__modules": ["ext4"]}
ONE_VPN = instance("vpn", "count { count = 1 }")


class Slow(MemoryFacts):
    """What takes long to find out."""

    def __init__(self, known: asyncio.Event, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self._known = known

    async def gather(self) -> Mapping[str, Any]:
        await self._known.wait()
        return await super().gather()


def test_a_hole_is_filled_once_its_provider_has_said_the_fact() -> None:
    """The provider's tier is sent, what reads it waits, and the rollout goes on by itself."""

    async def main() -> None:
        async with World().running() as world:
            end = await world.apply(text(named("cache", "alpha"), named("reader", "beta")))
            assert end.outcome == "done"
            assert [(held.entry, held.why) for held in end.held] == [
                (
                    "reader:main@beta",
                    "it waits for the fact cache.key of alpha, which nobody says",
                )
            ]
            assert list(world.runs()) == ["cache:main@alpha"]
            world.say("alpha", cache__key="abc")
            await asyncio.sleep(SETTLED_S)
            assert world.runs()["reader:main@beta"] == {"KEY": "abc"}
            audit = await world.inventory.audit_log(1)
            assert (audit[0][1], audit[0][2]) == (WHO, "facts")
            assert audit[0][3]["why"] == "cache.key of alpha"

    in_virtual_time(main)


def test_a_hole_in_what_runs_leaves_it_as_it_runs() -> None:
    """Until the fact is there, it is what it was."""

    async def main() -> None:
        async with World().running() as world:
            world.say("alpha", cache__key="one")
            await asyncio.sleep(SETTLED_S)
            files = text(named("cache", "alpha"), named("reader", "beta"))
            await world.apply(files)
            pids = world.pids()
            moved = text(named("cache", "gamma"), named("reader", "beta"))
            end = await world.apply(moved)
            assert [held.entry for held in end.held] == ["reader:main@beta", "cache:main@alpha"]
            assert world.pids()["reader:main@beta"] == pids["reader:main@beta"]
            assert world.runs()["reader:main@beta"] == {"KEY": "one"}
            world.say("gamma", cache__key="two")
            await asyncio.sleep(2 * SETTLED_S)
            assert world.runs()["reader:main@beta"] == {"KEY": "two"}
            assert sorted(world.runs()) == ["cache:main@gamma", "reader:main@beta"]

    in_virtual_time(main)


def test_a_fact_counts_once_it_has_held() -> None:
    """One that flips and flips back makes no plan; one that stays makes one, after a minute."""

    async def main() -> None:
        async with World().running() as world:
            world.say("alpha", cache__key="one")
            await asyncio.sleep(SETTLED_S)
            await world.apply(text(named("cache", "alpha"), named("reader", "beta")))
            before = await world.generations()
            for _ in range(5):
                world.say("alpha", cache__key="two")
                await asyncio.sleep(HOLD_S / 2)
                world.say("alpha", cache__key="one")
                await asyncio.sleep(HOLD_S / 2)
            assert await world.generations() == before
            world.say("alpha", cache__key="two")
            await asyncio.sleep(HOLD_S - SETTLED_S)
            assert world.runs()["reader:main@beta"] == {"KEY": "one"}
            await asyncio.sleep(2 * SETTLED_S)
            assert world.runs()["reader:main@beta"] == {"KEY": "two"}
            assert await world.generations() == before + 1

    in_virtual_time(main)


def test_a_fact_that_no_entry_reads_makes_no_plan() -> None:
    """Plans that come later go by it all the same."""

    async def main() -> None:
        async with World().running() as world:
            await world.apply(text(named("plain", "alpha")))
            before = await world.generations()
            world.say("alpha", disk__bytes=5, **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            assert await world.generations() == before
            assert await world.waiting() == {}
            end = await world.apply(text(named("plain", "alpha"), named("vpn", "alpha")))
            assert (end.outcome, end.started) == ("done", 1)

    in_virtual_time(main)


def test_what_facts_would_move_waits_for_a_person() -> None:
    """It is told with the command that does it, and does nothing until then."""

    async def main() -> None:
        async with World().running() as world:
            for machine in ("alpha", "beta"):
                world.say(machine, **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            await world.apply(text(ONE_VPN))
            world.say("alpha", **NONE)
            await asyncio.sleep(2 * HOLD_S)
            assert list(world.runs()) == ["vpn:node@alpha"]
            [row] = (await world.controller.status()).facts
            assert row.entries == {"vpn:node@alpha": "it would move to beta"}
            assert row.command == "keyplane facts alpha"
            assert (row.said, row.planned) == (
                {"kernel.modules": ["ext4"]},
                {"kernel.modules": ["wireguard"]},
            )
            end = await world.do(changes.TakeFacts(machines=["alpha"]))
            assert (end.outcome, end.started, end.stopped) == ("done", 1, 1)
            assert list(world.runs()) == ["vpn:node@beta"]
            await asyncio.sleep(SETTLED_S)
            assert await world.waiting() == {}

    in_virtual_time(main)


def test_what_waits_is_over_once_the_fact_is_back() -> None:
    async def main() -> None:
        async with World().running() as world:
            for machine in ("alpha", "beta"):
                world.say(machine, **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            await world.apply(text(ONE_VPN))
            before = await world.generations()
            world.say("alpha", **NONE)
            await asyncio.sleep(2 * HOLD_S)
            assert list(await world.waiting()) == ["alpha"]
            world.say("alpha", **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            assert await world.waiting() == {}
            assert await world.generations() == before

    in_virtual_time(main)


def test_an_instance_may_let_facts_move_it() -> None:
    """It moves by itself, once the fact has held."""

    async def main() -> None:
        async with World().running() as world:
            for machine in ("alpha", "beta"):
                world.say(machine, **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            free = instance("vpn", "count { count = 1 }", "vpn", 'onFact = "apply"')
            await world.apply(text(free))
            world.say("alpha", **NONE)
            await asyncio.sleep(HOLD_S - SETTLED_S)
            assert list(world.runs()) == ["vpn:node@alpha"]
            await asyncio.sleep(3 * SETTLED_S)
            assert list(world.runs()) == ["vpn:node@beta"]

    in_virtual_time(main)


def test_a_named_entry_goes_on_where_its_machine_does_not_fit_any_more() -> None:
    """Whatever its instance says: nobody named another machine for it."""

    async def main() -> None:
        async with World().running() as world:
            world.say("alpha", **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            free = named("vpn", "alpha") + 'onFact = "apply"\n'
            await world.apply(text(free))
            world.say("alpha", **NONE)
            await asyncio.sleep(2 * HOLD_S)
            assert list(world.runs()) == ["vpn:node@alpha"]
            [row] = (await world.controller.status()).facts
            assert "vpn:node@alpha requires" in row.entries["vpn:node@alpha"]
            assert row.command == ""
            # A person who takes the fact all the same does not end it either.
            end = await world.do(changes.TakeFacts())
            assert [held.entry for held in end.held] == ["vpn:node@alpha"]
            assert list(world.runs()) == ["vpn:node@alpha"]

    in_virtual_time(main)


def test_one_machines_fact_keeps_no_others_from_being_planned_by() -> None:
    """Nor does it stand in the way of an apply."""

    async def main() -> None:
        async with World().running() as world:
            for machine in ("alpha", "gamma"):
                world.say(machine, **WIREGUARD)
            world.say("beta", cache__key="one")
            await asyncio.sleep(SETTLED_S)
            entries = (ONE_VPN, named("cache", "beta"), named("reader", "gamma"))
            await world.apply(text(*entries))
            world.say("alpha", **NONE)
            world.say("beta", cache__key="two")
            await asyncio.sleep(HOLD_S + 2 * SETTLED_S)
            assert world.runs()["reader:main@gamma"] == {"KEY": "two"}
            assert "vpn:node@alpha" in world.runs()
            assert list(await world.waiting()) == ["alpha"]
            end = await world.apply(text(*entries, named("plain", "alpha")))
            assert (end.outcome, end.started, end.stopped) == ("done", 1, 0)
            assert "vpn:node@alpha" in world.runs()

    in_virtual_time(main)


def test_what_waits_is_a_fact_and_not_a_machine() -> None:
    """What another fact of the same machine moves goes at once."""

    async def main() -> None:
        async with World().running() as world:
            free = instance("roamer", "count { count = 1 }", "roamer", 'onFact = "apply"')
            files = text(ONE_VPN, free)
            files["modules/roamer/module.toml"] = (
                files["modules/vpn/module.toml"]
                .replace(b'"vpn"', b'"roamer"')
                .replace(b"roles.node", b"roles.main")
                .replace(b"kernel.module.wireguard", b"dry")
            )
            for machine in ("alpha", "beta"):
                world.say(machine, dry=True, **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            await world.apply(files)
            assert sorted(world.runs()) == ["roamer:main@alpha", "vpn:node@alpha"]
            world.say("alpha", dry=False, **NONE)
            await asyncio.sleep(HOLD_S + 3 * SETTLED_S)
            assert sorted(world.runs()) == ["roamer:main@beta", "vpn:node@alpha"]
            [row] = (await world.controller.status()).facts
            assert list(row.said) == ["kernel.modules"]

    in_virtual_time(main)


def test_whose_word_it_is_waits_and_not_whoever_would_suffer_by_it() -> None:
    """A consumer's machine that says something harmless waits for no provider's."""

    async def main() -> None:
        async with World().running() as world:
            needs = '[[roles.main.requirements]]\nsubject = "gpu"\npredicate = "exists"\n'
            zone = b'env = { KEY = "${results.cache.key}", ZONE = "${machine.facts.zone}" }'
            files = text(named("cache", "alpha"), named("reader", "beta"))
            files["modules/cache/module.toml"] += needs.encode()
            reader = files["modules/reader/module.toml"]
            files["modules/reader/module.toml"] = reader.replace(
                b'env = { KEY = "${results.cache.key}" }', zone
            )
            world.say("alpha", gpu=True, cache__key="k")
            world.say("beta", zone="a")
            await asyncio.sleep(SETTLED_S)
            await world.apply(files)
            world.say("alpha", gpu=False)
            world.say("beta", zone="b")
            await asyncio.sleep(HOLD_S + 3 * SETTLED_S)
            assert world.runs()["reader:main@beta"] == {"KEY": "k", "ZONE": "b"}
            assert sorted(world.runs()) == ["cache:main@alpha", "reader:main@beta"]
            assert list(await world.waiting()) == ["alpha"]

    in_virtual_time(main)


def test_a_lost_inventory_waits_for_what_machines_are() -> None:
    """It would take away what runs by facts that it does not know yet."""

    async def main() -> None:
        world = World()
        async with world.running():
            world.say("alpha", **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            await world.apply(text(named("vpn", "alpha")))
        world.inventory = MemoryInventory()
        known = asyncio.Event()
        world.facts[HEARD[0]] = Slow(known, world.facts[HEARD[0]].now)
        async with world.running():
            with pytest.raises(RefusedError, match="alpha would lose it for a fact"):
                await world.apply(text(named("vpn", "alpha")))
            known.set()
            await asyncio.sleep(SETTLED_S)
            await world.apply(text(named("vpn", "alpha")))
            assert sorted(world.runs()) == ["vpn:node@alpha"]

    in_virtual_time(main)


def test_a_silent_machine_causes_no_move() -> None:
    """Its last word was that it does not fit; nobody knows whether that has held."""

    async def main() -> None:
        async with World().running() as world:
            for machine in ("alpha", "beta"):
                world.say(machine, **WIREGUARD)
            await asyncio.sleep(SETTLED_S)
            free = instance("vpn", "count { count = 1 }", "vpn", 'onFact = "apply"')
            await world.apply(text(free))
            world.say("alpha", **NONE)
            await asyncio.sleep(SETTLED_S)
            await world.end(HEARD[0])
            await asyncio.sleep(5 * HOLD_S)
            assert sorted(world.runs()) == ["vpn:node@alpha"]

    in_virtual_time(main)


def test_facts_that_came_while_no_controller_was_there_are_planned_by() -> None:
    """What waits is worked out anew; what has held while it was away has held."""

    async def main() -> None:
        world = World()
        async with world.running():
            world.say("alpha", cache__key="one")
            await asyncio.sleep(SETTLED_S)
            await world.apply(text(named("cache", "alpha"), named("reader", "beta"), ONE_VPN))
        world.say("alpha", cache__key="two")
        async with world.running():
            await asyncio.sleep(HOLD_S + 2 * SETTLED_S)
            assert world.runs()["reader:main@beta"] == {"KEY": "two"}

    in_virtual_time(main)


def test_facts_begin_no_rollout_after_one_that_failed() -> None:
    """What was left of it would go with theirs: a person says first what becomes of it."""

    async def main() -> None:
        async with World().running() as world:
            world.say("alpha", cache__key="one")
            await asyncio.sleep(SETTLED_S)
            files = text(named("cache", "alpha"), named("reader", "beta"))
            await world.apply(files)
            broken = dict(files)
            broken["modules/cache/module.toml"] = files["modules/cache/module.toml"].replace(
                b'"run"', b'"missing"'
            )
            assert (await world.apply(broken)).outcome == "failed"
            world.say("alpha", cache__key="two")
            await asyncio.sleep(HOLD_S + SETTLED_S)
            [row] = (await world.controller.status()).facts
            assert "rollout 2 is failed" in row.why
            assert world.runs()["reader:main@beta"] == {"KEY": "one"}
            await world.apply(files)
            await asyncio.sleep(3 * SETTLED_S)
            assert world.runs()["reader:main@beta"] == {"KEY": "two"}

    in_virtual_time(main)
