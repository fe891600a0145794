"""An agent that follows values of others, and says those of its own services."""

import asyncio
from typing import Any

import pytest

from keyplane import wire
from keyplane.model.declaration import DeclaredEntry, DeclaredUnit, EntryState
from keyplane.model.interface import ValueType
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.reaction import Contract, Publication, publish_folder
from keyplane.ports.sources import SourceError
from tests.unit.parts.agent_world import World, in_virtual_time

WEB, VPN = EntryId("web:main@alpha"), EntryId("vpn:node@alpha")
FOREIGN = "vpn:node@beta/provides/peer/address"
OWN = f"{VPN}/provides/peer/address"
FILE = "/var/lib/vpn/address"
LONG_S = 600.0


def reader(*sources: str, **fields: Any) -> DeclaredEntry:
    contract = Contract(sources=sources, reaction=ReactionKind.RESTART, **fields)
    digest = Digest(f"sha256-{'1' * 64}")
    server = DeclaredUnit(digest=digest, kind="process", command=("run",), dynamic={"P": contract})
    return DeclaredEntry(
        key=Digest(f"sha256-{'2' * 64}"), module="web", version="1", units={UnitName("s"): server}
    )


def provider(publication: Publication, name: str = "peer/address") -> DeclaredEntry:
    digest = Digest(f"sha256-{'3' * 64}")
    node = DeclaredUnit(digest=digest, kind="process", command=("node",))
    return DeclaredEntry(
        key=Digest(f"sha256-{'4' * 64}"),
        module="vpn",
        version="1",
        units={UnitName("node"): node},
        publishes={name: publication},
    )


async def until(holds) -> None:
    async with asyncio.timeout(LONG_S):
        while not holds():
            await asyncio.sleep(0.05)


def stored(world: World, export: str) -> wire.Word | None:
    found = world.bus.stored.get(export)
    if found is None:
        return None
    word = wire.decode_word(found[1], export=export)
    assert isinstance(word, wire.Word)
    return word


def env(world: World, entry: EntryId = WEB) -> dict[str, str]:
    runs = world.host.processes.runs.values()
    return next(({**r.spec.env} for r in runs if r.spec.entry == entry and r.seen.running), {})


def starts(world: World, entry: EntryId = WEB) -> int:
    return sum(act == "start" and e == entry for act, e, _, _ in world.host.processes.history)


def word(value: str | None, number: int) -> bytes:
    return wire.encode_word(wire.Word(export=FOREIGN, number=number, value=value))


async def say(world: World, value: str | None, number: int) -> None:
    """As the agent of beta does."""
    beta = world.bus.agent("beta").values
    await beta.say(FOREIGN, word(value, number), only_if_none=False, timeout_ms=1_000)


def test_a_value_that_was_said_before_and_each_that_comes_later_reach_the_unit() -> None:
    async def main() -> None:
        world = World()
        world.desk.declare({WEB: reader(FOREIGN)})
        await say(world, "10.0.0.1", 1)
        async with world.served(), world.running():
            await until(lambda: env(world).get("P") == "10.0.0.1")
            await say(world, "10.0.0.2", 2)
            await until(lambda: env(world).get("P") == "10.0.0.2")
            assert starts(world) == 2

    in_virtual_time(main)


def test_a_word_of_another_export_and_an_older_one_are_nothing() -> None:
    """What somebody had sent to the subject; what the store had of before."""

    async def main() -> None:
        world = World()
        world.desk.declare({WEB: reader(FOREIGN)})
        await say(world, "10.0.0.1", 5)
        async with world.served(), world.running():
            await until(lambda: env(world).get("P") == "10.0.0.1")
            beta = world.bus.agent("beta").values
            other = wire.encode_word(wire.Word(export="x@beta/provides/a/b", number=9, value="x"))
            for payload in (other, b"\xff", word("10.0.0.9", 4)):
                await beta.say(FOREIGN, payload, only_if_none=False, timeout_ms=1_000)
            await asyncio.sleep(LONG_S)
            assert env(world)["P"] == "10.0.0.1"
            assert starts(world) == 1

    in_virtual_time(main)


def test_a_bus_that_lost_its_store_and_came_back_restarts_nothing() -> None:
    """Whatever is down for however long: the last value stays, and the state says how it stands."""

    async def main() -> None:
        world = World()
        stop = {"on_missing": OnMissing.STOP, "max_staleness_ms": 20_000}
        world.desk.declare({WEB: reader(FOREIGN, **stop)})
        await say(world, "10.0.0.1", 1)
        async with world.served(), world.running() as agent:
            await until(lambda: env(world).get("P") == "10.0.0.1")
            world.bus.crash()
            await until(lambda: agent.report().entries[WEB].state is EntryState.STALE)
            await asyncio.sleep(LONG_S)
            world.bus.restart()
            await asyncio.sleep(LONG_S)
            assert agent.report().entries[WEB].state is EntryState.STALE
            await say(world, "10.0.0.1", 1)
            await until(lambda: agent.report().entries[WEB].state is EntryState.HEALTHY)
            await asyncio.sleep(LONG_S)
            assert starts(world) == 1

    in_virtual_time(main)


def test_a_value_in_a_file_is_said_and_missing_once_it_is_gone() -> None:
    """What never was is not missing; the same again is written once."""

    async def main() -> None:
        world = World()
        world.desk.declare({VPN: provider(Publication(file=FILE))})
        async with world.served(), world.running():
            await until(lambda: starts(world, VPN) == 1)
            await asyncio.sleep(LONG_S)
            assert stored(world, OWN) is None
            world.sources.files[FILE] = b" 10.0.0.1\n"
            await until(lambda: stored(world, OWN) is not None)
            first = stored(world, OWN)
            assert first is not None
            assert first.value == "10.0.0.1"
            writes = world.bus.writes
            await asyncio.sleep(LONG_S)
            assert world.bus.writes == writes
            del world.sources.files[FILE]
            await until(lambda: stored(world, OWN).value is None)
            assert stored(world, OWN).number > first.number

    in_virtual_time(main)


def test_a_store_that_was_lost_is_filled_again_with_the_same_word() -> None:
    async def main() -> None:
        world = World()
        world.sources.files[FILE] = b"10.0.0.1"
        world.desk.declare({VPN: provider(Publication(file=FILE))})
        async with world.served(), world.running():
            await until(lambda: stored(world, OWN) is not None)
            before = stored(world, OWN)
            world.bus.crash()
            await asyncio.sleep(30)
            world.bus.restart()
            await until(lambda: stored(world, OWN) is not None)
            assert stored(world, OWN) == before
            # Under a running bus, and overwritten by who may not.
            world.bus.stored.clear()
            await until(lambda: stored(world, OWN) == before)
            world.bus.stored[OWN] = (10_000, b"garbage")
            await until(lambda: world.bus.stored[OWN][1] != b"garbage")
            assert stored(world, OWN) == before

    in_virtual_time(main)


def test_another_life_says_another_word_under_a_higher_number() -> None:
    """Also where what it said was lost with its state: the clock has gone on."""

    async def main() -> None:
        world = World()
        world.sources.files[FILE] = b"10.0.0.1"
        world.desk.declare({VPN: provider(Publication(file=FILE))})
        async with world.served():
            async with world.running():
                await until(lambda: stored(world, OWN) is not None)
            first = stored(world, OWN)
            async with world.running():
                await asyncio.sleep(30)
                assert stored(world, OWN) == first
            del world.host.files.state["published"]
            world.sources.files[FILE] = b"10.0.0.2"
            async with world.running():
                await until(lambda: stored(world, OWN).value == "10.0.0.2")
            assert stored(world, OWN).number > first.number

    in_virtual_time(main)


def test_a_command_says_a_value_and_its_failure_that_it_is_gone() -> None:
    """One that could not be run says nothing at all."""

    async def main() -> None:
        world = World()
        publication = Publication(command=("ask",), every_ms=1_000)
        world.sources.outputs["ask"] = b"10.0.0.1\n"
        world.desk.declare({VPN: provider(publication)})
        async with world.served(), world.running():
            await until(lambda: stored(world, OWN) is not None)
            world.sources.outputs["ask"] = SourceError("no end in time")
            await asyncio.sleep(LONG_S)
            assert stored(world, OWN).value == "10.0.0.1"
            world.sources.outputs["ask"] = None
            await until(lambda: stored(world, OWN).value is None)

    in_virtual_time(main)


def test_a_service_says_its_own_exports_alone_and_of_their_type() -> None:
    """By the export's name or PROVIDE/EXPORT; what is wrong is answered."""

    async def main() -> None:
        world = World()
        size = Publication(type=ValueType.INTEGER, published=True)
        world.desk.declare({VPN: provider(size, "peer/size")})
        async with world.served(), world.running():
            await until(lambda: VPN in world.sources.served and starts(world, VPN) == 1)
            tell = world.sources.served[VPN]
            assert "no integer" in (tell("size", "many") or "")
            assert "publishes no" in (tell("other", "1") or "")
            assert tell("size", " 08 ") is None
            export = f"{VPN}/provides/peer/size"
            await until(lambda: stored(world, export) is not None)
            assert stored(world, export).value == "8"
            assert tell("peer/size", None) is None
            await until(lambda: stored(world, export).value is None)
            socket = f"{publish_folder(VPN)}/socket"
            assert env(world, VPN)["KEYPLANE_PUBLISH"] == socket

    in_virtual_time(main)


def test_a_value_of_the_same_machine_needs_no_bus() -> None:
    async def main() -> None:
        world = World()
        world.sources.files[FILE] = b"10.0.0.1"
        world.desk.declare({VPN: provider(Publication(file=FILE)), WEB: reader(OWN)})
        async with world.served(), world.running() as agent:
            await until(lambda: env(world).get("P") == "10.0.0.1")
            world.bus.crash()
            await asyncio.sleep(60)
            world.sources.files[FILE] = b"10.0.0.2"
            await until(lambda: env(world).get("P") == "10.0.0.2")
            await asyncio.sleep(LONG_S)
            assert agent.report().entries[WEB].state is EntryState.HEALTHY

    in_virtual_time(main)


def test_what_keeps_a_source_from_being_read_for_good_ends_the_agent() -> None:
    """Its next life reads it again; one that went on without would say old values for ever."""

    async def main() -> None:
        world = World()
        world.desk.declare({VPN: provider(Publication(file=FILE))})

        def read(path: str) -> str:
            raise RuntimeError(f"nobody foresaw this of {path}")

        world.sources.read = read  # type: ignore[method-assign]
        async with world.served():
            life = asyncio.create_task(world.agent().run())
            ended, _ = await asyncio.wait({life}, timeout=LONG_S)
            life.cancel()
            assert ended
            with pytest.raises(ExceptionGroup) as raised:
                await life
        assert raised.group_contains(RuntimeError, match="nobody foresaw")

    in_virtual_time(main)
