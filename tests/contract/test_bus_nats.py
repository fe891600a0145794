"""The bus on NATS keeps the port's contract, and what is only NATS's besides."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keyplane.adapters.nats.agent_bus import NatsAgentBus
from keyplane.adapters.nats.permissions import Controller, Machine
from keyplane.ports.bus import BusRefusedError, BusUnavailableError
from tests.contract.bus_contract import DEADLINE_S, LONG_MS, BusContract, Desk, served, until
from tests.contract.bus_world import (
    ALPHA,
    BETA,
    Fleet,
    NatsWorld,
    nats_world,
    occupied,
    tampered_server,
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[NatsWorld]:
    async with nats_world(tmp_path) as made:
        yield made


class TestNatsBus(BusContract):
    pass


async def until_told(agent: NatsAgentBus, cause: str) -> None:
    """Asks are answered with why there is no connection, once one was tried."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            await asyncio.sleep(0.005)
            with pytest.raises(BusUnavailableError) as told:
                await agent.ask(b"", timeout_ms=20)
            if cause in str(told.value):
                return


async def test_a_bus_that_came_back_on_another_port_is_found(world: NatsWorld) -> None:
    """Agents ask anew where the bus is before each attempt."""
    desk = Desk()
    async with served(world, desk):
        agent = world.agent(ALPHA)
        await agent.ask(b"", timeout_ms=LONG_MS)
        woken: list[str] = []
        await agent.on_hint(lambda: woken.append("woken"))
        before = world.server.url
        await world.crash()
        with occupied(int(before.rpartition(":")[2])):
            await world.restart()
            assert world.server.url != before
            await until(lambda: bool(woken), "a reconnect wakes")
            desk.beats.clear()
            await agent.beat(b"again")


async def test_the_user_list_lets_in_and_cuts_off(world: NatsWorld) -> None:
    """A machine that leaves the list is cut at once, and is told why; others notice nothing."""
    desk = Desk()
    async with served(world, desk):
        alpha, beta = world.agent(ALPHA), world.agent(BETA)
        woken: list[str] = []
        for agent in (alpha, beta):
            await agent.ask(b"", timeout_ms=LONG_MS)
        await beta.on_hint(lambda: woken.append("beta"))
        without = [user for user in world.fleet.users if user.principal != Machine(ALPHA)]
        await world.server.reload(without)
        with pytest.raises(BusUnavailableError):
            await alpha.ask(b"", timeout_ms=100)
        await until_told(alpha, "the bus does not know the key of alpha")
        assert await beta.ask(b"?", timeout_ms=LONG_MS) == b"for beta: ?"
        await world.server.reload(world.fleet.users)
        assert await alpha.ask(b"?", timeout_ms=LONG_MS) == b"for alpha: ?"
        assert woken == [], "beta kept its connection"


async def test_who_asks_again_at_once_waits_for_the_next_connection(world: NatsWorld) -> None:
    """Also before it was heard that there is none any more: that takes a turn of the loop."""
    async with served(world, Desk()):
        agent = world.agent(ALPHA)
        await agent.ask(b"", timeout_ms=LONG_MS)
        client = agent._link._client
        assert client is not None
        client._status = type(client).CLOSED
        turned: list[None] = []
        asyncio.get_running_loop().call_soon(turned.append, None)
        for _ in range(2):
            with pytest.raises(BusUnavailableError):
                await agent.ask(b"", timeout_ms=20)
        assert turned
        client._status = type(client).CONNECTED


async def test_a_key_of_another_machine_is_told_so(world: NatsWorld) -> None:
    """An agent that was given the wrong key says what the bus does not let it do."""
    seed = world.fleet.seed(Machine(BETA))
    agent = NatsAgentBus(machine=ALPHA, seed=seed, locate=world.fleet.locate)
    world.open.append(agent)
    await until_told(agent, "the bus does not let alpha subscribe to _inbox.alpha.")


async def test_a_refused_publish_is_a_clear_error(tmp_path: Path) -> None:
    """The server's word reaches the call at once, where the client library would time out."""
    fleet = Fleet(tmp_path)

    def forbid(configuration: dict[str, Any]) -> None:
        for user in configuration["authorization"]["users"]:
            user["permissions"]["publish"] = {"deny": ["kp.>"]}

    async with tampered_server(fleet, forbid):
        seed = fleet.seed(Machine(ALPHA))
        agent = NatsAgentBus(machine=ALPHA, seed=seed, locate=fleet.locate)
        refusal = "the bus does not let alpha publish to kp.report.alpha"
        with pytest.raises(BusRefusedError, match=refusal):
            await agent.report(b"", timeout_ms=60_000)
        # A beat is handed over and its refusal told by the next.
        await agent.beat(b"")
        with pytest.raises(BusRefusedError):
            await agent.report(b"", timeout_ms=60_000)
        with pytest.raises(BusRefusedError, match=r"publish to kp\.beat\.alpha"):
            await agent.beat(b"")
        await agent.close()


async def test_two_controllers_share_the_work(world: NatsWorld) -> None:
    """Each message is for one of them; a standby answers too."""
    first, second = Desk(), Desk()
    async with served(world, first), served(world, second):
        agent = world.agent(ALPHA)
        for number in range(40):
            await agent.report(b"%d" % number, timeout_ms=LONG_MS)
        heard = [int(payload) for _, payload in (*first.reports, *second.reports)]
        assert sorted(heard) == list(range(40))


def test_no_key_is_shown(tmp_path: Path) -> None:
    """Nothing that is printed by mistake tells a seed."""
    fleet = Fleet(tmp_path)
    key = fleet.keys[Controller()]
    assert key.seed not in repr(key)
    assert key.public in repr(key)


@pytest.mark.parametrize("is_silent", [True, False], ids=["silent", "absent"])
def test_a_program_ends_though_its_bus_was_not_closed(tmp_path: Path, is_silent: bool) -> None:
    """In the midst of connecting, to who does not greet or is not there: nothing holds it up."""
    fleet = Fleet(tmp_path)

    async def main(port: int) -> None:
        url = f"nats://127.0.0.1:{port}"
        seed = fleet.seed(Machine(ALPHA))
        agent = NatsAgentBus(machine=ALPHA, seed=seed, locate=lambda: url)
        with pytest.raises(BusUnavailableError, match="no connection to the bus in 50 ms"):
            await agent.ask(b"", timeout_ms=50)

    with occupied() as port:
        if is_silent:
            asyncio.run(asyncio.wait_for(main(port), DEADLINE_S))
    if not is_silent:
        asyncio.run(asyncio.wait_for(main(port), DEADLINE_S))
