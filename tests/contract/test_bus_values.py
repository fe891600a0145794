"""Dynamic values on a real bus: said by their provider alone, heard by their readers alone."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from keyplane.adapters.nats import bucket, subjects
from keyplane.adapters.nats.client import Client
from keyplane.adapters.nats.link import Link
from keyplane.adapters.nats.permissions import Controller, Machine
from keyplane.ports.bus import BusRefusedError
from tests.contract.bus_contract import AGAIN_MS, DEADLINE_S, LONG_MS, Desk, until, until_served
from tests.contract.bus_world import ALPHA, BETA, Fleet, NatsWorld, raw_client

PEER = "vpn:node@alpha/provides/peer/address"
OTHER = "vpn:node@beta/provides/peer/address"
HIDDEN = "vault:main@alpha/provides/door/code"


class World(NatsWorld):
    """Alpha says PEER and HIDDEN, and reads OTHER; beta says OTHER, and reads PEER."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(fleet)
        rights = {Machine(ALPHA): ((PEER, HIDDEN), (OTHER,)), Machine(BETA): ((OTHER,), (PEER,))}
        fleet.users = [
            replace(user, says=rights[user.principal][0], reads=rights[user.principal][1])
            if user.principal in rights
            else user
            for user in fleet.users
        ]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(Fleet(tmp_path))
    await made.restart()
    desk = Desk()
    controller = made.controller()
    serving = asyncio.create_task(
        controller.serve(
            on_ask=desk.on_ask,
            on_report=desk.on_report,
            on_facts=desk.on_facts,
            on_beat=desk.on_beat,
        )
    )
    try:
        agent = made.agent(ALPHA)
        await until_served(
            lambda: agent.values.say(PEER, b"first", only_if_none=False, timeout_ms=AGAIN_MS)
        )
        yield made
    finally:
        await made.close()
        await asyncio.gather(serving, return_exceptions=True)


async def say(world: World, export: str, payload: bytes, machine=ALPHA, **more) -> int:
    agent = world.agent(machine)
    more = {"only_if_none": False, "timeout_ms": LONG_MS} | more
    return await agent.values.say(export, payload, **more)


async def test_a_reader_gets_the_last_word_and_then_each_as_it_comes(world: World) -> None:
    """The first by a question, the others live; and no other's."""
    await say(world, PEER, b"one")
    reader = world.agent(BETA)
    heard: list[tuple[str, bytes]] = []
    assert await reader.values.read(PEER, timeout_ms=LONG_MS) == b"one"
    listened = await reader.values.listen([PEER], lambda *word: heard.append(word))
    assert listened == {PEER}
    await say(world, PEER, b"two")
    await until(lambda: heard == [(PEER, b"two")], "the second word")


async def test_what_is_there_already_is_not_written_again(world: World) -> None:
    """Who listens hears it all the same; the number tells that nobody said another."""
    number = await say(world, PEER, b"one")
    reader = world.agent(BETA)
    heard: list[bytes] = []
    await until_listening(reader, heard)
    again = await say(world, PEER, b"one", only_if_none=True)
    assert again == number
    await until(lambda: heard == [b"one"], "the word")
    assert await say(world, OTHER, b"x", BETA, only_if_none=True) > number


async def until_listening(reader, heard: list[bytes]) -> None:
    listening = lambda: reader.values.listen([PEER], lambda _, word: heard.append(word))  # noqa: E731
    assert await until_served(listening) == {PEER}


async def test_nobody_says_or_reads_beside_its_own(world: World) -> None:
    """Each refusal names the subject."""
    with pytest.raises(BusRefusedError, match="publish to"):
        await say(world, OTHER, b"forged", ALPHA)
    with pytest.raises(BusRefusedError, match="publish to"):
        await say(world, PEER, b"forged", BETA)
    with pytest.raises(BusRefusedError, match="publish to"):
        await world.agent(BETA).values.read(HIDDEN, timeout_ms=LONG_MS)
    with pytest.raises(BusRefusedError, match="publish to"):
        await world.agent(ALPHA).values.read(PEER, timeout_ms=LONG_MS)
    heard: list[bytes] = []
    reader = world.agent(BETA)
    await until_listening(reader, heard)
    assert await reader.values.listen([PEER, HIDDEN], lambda *_: None) == {PEER}


async def test_an_export_that_is_not_there_is_none(world: World) -> None:
    assert await world.agent(BETA).values.read("s3/provides/x/y", timeout_ms=LONG_MS) is None
    fresh = "vpn:node@alpha/provides/peer/other"
    users = world.fleet.users
    world.fleet.users = [
        replace(user, reads=(*user.reads, fresh)) if user.principal == Machine(BETA) else user
        for user in users
    ]
    reader = world.agent(BETA)
    await reader.values.read(PEER, timeout_ms=LONG_MS)
    await world.server.reload(world.fleet.users)
    assert await reader.values.read(fresh, timeout_ms=LONG_MS) is None


async def test_other_rights_cut_nobody(world: World) -> None:
    """The list is read anew: who lost a right has lost it at once, and keeps its connection."""
    reader = world.agent(BETA)
    heard: list[bytes] = []
    await until_listening(reader, heard)
    lost: list[str] = []
    reader.values.on_connected(lambda: lost.append("connected anew"))
    world.fleet.users = [replace(user, reads=()) for user in world.fleet.users]
    await world.server.reload(world.fleet.users)
    with pytest.raises(BusRefusedError):
        await reader.values.read(PEER, timeout_ms=LONG_MS)
    await say(world, PEER, b"secret by now")
    await say(world, PEER, b"and this")
    assert heard == []
    assert lost == []


async def test_a_store_that_was_deleted_is_made_again_and_filled_by_the_provider(
    world: World,
) -> None:
    """The bus comes back with nothing; the next word that is only for an empty place fills it."""
    await say(world, PEER, b"one")
    await world.crash()
    shutil.rmtree(world.fleet.directory / "store")
    await world.restart()
    provider = world.agent(ALPHA)
    await until_served(
        lambda: provider.values.say(PEER, b"one", only_if_none=True, timeout_ms=AGAIN_MS)
    )
    assert await world.agent(BETA).values.read(PEER, timeout_ms=LONG_MS) == b"one"


async def test_an_answer_sent_to_anothers_subject_is_no_word_of_its(world: World) -> None:
    """Beta asks for a value that it may read, and has it sent to where others listen."""
    await say(world, PEER, b"chosen bytes")
    victim = world.agent(ALPHA)
    desk_subject = "kp.report.alpha"
    async with raw_client(world.server.url, world.fleet.seed(Machine(BETA))) as raw:
        for target in (subjects.value(HIDDEN), subjects.value(PEER), desk_subject):
            assert target is not None
            stored = subjects.stored_value(PEER)
            assert stored is not None
            await raw.publish(stored, b"", reply=target)
    reader = world.agent(BETA)
    heard: list[bytes] = []
    await until_listening(reader, heard)
    assert heard == []
    await victim.values.say(PEER, b"mine", only_if_none=False, timeout_ms=LONG_MS)
    await until(lambda: heard == [b"mine"], "the provider's own word")


async def test_what_was_put_under_anothers_name_by_an_answer_is_not_read(world: World) -> None:
    """One says bytes of its choice, another has them sent to a third's place in the store.

    The third's next word stands there again.
    """
    await say(world, OTHER, b"chosen bytes", BETA)
    reader = world.agent(BETA)
    stored, target = subjects.stored_value(OTHER), subjects.value(PEER)
    assert stored is not None
    assert target is not None
    async with raw_client(world.server.url, world.fleet.seed(Machine(ALPHA))) as raw:
        await raw.publish(stored, b"", reply=target)
        async with asyncio.timeout(DEADLINE_S):
            while await reader.values.read(PEER, timeout_ms=LONG_MS) == b"first":
                await asyncio.sleep(0.02)
    assert await reader.values.read(PEER, timeout_ms=LONG_MS) is None
    await say(world, PEER, b"mine")
    assert await reader.values.read(PEER, timeout_ms=LONG_MS) == b"mine"


async def test_the_bucket_takes_no_headers_that_rule_over_others(world: World) -> None:
    """Rollups would delete what others said; the stream takes none."""
    await say(world, OTHER, b"beta's", BETA)
    async with raw_client(world.server.url, world.fleet.seed(Machine(ALPHA))) as raw:
        subject = subjects.value(PEER)
        assert subject is not None
        await raw.subscribe("_INBOX.alpha.>")
        headers = {"Nats-Rollup": "all"}
        await raw.publish(subject, b"x", headers=headers, reply="_INBOX.alpha.x")
        await until(lambda: bool(raw.received), "the bucket's answer")
        assert "error" in json.loads(raw.received[0].data)
    async with link_of(world) as link:
        await bucket.ensure(link)
    assert await say(world, OTHER, b"beta's", BETA, only_if_none=True) > 0


async def test_an_end_is_heard_though_the_library_swallows_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `wait_for` does below Python 3.12, by which it waits for the server."""
    reader = world.agent(BETA)
    await until_listening(reader, [])
    waits = asyncio.Event()

    async def swallows(self: Client, timeout: int) -> None:
        waits.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(Client, "flush", swallows)
        asking = asyncio.create_task(reader.values._link.attach({}))
        await waits.wait()
        patch.setattr(Client, "flush", _nothing)
        asking.cancel()
        await asyncio.wait([asking], timeout=DEADLINE_S)
    assert asking.cancelled()


async def _nothing(self: Client, timeout: int) -> None:
    pass


def link_of(world: World):
    class Opened:
        async def __aenter__(self) -> Link:
            seed = world.fleet.seed(Controller())
            self.link = Link(principal=Controller(), seed=seed, locate=world.fleet.locate)
            return self.link

        async def __aexit__(self, *_) -> None:
            await self.link.close()

    return Opened()
