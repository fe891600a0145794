"""The bus in memory keeps the port's contract."""

import pytest

from keyplane.model.names import MachineName
from keyplane.ports.bus import AgentBus, ControllerBus
from keyplane.testing.bus import MemoryBus
from tests.contract.bus_contract import BusContract


class MemoryWorld:
    def __init__(self) -> None:
        self._bus = MemoryBus()

    def controller(self) -> ControllerBus:
        return self._bus.controller()

    def agent(self, machine: MachineName) -> AgentBus:
        return self._bus.agent(machine)

    async def crash(self) -> None:
        self._bus.crash()

    async def restart(self) -> None:
        self._bus.restart()


@pytest.fixture
def world() -> MemoryWorld:
    return MemoryWorld()


class TestMemoryBus(BusContract):
    pass
