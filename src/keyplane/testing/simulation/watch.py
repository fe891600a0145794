"""What must hold of targets, offers and rollouts after every event, whatever happens.

Each promise is checked where it could be broken: when a controller commits, offers or saves, and
when a report is recorded. Of a plan it reads keys, digests and edges.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import nacl.signing

from keyplane import wire
from keyplane.model.declaration import NO_OFFER, Declaration, OfferNumber, Report
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.inventory import Change, PlannedEntry, StoredOffer, StoredPlan, StoredRollout
from keyplane.rollout import deadlines
from keyplane.rollout import state as rollout_state
from keyplane.rollout.outcome import Lack
from keyplane.rollout.state import Phase
from keyplane.testing.inventory import MemoryInventory
from keyplane.testing.simulation import watch_facts
from keyplane.testing.simulation.watch_facts import FactsWatch
from keyplane.testing.simulation.watch_machines import MachineWatch
from keyplane.testing.simulation.watch_placing import PlacingWatch
from keyplane.testing.simulation.watch_rollouts import SOUND, RolloutWatch

UNHINDERED_S = 70.0
"""So long after all is healed, nothing is left to wait for: two full passes of an agent."""
PATIENT_MS = 100_000
"""A policy that gives less than that may give up what only waits for its next try."""
LATE_S = 75.0
"""A rollout has ended so long after its deadline: its controller lives through outages of the
inventory and ticks once a second."""

_DEFECTS = ("no such file: missing", "exit 1")
"""What units of a text say that nobody has mended yet."""
_DEFECTIVE = (("missing",), ("exit", "1"))
"""How their commands begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """What was written down at the time of a backup."""

    offers: Mapping[MachineName, OfferNumber]
    declared: Mapping[EntryId, Digest]
    proved: Mapping[EntryId, Digest]
    target: StoredPlan | None
    rollout: int
    at_once: bool
    edits: tuple[int, ...]


class Watch(MachineWatch):
    """Notes the first promise that is broken, by an agent or by a controller."""

    def __init__(
        self,
        *,
        truth: MemoryInventory,
        key: nacl.signing.VerifyKey,
        log: Callable[[str, str], None],
    ) -> None:
        super().__init__(log)
        self._truth = truth
        self._key = key
        self._offers: dict[MachineName, OfferNumber] = {}
        self._declared: dict[EntryId, Digest] = {}
        self._proved: dict[EntryId, Digest] = {}
        """Entries that were reported well as they are declared now."""
        self._target: StoredPlan | None = None
        self._progress: tuple[int, int, float] = (0, 0, 0.0)
        """Of the latest rollout: its number, when it says that it progressed, and when it did."""
        self._at_once = False
        self._left: frozenset[MachineName] = frozenset()
        """Machines that the latest rollout does not wait for."""
        self._healed_s = float("inf")
        self.facts = FactsWatch(self.fault, self._now)
        self.placing = PlacingWatch(self.fault)
        self._rollouts = RolloutWatch(self.fault, self._now, self.placing.ended)
        self._is_doomed = False
        """What the latest rollout goes to, or comes from, has a unit that must fail."""
        self.targets = 0
        self.edits: tuple[int, ...] = ()
        """Numbers of rollouts that began with another text; the others send what is there."""

    async def committed(
        self,
        stored: StoredPlan,
        row: StoredRollout,
        *,
        change: Change | None,
        known: Mapping[MachineName, StoredFacts],
        is_running: bool,
    ) -> None:
        """A target, or a push to the one there is, and facts as they were known before it.

        `is_running` if machines reported entries.
        """
        self.acts += 1
        self.targets += 1
        self.sets.committed(stored, row)
        self._log("inventory", f"target {stored.plan.generation[7:15]}, rollout {row.number}")
        before = dict[EntryId, PlannedEntry]() if self._target is None else self._target.entries
        if change is not None:
            self.placing.committed(stored, before, change, await self._truth.cordons())
        for entry, planned in row.base.items():
            key, declared = planned.entry.key, self._declared.get(entry)
            former = before[entry].entry.key if entry in before else None
            # What is just being offered counts as declared.
            if key not in (declared, former):
                self.fault(
                    "a target is planned against what is declared",
                    f"{entry} is {declared}, and not {key}",
                )
        # Machines that run something, and no target: it was lost, and order would undo what runs.
        self._at_once = self._target is None and is_running
        self.volumes.committed(stored, row)
        before, self._target = self._target, stored
        self.edits += (row.number,) if change is not None else ()
        self._is_doomed = any(map(_is_defective, (*stored.entries.values(), *row.base.values())))
        self._progress = (row.number, 0, self._now())
        state = rollout_state.decode(row.state)
        self._left = frozenset() if state is None else state.absent
        revision = await self._truth.revision(stored.revision)
        assert revision is not None, "a target is of a revision"
        former = None if before is None else await self._truth.revision(before.revision)
        if before is not None and former is not None and change is not None:
            was = watch_facts.Made(files=former.files, entries=before.entries.keys())
            made = watch_facts.Made(files=revision.files, entries=stored.entries.keys())
            self.facts.committed(was, made, change, row.who, known)
        self._rollouts.begun(stored, row, state, revision.files, at_once=self._at_once)

    def facts_recorded(self, stored: StoredFacts) -> None:
        self.facts.recorded(stored)

    @property
    def rollout(self) -> int:
        """The number of the latest one."""
        return self._progress[0]

    def backed_up(self) -> Believed:
        """What goes with a backup of the inventory, for `restored`."""
        return Believed(
            offers=dict(self._offers),
            declared=dict(self._declared),
            proved=dict(self._proved),
            target=self._target,
            rollout=self._progress[0],
            at_once=self._at_once,
            edits=self.edits,
        )

    def restored(self, backup: Believed, facts: Mapping[MachineName, StoredFacts]) -> None:
        """The inventory is what it was then; machines go on from what they have."""
        self.sets.restored()
        self.placing.restored()
        self.volumes.restored()
        self.facts.restored(facts)
        self._offers = dict(backup.offers)
        self._declared = dict(backup.declared)
        self._proved = dict(backup.proved)
        self._target, self._at_once = backup.target, backup.at_once
        self.edits = backup.edits
        self._progress = (backup.rollout, 0, self._now())
        self._rollouts.restored()
        self._is_doomed = True  # what its base was is not known here
        self.words_lost()

    def healed(self) -> None:
        """Nothing is in the way of anything from now on."""
        self._healed_s = self._now()

    def saved_rollout(self, number: int, saved: bytes) -> None:
        state = rollout_state.decode(saved)
        if state is not None:
            self._rollouts.saved(number, state, self._declared)
        if state is None or number != self._progress[0]:
            return
        self._left = state.left
        self.volumes.saved_rollout(saved)
        _, progressed_ms, at = self._progress
        overdue = state.phase is Phase.FAILED and not any(
            each.lack is Lack.SUCCESS for each in state.troubles
        )
        if overdue and self._now() - at < state.patience_ms[state.step] / 1000 - 10:
            self.fault(
                "a rollout is given its time",
                f"rollout {number} failed after {self._now() - at:.0f} s without progress",
            )
        patient = state.patience_ms[state.step] >= PATIENT_MS if state.steps else False
        broken = self._is_doomed and any(
            cause in each.said for each in state.troubles for cause in _DEFECTS
        )
        if overdue and patient and not broken and self._now() - self._healed_s > UNHINDERED_S:
            self.fault(
                "a rollout that nothing hinders comes to its end",
                f"rollout {number}: {'; '.join(each.said for each in state.troubles)}",
            )
        if state.progressed_ms != progressed_ms:
            self._progress = (number, state.progressed_ms, self._now())

    async def check_rollout(self) -> None:
        """One that came to nothing has ended by now."""
        row = await self._truth.rollout()
        state = None if row is None else rollout_state.decode(row.state)
        if row is None or state is None or not row.open or row.number != self._progress[0]:
            return
        if state.phase is Phase.PAUSED:
            return  # for a day, if nobody ends it
        waited_s = self._now() - self._progress[2]
        most_ms = deadlines.patient_ms(state) - state.progressed_ms if state.steps else 0
        if waited_s > most_ms / 1000 + LATE_S:
            self.fault("every rollout ends", f"rollout {row.number} is open after {waited_s:.0f} s")

    async def check_ends(self) -> None:
        """Once all is healed, each has ended, and says so."""
        for number in range(self.rollout, 0, -1):
            row = await self._truth.rollout(number)
            state = None if row is None else rollout_state.decode(row.state)
            if state is not None and state.phase.is_open:
                self.fault("every rollout ends", f"rollout {number} is {state.phase} for ever")

    async def offered(self, offer: StoredOffer) -> None:
        self.acts += 1
        machine = offer.machine
        if offer.offer <= self._offers.get(machine, NO_OFFER):
            self.fault("offer numbers never fall", f"{machine} is offered {offer.offer} again")
        self._offers[machine] = offer.offer
        declaration = wire.open_declaration(offer.signed, key=self._key, machine=machine)
        if isinstance(declaration, wire.Refused):
            self.fault("every offer is readable", f"{machine}: {declaration.reason}")
            return
        target, rollout = await self._truth.target(), await self._truth.rollout()
        assert target is not None
        assert rollout is not None
        self._log("inventory", f"offers {machine} {offer.offer}: {_keys(declaration)}")
        if (known := self._machines.get(machine)) and self._now() < known.held_until:
            # With a full disk it may never write down that it took this, and act by it later.
            known.former.append((known.held_until, declaration))
        self._is_of_the_two(declaration, target, rollout)
        if self._at_once:
            self._is_whole(declaration, target)
        state = rollout_state.decode(rollout.state)
        if state is None or not state.back:  # what goes back may come to be as the target has it
            self._keeps_order(declaration, target)
        self._rollouts.offered(declaration, self._declared)
        here = f"@{machine}"
        for entry in [each for each in self._declared if each.endswith(here)]:
            declared = declaration.entries.get(entry)
            if declared is None or declared.key != self._declared[entry]:
                del self._declared[entry]
                self._proved.pop(entry, None)
        self._declared.update({e: each.key for e, each in declaration.entries.items()})

    def _is_of_the_two(
        self, declaration: Declaration, target: StoredPlan, rollout: StoredRollout
    ) -> None:
        state = rollout_state.decode(rollout.state)
        is_back = state is not None and state.back
        for entry, declared in declaration.entries.items():
            if is_back and self._rollouts.was_well(entry, declared.key):
                continue  # as it was before a rollout that this one took over from
            ends = [each.get(entry) for each in (target.entries, rollout.base)]
            planned = [each.entry for each in ends if each is not None]
            digests = {name: unit.digest for name, unit in declared.units.items()}
            if not any(
                each.key == declared.key
                and {name: unit.digest for name, unit in each.units.items()} == digests
                for each in planned
            ):
                self.fault(
                    "what is declared is of the target or of the base",
                    f"{entry} {declared.key[7:15]} is of neither",
                )

    def _is_whole(self, declaration: Declaration, target: StoredPlan) -> None:
        running = {entry for entry, _ in self._machines[declaration.machine].memory.running()}
        # What waits for a fact, and runs nowhere, has nothing to lose.
        here = {
            entry
            for entry, planned in target.entries.items()
            if entry.endswith(f"@{declaration.machine}")
            and (entry in running or not planned.entry.holes)
        }
        if missing := sorted(here - declaration.entries.keys()):
            self.fault(
                "a lost inventory takes nothing away",
                f"{declaration.machine} is offered without {', '.join(missing)}",
            )

    def _keeps_order(self, declaration: Declaration, target: StoredPlan) -> None:
        for edge in target.plan.edges:
            consumer, provider = EntryId(edge.consumer), EntryId(edge.provider)
            declared = declaration.entries.get(consumer)
            wanted = target.entries[consumer].entry.key
            if self._at_once or declared is None or declared.key != wanted:
                continue
            if self._declared.get(consumer) == wanted:
                continue  # it was switched before
            key = target.entries[provider].entry.key
            if self._proved.get(provider) != key and split_entry(provider)[2] not in self._left:
                self.fault(
                    "a consumer is switched after its provider",
                    f"{consumer} is offered, and {provider} {key[7:15]} was not seen well",
                )

    def reported(self, report: Report) -> None:
        self._log("inventory", f"hears {report.boot}/{report.sequence} with {report.settled}")
        self._rollouts.reported(report)
        for entry, each in report.entries.items():
            if each.state in SOUND and self._declared.get(entry) == each.key:
                self._proved[entry] = each.key


def _is_defective(planned: PlannedEntry) -> bool:
    commands = (tuple(unit.command or ()) for unit in planned.entry.units.values())
    return any(command[: len(each)] == each for command in commands for each in _DEFECTIVE)


def _keys(declaration: Declaration) -> str:
    return " ".join(f"{e}={each.key[7:15]}" for e, each in declaration.entries.items()) or "nothing"
