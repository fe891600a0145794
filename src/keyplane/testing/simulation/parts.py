"""The product's own agents and controllers, each on the ports of one life."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import nacl.signing

from keyplane import wire
from keyplane.model.declaration import Report
from keyplane.model.names import MachineName
from keyplane.parts import leasing as parts_leasing
from keyplane.parts.agent import Agent, Host
from keyplane.parts.agent_line import Identity
from keyplane.parts.controller import Controller
from keyplane.parts.offering import Offering
from keyplane.ports import fact_order
from keyplane.rollout.declaring_values import Rights
from keyplane.testing.simulation import leasing
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.host import (
    Ground,
    LifeArtifacts,
    LifeFacts,
    LifeFiles,
    LifeProcesses,
)
from keyplane.testing.simulation.inventory import Database, LifeInventory
from keyplane.testing.simulation.life import Life
from keyplane.testing.simulation.network import AgentEnd, Network
from keyplane.testing.simulation.time import SkewedClock
from keyplane.testing.simulation.tree import RememberedPlanning
from keyplane.testing.simulation.values import LifeSources, ValuesEnd, Words
from keyplane.testing.simulation.volumes import LifeVolumes
from keyplane.testing.simulation.watch import Watch
from keyplane.testing.store import MemoryStore

KEY = nacl.signing.SigningKey(b"simulated key of the controllers")
RESTART_S = (0.1, 3.0)
"""How long a supervisor takes."""


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What all parts share."""

    chance: Chance
    network: Network
    words: Words
    database: Database
    store: MemoryStore
    watch: Watch
    log: Callable[[str, str], None]
    planning: RememberedPlanning = field(default_factory=RememberedPlanning)


class _WatchedEnd(AgentEnd):
    """Shows each report to the watch as it leaves."""

    watch: Watch

    async def report(self, payload: bytes, *, timeout_ms: int) -> None:
        report = wire.decode_report(payload, machine=self.machine)
        assert isinstance(report, Report)
        self.watch.reporting(report)
        await super().report(payload, timeout_ms=timeout_ms)


class Seat:
    """Where one process lives after another: a supervisor starts each anew."""

    def __init__(self, name: str, around: Surroundings) -> None:
        self.name = name
        self.around = around
        self.clock = SkewedClock()
        self.life: Life | None = None
        self.lives = 0
        self.is_off = False
        """Nobody starts it."""

    @property
    def is_up(self) -> bool:
        return self.life is not None and not self.life.is_dead

    def begin(self) -> None:
        if self.is_off or self.is_up:
            return
        self.lives += 1
        self.life = Life(self.name, ended=self._ended, bug=self._bug)
        self.around.log(self.name, f"begins life {self.lives}")
        self._begin(self.life)

    def _begin(self, life: Life) -> None:
        raise NotImplementedError

    def _ended(self, life: Life, why: str) -> None:
        assert life is self.life
        self.around.log(self.name, f"is {why}")
        delay_s = self.around.chance.between(*RESTART_S)
        asyncio.get_running_loop().call_later(delay_s, self.begin)

    def _bug(self, name: str, error: BaseException) -> None:
        self.around.watch.fault("nothing ends by an error of its own", f"{name}: {error!r}")


class Machine(Seat):
    """A machine, and the lives of its agent."""

    def __init__(self, name: str, around: Surroundings, ground: Ground) -> None:
        super().__init__(name, around)
        self.ground = ground
        self.agent: Agent | None = None

    def _begin(self, life: Life) -> None:
        around, machine = self.around, MachineName(self.name)
        values = ValuesEnd(around.words, life)
        around.words.join(values)
        end = _WatchedEnd(around.network, machine, life, values)
        end.watch = around.watch
        around.network.join(end)
        self.agent = Agent(
            identity=Identity(
                machine=machine,
                controller_key=KEY.verify_key,
                boot=f"{self.name}-{self.lives}",
            ),
            host=Host(
                files=LifeFiles(self.ground, life),
                artifacts=LifeArtifacts(self.ground, life),
                processes=LifeProcesses(self.ground, life),
                sources=LifeSources(self.ground, life),
                facts=LifeFacts(self.ground),
                volumes=LifeVolumes(self.ground, life),
            ),
            bus=end,
            clock=self.clock,
            spread=around.chance.share,
        )
        life.spawn(self.agent.run())


@dataclass(slots=True)
class Desk:
    """A controller that serves, as people reach it."""

    life: Life
    controller: Controller
    is_serving: bool = field(default=False)


class Control(Seat):
    """A place for a controller; where there are two, they race for the lease."""

    desk: Desk | None = None
    is_alone = True
    """As the embedded one is by its lock: each life has the lease of the one before."""

    def _begin(self, life: Life) -> None:
        around = self.around
        inventory = LifeInventory(around.database, life)
        controller = Controller(
            inventory=inventory,
            planning=around.planning,
            offering=Offering(
                inventory=inventory,
                bus=around.network.controller(life),
                clock=self.clock,
                key=KEY,
            ),
            store=around.store,
            clock=self.clock,
            agents=_no_supervisor,
            permit=_all_permitted,
            hold_ms=fact_order.HOLD_MS,
        )
        self.desk = Desk(life, controller)
        life.spawn(self._run(self.desk, inventory))

    async def _run(self, desk: Desk, inventory: LifeInventory) -> None:
        holder = self.name if self.is_alone else f"{self.name}-{self.lives}"
        await parts_leasing.take(inventory, self.clock, holder)
        self.around.log(self.name, "has the lease")
        desk.is_serving = True
        controller, life = desk.controller, desk.life
        life.spawn(controller.run())
        life.spawn(
            self.around.network.controller(life).serve(
                on_ask=controller.on_ask,
                on_report=controller.on_report,
                on_facts=controller.facts.on_facts,
                on_beat=controller.on_beat,
            )
        )
        await leasing.keep(inventory, self.clock, holder)
        life.kill("without its lease")


async def _all_permitted(rights: Mapping[MachineName, Rights]) -> None:
    """This bus lets everybody say and read everything."""


async def _no_supervisor(machines: Sequence[str]) -> None:
    """The machines of a simulation have their agents already."""
    del machines
