"""What happens to a simulated fleet, and how it is healed in the end."""

import asyncio
from collections.abc import Callable, Mapping

from keyplane.converge import saved
from keyplane.model.host import PathKind
from keyplane.model.names import MachineName
from keyplane.testing.simulation.network import Odds
from keyplane.testing.simulation.overseers import Overseers
from keyplane.testing.simulation.parts import Machine, Seat
from keyplane.testing.simulation.people import People
from keyplane.testing.simulation.placers import Placers
from keyplane.testing.simulation.world import World

DAY_MS = 86_400_000
CHANGED = b"changed by hand"
"""Of a file that the agent's ledger has; where that is lost, the file is somebody else's."""


class Happenings:
    """Draws what happens next.

    Which kinds of it happen at all is drawn once for a run: most faults are found where few
    others are in their way.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance
        people = People(world)
        self.overseers = Overseers(world)
        self.placers = Placers(world)
        kinds: Mapping[Callable[[], str], int] = {
            people.edits: 12,
            people.at_a_machine: 3,
            people.says: 3,
            people.sets: 3,
            people.pins: 1,
            people.rolls_back: 2,
            self._crash_agent: 6,
            self._outlived_report: 2,
            self._crash_controller: 5,
            self._process_ends: 5,
            self._network: 4,
            self._bus_gone: 2,
            self._inventory: 4,
            self._backup: 4,
            self._restore: 2,
            self._store: 2,
            self._disk_full: 2,
            self._host_busy: 2,
            self._stubborn: 1,
            self._clock: 4,
            self._power: 2,
            self._saved_lost: 2,
            self._drift: 2,
            self._foreign: 2,
            self._port: 3,
            self._hang: 2,
            self._freeze: 4,
            self.overseers.word: 5,
        }
        if world.fleet.has_sets:
            kinds = {**kinds, self.placers.word: 16, self._hang: 4, self._process_ends: 3}
        if world.fleet.has_mistakes:
            kinds = {**kinds, people.errs: 20}
        often = self._chance.between(0.2, 1.0)
        self._kinds = {
            kind: weight
            for kind, weight in kinds.items()
            if kind in (people.edits, people.errs) or self._chance.happens(often)
        }

    def happen(self) -> None:
        said = self._chance.weighed(self._kinds)()
        if said:
            self._world.log("world", said)

    def _for(self, low: float, high: float, undo: Callable[[], None]) -> float:
        """Undo it after a while."""
        length = self._chance.between(low, high)
        asyncio.get_running_loop().call_later(length, undo)
        return length

    def _machine(self) -> Machine:
        return self._world.machines[self._chance.pick(list(self._world.machines))]

    # What is on machines.

    def _drift(self) -> str:
        machine = self._machine()
        files = machine.ground.memory.files
        ours = [
            path
            for path, node in sorted(files.nodes.items())
            if node.seen.kind is PathKind.FILE
            and self._world.watch.owns(MachineName(machine.name), path)
        ]
        if not ours:
            return ""
        path = self._chance.pick(ours)
        if self._chance.happens(0.5):
            files.put(path, CHANGED)
        else:
            del files.nodes[path]
        return f"somebody changes {path} of {machine.name}"

    def _foreign(self) -> str:
        machine = self._machine()
        instances = sorted(self._world.fleet.instances)
        if not instances:
            return ""
        name = self._chance.pick(instances)
        path = self._chance.pick(
            [f"/etc/{name}/other", f"/etc/{name}/motd", f"/var/lib/{name}/data", "/etc/hosts"]
        )
        files = machine.ground.memory.files
        ledger = self._world.watch.ledger(MachineName(machine.name))
        taken = files.observe(path).kind is not PathKind.ABSENT
        if taken or (ledger is not None and path in ledger.paths):
            return ""
        content = f"foreign {path}".encode()
        files.put(path, content)
        self._world.watch.foreign(MachineName(machine.name), path, content)
        return f"somebody puts {path} on {machine.name}"

    def _port(self) -> str:
        """A process ends, and somebody else listens on its port from then on."""
        machine = self._machine()
        declaration = self._world.watch.declaration(MachineName(machine.name))
        running = sorted(machine.ground.memory.running())
        if declaration is None or not running:
            return ""
        entry, unit = self._chance.pick(running)
        declared = declaration.entries.get(entry)
        if declared is None or not declared.listens:
            return ""
        port = self._chance.pick(sorted(declared.listens.values()))
        taken = machine.ground.memory.processes.foreign_ports
        taken.add(port)
        machine.ground.end(entry, unit, code=1)
        length = self._for(1, 90, lambda: taken.discard(port))
        return f"somebody takes port {port} of {entry} for {length:.0f} s"

    # Processes and machines.

    def _doom(self, seat: Seat, high: int) -> str:
        if not seat.is_up or seat.life is None:
            return ""
        boundaries = self._chance.count(1, high)
        seat.life.doom(boundaries)
        return f"{seat.name} will be killed after {boundaries} boundaries"

    def _crash_agent(self) -> str:
        return self._doom(self._machine(), 30)

    def _outlived_report(self) -> str:
        """The first report of an agent's life comes after those of the next."""
        machine = self._machine()
        if not machine.is_up or machine.life is None:
            return ""

        def sent() -> None:
            loop = asyncio.get_running_loop()
            if machine.life is not None:
                loop.call_later(0.05, machine.life.kill, "killed with a report on its way")

        self._world.around.network.outlived[MachineName(machine.name)] = sent
        machine.life.kill("killed")
        return f"the next report of {machine.name} will outlive its agent"

    def _crash_controller(self) -> str:
        return self._doom(self._chance.pick(self._world.controls), 20)

    def _freeze(self) -> str:
        """A controller stands still for longer than its lease, and does not know it.

        One that does so already goes on when it was to: else no rollout would end in its time.
        """
        seat = self._chance.pick(self._world.controls)
        if not seat.is_up or seat.life is None or seat.life.is_frozen:
            return ""
        length = self._chance.between(2, 60)
        seat.life.freeze(length)
        self._world.watch.facts.stands_still(length)
        return f"{seat.name} stands still for {length:.0f} s"

    def _process_ends(self) -> str:
        machine = self._machine()
        running = sorted(machine.ground.memory.running())
        if not running:
            return ""
        entry, unit = self._chance.pick(running)
        code, unseen = self._chance.count(0, 1), self._chance.happens(0.2)
        machine.ground.end(entry, unit, code=code, unseen=unseen)
        return f"{entry}/{unit} ends with {code}{', unseen' if unseen else ''}"

    def _power(self) -> str:
        machine = self._machine()
        ground = machine.ground
        for (entry, unit), found in ground.memory.running().items():
            del entry, unit
            for process in found:
                self._world.watch.ended(ground.name, process, unseen=True)
        ground.memory.processes.lose()
        ground.dying.clear()
        if machine.life is not None:
            machine.life.kill("without power")
        return ""

    def _saved_lost(self) -> str:
        machine = self._machine()
        state = machine.ground.memory.files.state
        lost = self._chance.pick(
            ((saved.LEDGER,), (saved.DECLARATION,), (saved.LEDGER, saved.DECLARATION))
        )
        if machine.life is not None:
            machine.life.kill(f"killed, and has lost its {' and '.join(lost)}")
        for name in lost:
            if self._chance.happens(0.5) and name in state:
                state[name] = state[name][: len(state[name]) // 2]
            else:
                state.pop(name, None)
        self._world.watch.lost(
            MachineName(machine.name),
            ledger=saved.LEDGER in lost,
            declaration=saved.DECLARATION in lost,
        )
        return ""

    def _hang(self) -> str:
        """A machine is off for so long that everybody gives it up."""
        machine = self._machine()
        machine.is_off = True
        if machine.life is not None:
            machine.life.kill("off")

        def back() -> None:
            machine.is_off = False
            machine.begin()

        return f"{machine.name} is off for {self._for(5, self._chance.pick((60, 400, 900)), back):.0f} s"

    def _disk_full(self) -> str:
        ground = self._machine().ground
        ground.is_full = True

        def undo() -> None:
            ground.is_full = False

        length = self._for(0.5, 40, undo)
        now = asyncio.get_running_loop().time()
        self._world.watch.disk_full(ground.name, now + length)
        return f"the disk of {ground.name} is full for {length:.0f} s"

    def _host_busy(self) -> str:
        ground = self._machine().ground
        ground.busy = self._chance.pick((0.1, 0.5, 1.0))

        def undo() -> None:
            ground.busy = 0.0

        return f"{ground.name} fails {ground.busy:.0%} for {self._for(1, 40, undo):.0f} s"

    def _stubborn(self) -> str:
        ground = self._machine().ground
        ground.stubborn = 0.5
        return f"processes of {ground.name} ignore TERM"

    def _clock(self) -> str:
        at_controls = self._chance.happens(0.6)
        seat = self._chance.pick(self._world.controls) if at_controls else self._machine()
        by_ms = self._chance.pick((-DAY_MS, -60_000, -5_000, 5_000, 60_000, DAY_MS))
        seat.clock.skew_ms += by_ms
        return f"the clock of {seat.name} jumps by {by_ms / 1000:.0f} s"

    # What is between them.

    def _network(self) -> str:
        network = self._world.around.network
        network.odds = Odds(
            lost=self._chance.pick((0.0, 0.05, 0.3)),
            late=self._chance.pick((0.0, 0.1, 0.4, 0.8)),
            twice=self._chance.pick((0.0, 0.2)),
            stale=self._chance.pick((0.0, 0.3, 0.6)),
        )

        def undo() -> None:
            network.odds = Odds()

        return f"the bus is bad for {self._for(5, 60, undo):.0f} s: {network.odds}"

    def _bus_gone(self) -> str:
        network = self._world.around.network
        if not network.is_up:
            return ""
        network.crash()

        def back() -> None:
            if not network.is_up:  # it may have been healed meanwhile
                network.restart()
                self._world.log("bus", "is back")

        return f"the bus is gone for {self._for(0.2, 60, back):.0f} s"

    def _inventory(self) -> str:
        database = self._world.around.database
        database.away = self._chance.pick((0.0, 0.05, 0.3, 1.0))
        database.unanswered = self._chance.pick((0.0, 0.2, 0.6))
        database.is_full = self._chance.happens(0.3)

        def undo() -> None:
            database.away = database.unanswered = 0.0
            database.is_full = False

        length = self._for(0.5, 30, undo)
        return f"the inventory fails {database.away:.0%} for {length:.0f} s"

    def _backup(self) -> str:
        self._world.back_up()
        return "somebody backs the inventory up"

    def _restore(self) -> str:
        self._world.restore()
        return "somebody restores the inventory from a backup"

    def _store(self) -> str:
        store = self._world.around.store
        store.is_down = True

        def undo() -> None:
            store.is_down = False

        return f"the store is down for {self._for(1, 60, undo):.0f} s"

    # The end of it all.

    def heal(self) -> None:
        """Nothing fails from here on, and people mend what only they can."""
        world = self._world
        world.log("world", "is healed")
        world.watch.healed()
        world.around.network.odds = Odds()
        world.around.network.outlived.clear()
        if not world.around.network.is_up:
            world.around.network.restart()
        database = world.around.database
        database.away = database.unanswered = 0.0
        database.is_full = False
        world.around.store.is_down = False
        world.fleet.mend()
        for machine in world.machines.values():
            machine.ground.is_full = False
            machine.ground.busy = machine.ground.stubborn = 0.0
            machine.ground.memory.processes.foreign_ports.clear()
            machine.is_off = False
        for seat in (*world.controls, *world.machines.values()):
            if seat.life is not None:
                seat.life.pardon()
            seat.begin()

    def let_go(self) -> None:
        """Who is kept stopped keeps the others of its set from being stopped for anything."""
        for machine in self._world.machines.values():
            self._let_go(machine)

    def _let_go(self, machine: Machine) -> None:
        name = MachineName(machine.name)
        for entry in sorted(self._world.watch.stopped(name)):
            if not entry.startswith(("site-", "farm-")) or machine.agent is None:
                continue  # of the others there is one each
            self._world.watch.said_here(name, entry, stop=False)
            if machine.agent.start_entry(entry, "ana"):
                self._world.log("person", f"starts {entry} again")

    def clear_conflicts(self) -> None:
        """People take away the files that agents refuse to write over."""
        for machine in self._world.machines.values():
            name = MachineName(machine.name)
            declaration = self._world.watch.declaration(name)
            ledger = self._world.watch.ledger(name)
            nodes = machine.ground.memory.files.nodes
            meant = {path for each in self._world.fleet.instances.values() for path in each.paths()}
            changed = {path for path in meant & nodes.keys() if nodes[path].content == CHANGED}
            for path in sorted({*self._world.watch.foreign_paths(name), *changed}):
                if path in meant and (ledger is None or path not in ledger.paths):
                    nodes.pop(path, None)
                    self._world.watch.foreign(name, path, None)
                    self._world.log("person", f"removes {path} of {name}, which is in the way")
            for entry in declaration.entries.values() if declaration else ():
                configs = (path for unit in entry.units.values() for path in unit.config)
                for path in (*entry.files, *configs):
                    if path in nodes and (ledger is None or path not in ledger.paths):
                        del nodes[path]
                        self._world.watch.foreign(name, path, None)
                        self._world.log("person", f"removes {path} of {name}")
