"""The simulated fleet: its parts, its time, and the log of all that happens."""

import asyncio
import json
from collections.abc import Callable, Mapping

from keyplane.converge.wanted import values_path
from keyplane.model.declaration import NO_OFFER
from keyplane.model.module import ReactionKind
from keyplane.model.names import EntryId, MachineName, UnitName
from keyplane.model.reaction import Contract
from keyplane.model.volumes import OrderKind
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import RefusedError
from keyplane.parts.controller import Controller
from keyplane.ports.errors import PortError
from keyplane.ports.fact_order import StoredFacts
from keyplane.testing.host import MemoryHost
from keyplane.testing.inventory import Backup, MemoryInventory
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.fleet import Fleet
from keyplane.testing.simulation.host import Ground
from keyplane.testing.simulation.inventory import Database
from keyplane.testing.simulation.needs import Needs
from keyplane.testing.simulation.network import Network
from keyplane.testing.simulation.parts import KEY, Control, Desk, Machine, Surroundings
from keyplane.testing.simulation.readings import VARIABLE, Readings, path_of
from keyplane.testing.simulation.values import Words
from keyplane.testing.simulation.watch import Believed, Watch
from keyplane.testing.store import MemoryStore

MACHINES = ("alpha", "beta", "gamma", "delta", "epsilon")
AUDIT_MAX = 10_000
"""All of it: what people said on machines stands there too."""
COMMITTING = (
    *("apply", "set", "pin", "unpin", "rollback", "facts"),
    *("cordon", "drain", "uncordon", "machine remove"),
)
"""What makes a target."""


class World:
    """Make it within the loop."""

    def __init__(  # noqa: PLR0913  # what there may be in a fleet
        self,
        chance: Chance,
        values: Chance,
        facts: Chance,
        *,
        has_values: bool,
        has_facts: bool,
        has_sets: bool,
        has_mistakes: bool,
    ) -> None:
        """`values` draws what there is of dynamic values, and `facts` of facts, if there are any."""
        self.chance = chance
        self.values = values
        self.facts = facts
        readings = Readings(values) if has_values else None
        self.lines: list[str] = []
        truth = MemoryInventory()
        self.truth = truth
        self.watch = Watch(truth=truth, key=KEY.verify_key, log=self.log)
        self.watch.facts.has_others = has_sets
        self.watch.values.patient = readings is not None and readings.patient
        network = Network(chance, self.log, self.watch.facts.heard)
        self.around = Surroundings(
            chance=chance,
            network=network,
            words=Words(network, values),
            database=Database(truth=truth, chance=chance, watch=self.watch),
            store=MemoryStore(),
            watch=self.watch,
            log=self.log,
        )
        names = MACHINES[: chance.count(3, len(MACHINES))]
        self.machines = {name: self._machine(name) for name in names}
        self.controls = [Control("controller", self.around)]
        if chance.happens(0.4):
            self.controls.append(Control("standby", self.around))
            for control in self.controls:
                control.is_alone = False
        self.fleet = Fleet(
            names,
            readings=readings,
            needs=Needs(facts) if has_facts else None,
            has_sets=has_sets,
            has_mistakes=has_mistakes,
        )
        self.text: dict[str, bytes] = {}
        """What was accepted last."""
        self._backups: list[tuple[Backup, Believed]] = []
        self.back_up()

    def _machine(self, name: str) -> Machine:
        memory = MemoryHost()
        self.watch.add(MachineName(name), memory)
        ground = Ground(
            name=MachineName(name),
            memory=memory,
            chance=self.chance,
            store=self.around.store,
            watch=self.watch,
        )
        return Machine(name, self.around, ground)

    def log(self, who: str, what: str) -> None:
        now = asyncio.get_running_loop().time()
        self.lines.append(f"{now:9.3f} {who:10} {what}")

    def begin(self) -> None:
        for seat in (*self.controls, *self.machines.values()):
            seat.begin()

    def desk(self) -> Desk | None:
        """The controller that people reach."""
        for control in self.controls:
            desk = control.desk
            if control.is_up and desk is not None and desk.is_serving and not desk.life.is_frozen:
                return desk
        return None

    # What people do.

    def back_up(self) -> None:
        """Somebody copies the inventory."""
        self._backups.append((self.truth.backup(), self.watch.backed_up()))

    def restore(self) -> None:
        """Somebody puts a copy of the inventory in its place; the first one is empty."""
        for control in self.controls:
            if control.life is not None:
                control.life.kill("stopped for a restore")
        number = self.chance.count(0, len(self._backups) - 1)
        truth, believed = self._backups[number]
        del self._backups[number + 1 :]
        self.truth.restore(truth)
        self.watch.restored(believed, self.truth.known_facts())
        self.around.planning.forget()
        self.text = {}

    def apply(self) -> None:
        """Somebody applies his text, and waits for what comes of it as long as it is answered."""
        desk = self.desk()
        if desk is None:
            self.log("person", "finds no controller")
            return
        desk.life.spawn(self._apply(desk.controller, self.fleet.text()))

    async def _apply(self, controller: Controller, files: dict[str, bytes]) -> None:
        newest = await self.truth.revision()
        asked = changes.Directory(files=files, over=None if newest is None else newest.number)
        await self.change(controller, asked, lambda _: None)

    async def change(
        self, controller: Controller, asked: changes.Asked, made: Callable[[int], None]
    ) -> None:
        """Somebody has a change made, and hears which revision it made, and what comes of it."""
        try:
            proposal = await controller.propose(messages.Propose(asked=asked))
            # Nobody loses anything by choice: only what is nowhere any more starts empty.
            volumes = {
                each.entry: "start-empty" if each.source is None else "hand-over"
                for each in proposal.volumes
            }
            for each in proposal.volumes:
                if each.source is None:
                    self.watch.volumes.chosen_empty(each.entry)
            await asyncio.sleep(self.chance.between(0.0, 1.0))
            told = await controller.apply(
                messages.Apply(
                    asked=asked,
                    parent=proposal.parent,
                    revision=proposal.revision,
                    generation=proposal.generation,
                    volumes=volumes,
                ),
                who="somebody",
            )
        except RefusedError as error:
            rows = "; ".join(row.code for row in error.problem.diagnostics)
            if not self.fleet.fault:
                self.watch.facts.refused([row.code for row in error.problem.diagnostics])
            self.log("person", f"is refused: {error.problem.code} {rows}")
            return
        except PortError as error:
            self.log("person", f"is answered: {error}")
            return
        self.log("person", f"applied {proposal.generation[7:15]}")
        async for event in told:
            if isinstance(event, messages.Begun) and event.revision is not None:
                made(event.revision)
            if isinstance(event, messages.Ended):
                causes = "; ".join(f"{each.entry}: {each.cause}" for each in event.failures)
                self.log("person", f"is told: {event.outcome} {event.why} {causes}")

    # How it stands.

    async def is_forsaken(self) -> bool:
        """Whether a machine has something of which the inventory, lost since, knows nothing."""
        for name in map(MachineName, self.machines):
            declared = self.watch.declaration(name)
            if declared is not None and declared.entries and not await self.truth.last_offer(name):
                return True
        return False

    async def unsettled(self) -> str:
        """What is not yet as the target says; empty once everything is."""
        target, rollout = await self.truth.target(), await self.truth.rollout()
        if target is None or rollout is None:
            return "there is no target"
        if rollout.open:
            return f"rollout {rollout.number} is open"
        for name, cordon in (await self.truth.cordons()).items():
            here = [e for e in target.entries if cordon.drain and e.endswith(f"@{name}")]
            if kept := [e for e in here if self._is_by_count(e)]:
                return f"{name} is drained, and has {', '.join(kept)}"
        for order in await self.truth.volume_orders():
            if order.kind is not OrderKind.GIVE:
                return f"{order.kind} {order.number} of {order.entry} is not carried out"
        if said := self._unplanned(await self.truth.facts()):
            return said
        reports = await self.truth.reports()
        for name, machine in self.machines.items():
            here = {e: each.entry for e, each in target.entries.items() if e.endswith(f"@{name}")}
            offer = await self.truth.last_offer(MachineName(name))
            if offer is None:
                if here:
                    return f"{name} was never offered anything"
                # One that lost its ledger, where the inventory was lost, is known to nobody.
                if self.watch.accepted(MachineName(name)) > NO_OFFER:
                    return f"{name} has something, and was never offered anything"
                continue
            if not machine.is_up:
                return f"{name} has no agent"
            accepted = self.watch.accepted(MachineName(name))
            if accepted != offer.offer:
                return f"{name} has {accepted} of {offer.offer}"
            stopped = self.watch.stopped(MachineName(name))
            wanted = {
                (entry, unit): planned.digest
                for entry, each in here.items()
                for unit, planned in each.units.items()
                if planned.run_once is not True and entry not in stopped
            }
            running = {
                key: found[0].digest for key, found in machine.ground.memory.running().items()
            }
            if running != wanted:
                return f"{name} runs {sorted(running.items())}, and should run {sorted(wanted.items())}"
            if said := self._unsaid(machine):
                return said
            declaration = self.watch.declaration(MachineName(name))
            if self.watch.idle_archives(MachineName(name)):
                return f"{name} has archives that nothing names"
            if entry := self.watch.unheeded(MachineName(name), await self.truth.words()):
                return f"{name} has not heeded what was said of {entry}"
            declared = {} if declaration is None else dict(declaration.entries)
            if {e: each.key for e, each in declared.items()} != {
                e: each.key for e, each in here.items()
            }:
                return f"{name} accepted something else than the target"
            files = machine.ground.memory.files
            for entry in declared.values():
                for path, file in entry.files.items():
                    if files.observe(path).digest != file.digest:
                        return f"{path} of {name} is not as declared"
                for unit in entry.units.values():
                    for path, config in unit.config.items():
                        if files.observe(path).digest != config.digest:
                            return f"{path} of {name} is not as declared"
            report = reports[MachineName(name)].report if MachineName(name) in reports else None
            if report is None and name not in target.plan.machines:
                continue  # it was removed while it could be heard: what it said last was forgotten
            if report is None or report.offer != offer.offer or report.settled != offer.offer:
                return f"{name} is not reported as settled"
            said = report.entries
            if {e: each.key for e, each in said.items()} != {e: v.key for e, v in here.items()}:
                return f"{name} is reported with other entries"
            for entry, each in said.items():
                sound = "stopped" if entry in stopped else "healthy"
                if each.state != sound and here[entry].units:
                    return f"{entry} is reported {each.state}: {each.cause}"
        return ""

    def _unplanned(self, known: Mapping[MachineName, StoredFacts]) -> str:
        """What a machine is that no plan goes by, or whose reader runs with something else."""
        for name, stored in known.items() if self.fleet.needs is not None else ():
            if stored.moved:
                return f"plans do not go by {', '.join(stored.moved)} of {name}"
            if dict(stored.said) != self.machines[name].ground.facts:
                return f"{name} is not known as it is"
        return ""

    def _is_by_count(self, entry: EntryId) -> bool:
        instance = self.fleet.instances.get(entry.partition(":")[0])
        return instance is not None and instance.count > 0

    def _unsaid(self, machine: Machine) -> str:
        """Which unit does not run with what its provider's service says."""
        declaration = self.watch.declaration(MachineName(machine.name))
        held = self.watch.stopped(MachineName(machine.name))
        for entry, declared in declaration.entries.items() if declaration is not None else ():
            for name, unit in declared.units.items() if entry not in held else ():
                contract = unit.dynamic.get(VARIABLE)
                if contract is not None and (said := self._lacks(machine, entry, name, contract)):
                    return said
        return ""

    def _lacks(self, machine: Machine, entry: EntryId, unit: UnitName, contract: Contract) -> str:
        (source,) = contract.sources
        instance, _, place = source.partition("/")[0].partition(":")
        provider = self.machines[place.partition("@")[2]].ground
        said = provider.exported.get(path_of(instance), b"").decode()
        node = machine.ground.memory.files.nodes.get(values_path(entry, unit))
        found = "" if node is None else json.loads(node.content)[VARIABLE]
        if found != said:
            return f"{entry} has {found} of {source}, which is {said}"
        processes = machine.ground.memory.processes
        runs = [run for run in processes.runs.values() if run.seen.running]
        for run in runs if contract.reaction is ReactionKind.RESTART else ():
            if (run.spec.entry, run.spec.unit) == (entry, unit) and run.spec.env[VARIABLE] != said:
                return f"{entry} runs with {run.spec.env[VARIABLE]}, and {source} is {said}"
        return ""

    async def unrecorded(self) -> str:
        """What of targets and words nobody could look up; empty where all is written down."""
        target, rollout = await self.truth.target(), await self.truth.rollout()
        assert target is not None
        assert rollout is not None
        rows = await self.truth.audit_log(AUDIT_MAX)
        named = [detail["rollout"] for _, _, what, detail in rows if what in COMMITTING]
        if named != list(reversed(self.watch.edits)):
            return f"of the rollouts {self.watch.edits} the audit log has {named}"
        for entry, word in (await self.truth.words()).items():
            what = "stop" if word.stop else "start"
            if (word.at_ms, word.who, what, {"entry": entry, "number": word.number}) not in rows:
                return f"nobody said that {entry} is to {what}"
        (newest,) = await self.truth.history(1)
        if (newest.number, newest.generation) != (target.revision, target.plan.generation):
            return f"revision {newest.number} is not what the target was made from"
        return ""
