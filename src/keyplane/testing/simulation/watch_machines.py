"""What must hold on machines after every event, whatever happens.

Each promise is checked where it could be broken: when an agent saves, starts, stops, writes or
removes, and when a report leaves. Knows nothing of how the product keeps them.
"""

import asyncio
from collections.abc import Callable, Mapping

from keyplane.converge import saved as saved_state
from keyplane.converge.history import History
from keyplane.converge.state import Ledger
from keyplane.model.declaration import (
    NO_OFFER,
    Declaration,
    OfferNumber,
    Report,
    UnitState,
    Word,
)
from keyplane.model.host import ObservedProcess, ProcessSpec
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.parts import agent_publishing
from keyplane.testing.host import MemoryHost
from keyplane.testing.simulation import watch_declared
from keyplane.testing.simulation.host import ProcessKey
from keyplane.testing.simulation.known_machine import KnownMachine
from keyplane.testing.simulation.watch_sets import SetWatch
from keyplane.testing.simulation.watch_values import ValuesWatch
from keyplane.testing.simulation.watch_volumes import VolumeWatch

STALE_S = 1.0
"""An effect that was asked for is begun by then, though a newer declaration has come meanwhile."""
HEARD_S = 2.0
"""An agent has heard of an end by then."""
FOUND_S = 45.0
"""An agent has found an end that nobody told it of: a full pass, and some failures of it."""
TRIED_S, TRIES_MAX = 10.0, 20
"""Starts on a port that somebody else has: a failing unit is tried seven times in ten seconds, and
anew for each offer, each life of the agent and each person's word."""
SETTLED_S = 0.9
"""What has no health check has run a second when it is called healthy, by its agent's clock."""
BURST_MAX = 1_000
"""Things done at one moment: a whole fleet has a hundred to do."""


class MachineWatch:
    """Notes the first promise that is broken, of those that agents keep."""

    def __init__(self, log: Callable[[str, str], None]) -> None:
        self._log = log
        self._machines: dict[MachineName, KnownMachine] = {}
        self._burst: tuple[float, int] = (0.0, 0)
        self.sets = SetWatch(self.fault, self._now)
        self.volumes = VolumeWatch(self.fault, self.declaration)
        self.values = ValuesWatch(self.fault)
        self.broken = ""
        self.is_broken = asyncio.Event()
        self.acts: int = 0
        """How much was done to machines and written down, as a second look must add nothing."""

    def add(self, name: MachineName, memory: MemoryHost) -> None:
        self._machines[name] = KnownMachine(memory)

    def fault(self, promise: str, how: str) -> None:
        self._log("watch", f"BROKEN: {promise}: {how}")
        if not self.broken:
            self.broken = f"{promise}: {how}"
            self.is_broken.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # What the world does to machines.

    def foreign(self, machine: MachineName, path: str, content: bytes | None) -> None:
        """Somebody puts a file of his own there, or takes it away."""
        if content is None:
            self._machines[machine].foreign.pop(path, None)
        else:
            self._machines[machine].foreign[path] = content

    def said_here(self, machine: MachineName, entry: EntryId, *, stop: bool) -> None:
        """A person stops an entry on its machine, or lets it run again."""
        known = self._machines[machine]
        known.words.said_here(entry, self._now())
        if not stop:
            known.stopped.pop(entry, None)

    def said(self, machine: MachineName, entry: EntryId, word: Word) -> None:
        """A person's word to a controller is written down."""
        if (known := self._machines.get(machine)) is not None:
            known.words.said(entry, word, known.ledger)

    def words_lost(self) -> None:
        for known in self._machines.values():
            known.words.lost()

    def unheeded(self, machine: MachineName, words: Mapping[EntryId, Word]) -> str:
        """An entry of which the machine knows a word not that still holds; or nothing."""
        known = self._machines[machine]
        return known.words.unheeded(known.current, known.ledger, words)

    def lost(self, machine: MachineName, *, ledger: bool, declaration: bool) -> None:
        """What an agent had saved is gone."""
        known = self._machines[machine]
        if ledger:
            known.forgot = True
            known.ledger = None
            known.stopped.clear()
            known.refused.clear()
        if declaration:
            known.former.append((self._now(), known.current))
            known.current = None
        known.accepted = max(
            NO_OFFER if known.ledger is None else known.ledger.offer,
            NO_OFFER if known.current is None else known.current.offer,
        )

    def disk_full(self, machine: MachineName, until: float) -> None:
        self._machines[machine].held_until = until + 5.0

    def owns(self, machine: MachineName, path: str) -> bool:
        ledger = self._machines[machine].ledger
        return ledger is not None and path in ledger.paths and ledger.paths[path].applied

    # What agents do.

    def saved(self, machine: MachineName, name: str, content: bytes) -> None:
        known = self._machines[machine]
        if name == saved_state.HISTORY:
            self._noted(machine, saved_state.decode_history(content))
            return
        if name == saved_state.DECLARATION:
            declaration = saved_state.decode_declaration(content)
            assert declaration is not None
            known.former = [each for each in known.former if each[0] > self._now() - 60]
            known.former.append((self._now(), known.current))
            known.current = declaration
            for entry in known.stopped.keys() - declaration.entries.keys():
                del known.stopped[entry]  # it comes back as a new one
            self._accepted(machine, declaration.offer)
            return
        if name == saved_state.REACTIONS:
            now = self._now()
            self.values.saved(machine, content, now=now, is_held=now < known.held_until)
            return
        if name == agent_publishing.STATE:
            self.values.published(content)
        if name != saved_state.LEDGER:
            return
        before, known.ledger = known.ledger, saved_state.decode_ledger(content)
        assert known.ledger is not None
        now = self._now()
        started, wrong = known.words.heeded(known.current, before, known.ledger, now)
        for entry in started:
            known.stopped.pop(entry, None)
        if wrong:
            self.fault("a word is heeded as it was said", wrong)
        if known.current is not None:
            declared = known.current.entries
            known.stopped.update(dict.fromkeys(e for e in known.ledger.stops if e in declared))
        self._accepted(machine, known.ledger.offer)

    def _noted(self, machine: MachineName, history: History | None) -> None:
        assert history is not None
        known = self._machines[machine]
        name, last = known.noted
        if name == history.name and history.last <= last:
            self.fault("no occurrence has another's number", f"{machine} notes {last} again")
        known.noted = history.name, history.last

    def _accepted(self, machine: MachineName, offer: OfferNumber) -> None:
        known = self._machines[machine]
        if offer < known.accepted:
            self.fault("offer numbers never fall", f"{machine} had {known.accepted}, took {offer}")
        known.accepted = max(known.accepted, offer)

    def writing(self, machine: MachineName, path: str) -> None:
        known = self._machines[machine]
        if path in known.foreign:
            self.fault("a foreign file is never touched", f"{path} of {machine} is written")
        if known.ledger is None or path not in known.ledger.paths:
            self.fault("the ledger is saved first", f"{path} of {machine} is written")

    def removing(self, machine: MachineName, path: str) -> None:
        known = self._machines[machine]
        if path in known.foreign:
            self.fault("a foreign file is never touched", f"{path} of {machine} is removed")
        owned = None if known.ledger is None else known.ledger.paths.get(path)
        if owned is None:
            self.fault("nothing outside the ledger is removed", f"{path} of {machine}")
        elif owned.found or path.startswith("/var/lib/"):
            self.fault("what must not be lost is never removed", f"{path} of {machine}")

    def letting_go(self, machine: MachineName, digest: Digest) -> None:
        """An unpacked archive goes from the cache."""
        known, what = self._machines[machine], f"{digest[7:15]} of {machine}"
        for run in known.memory.processes.runs.values():
            if run.seen.running and run.spec.archive == digest:
                self.fault("an archive stays while it is needed", f"{what}: {run.spec.unit} runs")
        owned = known.ledger.paths.values() if known.ledger else ()
        if any(each.applied and each.spec.digest == digest for each in owned):
            self.fault("an archive stays while it is needed", f"{what}: it stands at a path")
        if all(
            each is not None and watch_declared.names(each, digest) for each in self._recent(known)
        ):
            self.fault("an archive stays while it is needed", f"{what}: it is declared")

    def idle_archives(self, machine: MachineName) -> set[Digest]:
        """What is about to be let go."""
        known = self._machines[machine]
        kept = set[Digest]()
        if known.ledger is not None:
            kept = {*known.ledger.archives, *known.ledger.former_archives}
            kept |= {each.spec.digest for each in known.ledger.paths.values() if each.spec.digest}
        return {
            each
            for each in known.memory.artifacts.present() - kept
            if known.current is not None and not watch_declared.names(known.current, each)
        }

    def foreign_paths(self, machine: MachineName) -> tuple[str, ...]:
        return tuple(sorted(self._machines[machine].foreign))

    def starting(self, machine: MachineName, spec: ProcessSpec) -> None:
        what = f"{spec.entry}/{spec.unit} {spec.digest[7:15]} on {machine}"
        known = self._machines[machine]
        if not any(
            watch_declared.digest_of(each, spec.entry, spec.unit) == spec.digest
            for each in self._recent(known)
        ):
            self.fault("no unit runs what is not declared", what)
        if spec.entry in known.stopped and self._now() > known.held_until:
            self.fault("a person's stop holds", f"{what} is started")
        self.values.starting(machine, spec.entry, spec.unit, dict(spec.env))
        if spec.archive is not None and spec.archive not in known.memory.artifacts.present():
            self.fault("nothing is started from an archive that is not there", what)
        known.refused.pop((spec.entry, spec.unit), None)

    def port_held(self, machine: MachineName, spec: ProcessSpec, why: str) -> None:
        """A start came upon a port that somebody else has."""
        known, unit, now = self._machines[machine], (spec.entry, spec.unit), self._now()
        known.refused[unit] = spec.digest, why
        lately = [*(each for each in known.tries.get(unit, ()) if each > now - TRIED_S), now]
        known.tries[unit] = lately
        if len(lately) > TRIES_MAX:
            what = f"{spec.entry}/{spec.unit} on {machine}"
            self.fault("a taken port is not tried over and over", f"{what}: {len(lately)} times")

    def started(self, machine: MachineName) -> None:
        known = self._machines[machine]
        running = known.memory.running()
        for (entry, unit), found in running.items():
            recent = self._recent(known)
            most = 1 + any(watch_declared.starts_first(each, entry, unit) for each in recent)
            if len(found) > most:
                digests = ", ".join(each.digest[7:15] for each in found)
                self.fault("no unit has two processes", f"{entry}/{unit} on {machine}: {digests}")
        keys = [(each.entry, each.unit, each.digest) for one in running.values() for each in one]
        known.began = {key: known.began.get(key, self._now()) for key in keys}

    def stopping(self, machine: MachineName, key: ProcessKey) -> None:
        entry, unit, _ = key
        known = self._machines[machine]
        run = known.memory.processes.runs.get(key)
        if run is None or not run.seen.running:
            return
        if entry in known.stopped or (known.ledger and entry in known.ledger.stops):
            return
        if not all(watch_declared.keeps(each, key) for each in self._recent(known)):
            self._hands_over(machine, known, key)
        elif not self.values.is_due(machine, entry, unit):
            self.fault(
                "what did not change keeps its process", f"{entry}/{unit} on {machine} is stopped"
            )

    def _hands_over(self, machine: MachineName, known: KnownMachine, key: ProcessKey) -> None:
        """What is taken over from is stopped once the one that takes over is well."""
        entry, unit, digest = key
        others = [one for one in known.began if one[:2] == (entry, unit) and one[2] != digest]
        if known.forgot or len(others) > 1:
            return  # of three versions one serves nobody
        if any(self._is_well(known, one) for one in others):
            return  # that one serves: this one was overtaken before it did
        if not others and watch_declared.took_ports_round(known.current, known.ledger, entry):
            return  # each of them would wait for the others
        if self.values.is_in_want(machine, entry, unit):
            return  # neither of them is to run
        if watch_declared.keeps(known.current, key) and self.values.is_due(machine, entry, unit):
            return  # it has taken over, and is started anew for a value
        if not any(
            watch_declared.allows_stop(each, key, lambda one: self._is_well(known, one))
            for each in self._recent(known)
        ):
            self.fault(
                "what is taken over from stays until the other is well",
                f"{entry}/{unit} {digest[7:15]} on {machine} is stopped",
            )

    def _is_well(self, known: KnownMachine, key: ProcessKey) -> bool:
        run = known.memory.processes.runs.get(key)
        if run is None:
            return False
        if not run.seen.running:
            end = known.ends.get((run.seen.pid or 0, key[2]))
            return end is not None and self._now() - end[0] < HEARD_S
        has_check = any(watch_declared.has_check(each, key) for each in self._recent(known))
        return has_check or self._now() - known.began.get(key, self._now()) >= SETTLED_S

    def ended(self, machine: MachineName, process: ObservedProcess, *, unseen: bool) -> None:
        assert process.pid is not None or not process.running
        if process.pid is not None:
            ends = self._machines[machine].ends
            ends[process.pid, process.digest] = (self._now(), unseen)

    def acted(self, machine: MachineName, what: str) -> None:
        self.acts += 1
        self._log(machine, what)
        at, count = self._burst
        count = 1 if at != self._now() else count + 1
        self._burst = self._now(), count
        if count == BURST_MAX:
            self.fault("nothing spins", f"{machine} does {what}, {BURST_MAX} times at once")

    def _recent(self, known: KnownMachine) -> list[Declaration | None]:
        """The accepted declaration, and those that were until lately."""
        now = self._now()
        since = 60.0 if now < known.held_until else STALE_S
        return [known.current, *(each for until, each in known.former if until > now - since)]

    def reporting(self, report: Report) -> None:
        """A report leaves its machine."""
        self._log(report.machine, f"reports {report.sequence} with {report.offer}")
        known = self._machines[report.machine]
        running = {
            (each.pid, each.digest) for each in known.memory.processes.observe() if each.running
        }
        for entry, each in report.entries.items():
            for name, unit in each.units.items():
                digest, why = known.refused.get((entry, name), (None, ""))
                failed = unit.state in {UnitState.BACKING_OFF, UnitState.FAILED}
                if failed and unit.digest == digest and why not in (unit.cause or ""):
                    self.fault("a taken port is told with who has it", f"{entry}: {unit.cause}")
                if unit.state is UnitState.HEALTHY and not self._lately(
                    known, running, unit.pid, unit.digest
                ):
                    self.fault(
                        "what is healthy runs",
                        f"{report.machine} reports {entry}/{name} as {unit.pid}",
                    )

    def _lately(
        self,
        known: KnownMachine,
        running: set[tuple[int | None, Digest]],
        pid: int | None,
        digest: Digest,
    ) -> bool:
        if (pid, digest) in running:
            return True
        end = None if pid is None else known.ends.get((pid, digest))
        if end is None:
            return False
        at, unseen = end
        now = self._now()
        return now - at < (FOUND_S if unseen else HEARD_S) or now < known.held_until

    def stopped(self, machine: MachineName) -> Mapping[EntryId, None]:
        """Entries that a person stopped, or let run again in a word that was not saved."""
        known = self._machines[machine]
        return {**known.stopped, **dict.fromkeys(known.ledger.stops if known.ledger else ())}

    def accepted(self, machine: MachineName) -> OfferNumber:
        return self._machines[machine].accepted

    def ledger(self, machine: MachineName) -> Ledger | None:
        return self._machines[machine].ledger

    def declaration(self, machine: MachineName) -> Declaration | None:
        return self._machines[machine].current
