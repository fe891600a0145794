"""One machine's dynamic values under drawn trouble, in virtual time: what must hold, whatever comes.

The agent's own brain and performer on a machine in memory. Words of providers come late, twice and
out of order; the agent is killed between any two effects; units end; people stop and start them;
declarations and rates change; providers fall silent, and come back.
"""

from keyplane.converge import effects, events
from keyplane.converge.reaction_state import News, ReactionState
from keyplane.model.declaration import Reload
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import EntryId
from keyplane.model.reaction import Contract, DeclaredRates
from keyplane.testing.simulation.chance import Chance
from tests.unit.converge.world import BY_ANA, DB, SERVER, WEB, World, entry, unit

PEER, SIZE = "vpn:node@beta/provides/peer/address", "vpn:node@beta/provides/peer/size"
ENTRIES = (WEB, DB)
STEPS = 60

SINGLE = "a unit is acted on once for a window, and a window is as long as its machine says"
BUDGET = "no unit is restarted more often than its budget allows"
FRESH = "no unit is restarted without a fresh value"
WORD = "no unit is stopped but on its provider's word"
LAST = "once all is quiet, each unit runs with the last value"


class Watched(World):
    """Sees each start and stop as it is done."""

    def __init__(self, run: "Run") -> None:
        self.watch = run
        super().__init__()

    def perform(self, effect: effects.Effect) -> None:
        self.watch.doing(effect)
        super().perform(effect)

    def step(self, event: events.Event) -> tuple[effects.Effect, ...]:
        before = self.state
        issued = super().step(event)
        self.watch.stepped(before.reactions, self.state.reactions)
        return issued


class Run:
    """One seed. `broken` is the first promise that was."""

    def __init__(self, seed: int) -> None:
        self.chance = Chance(seed)
        self.broken = ""
        self.numbers = 0
        self.words: dict[str, list[News]] = {PEER: [], SIZE: []}
        self.heard: dict[str, News] = {}
        self.ends = 0
        """Windows that closed, and holds that ended."""
        self.acted: dict[EntryId, int] = {}
        self.restarts: dict[EntryId, list[int]] = {}
        self.env: dict[EntryId, dict[str, str]] = {}
        self.stopping: set[EntryId] = set()
        self.stopped: set[EntryId] = set()
        self.versions = dict.fromkeys(ENTRIES, 1)
        self.retimed = False
        self.patient = self.chance.happens(0.5)
        """No value has a `maxStaleness`."""
        self.rates = self._rates()
        self.world = Watched(self)

    def fault(self, promise: str, how: str) -> None:
        self.broken = self.broken or f"{promise}: {how} at {self.world.now}"

    # What the watch sees.

    def doing(self, effect: effects.Effect) -> None:
        match effect:
            case effects.StopProcess(entry=entry, digest=digest):
                declared = self.world.state.wanted[entry].declared.units[SERVER]
                reacting = self._reacting(entry)
                is_stopped = reacting is None or reacting.state is ReactionState.STOPPED
                if digest == declared.digest and entry not in self.stopped and not is_stopped:
                    self._restart(entry)
            case effects.StartProcess(spec=spec):
                self._started(spec.entry, dict(spec.env))
            case _:
                pass

    def _reacting(self, entry: EntryId):
        units = self.world.state.reactions.units
        return next((unit for unit in units if unit.entry == entry), None)

    def _restart(self, entry: EntryId) -> None:
        if entry in self.stopping:
            return  # the same stop, asked for again by another life
        self.stopping.add(entry)
        now = self.world.now
        if self.acted.get(entry) == self.ends:
            self.fault(SINGLE, f"{entry} twice")
        self.acted[entry] = self.ends
        since = now - self.rates.budget_ms
        kept = [at for at in self.restarts.get(entry, []) if at > since]
        self.restarts[entry] = [*kept, now]
        if len(self.restarts[entry]) > self.rates.restarts_per_unit and not self.retimed:
            self.fault(BUDGET, f"{entry} {len(self.restarts[entry])} times")

    def _started(self, entry: EntryId, env: dict[str, str]) -> None:
        if entry in self.stopping and env == self.env.get(entry):
            self.fault(FRESH, f"{entry} with {env}")
        self.stopping.discard(entry)
        self.env[entry] = env

    def stepped(self, before, after) -> None:
        if before.opened_ms is not None and after.opened_ms != before.opened_ms:
            self.ends += 1
            lasted = self.world.now - before.opened_ms
            if self.patient and not self.retimed and lasted < self.rates.window_ms:
                self.fault(SINGLE, f"a window of {lasted} ms")
        was = {unit.entry: unit for unit in before.units}
        for one in after.units:
            old = was.get(one.entry)
            self.ends += old is not None and old.hold is not None and one.hold is None
            is_news = old is not None and old.state is not ReactionState.STOPPED
            if one.state is ReactionState.STOPPED and is_news:
                sources = {s for value in one.values.values() for s in value.contract.sources}
                if all(self.heard[s].value is not None for s in sources if s in self.heard):
                    self.fault(WORD, f"{one.entry}")

    # What happens.

    def _rates(self) -> DeclaredRates:
        return DeclaredRates(
            window_ms=self.chance.pick((1_000, 5_000, 30_000)),
            burst=self.chance.count(1, 3),
            restarts_per_unit=self.chance.count(1, 4),
            budget_ms=self.chance.pick((60_000, 300_000)),
        )

    def offer(self) -> None:
        entries = {each: self._entry(each) for each in ENTRIES}
        self.world.offer(entries, rates=self.rates, run_ms=self.chance.count(0, 2_000))

    def _entry(self, each: EntryId):
        staleness = None if self.patient else 8_000
        on_missing = OnMissing.STOP if each == DB else OnMissing.KEEP_LAST
        dynamic = {
            "PEER": Contract(
                sources=(PEER,),
                reaction=ReactionKind.RESTART,
                on_missing=on_missing,
                max_staleness_ms=staleness,
            ),
            f"/etc/{each.partition(':')[0]}": Contract(
                sources=(SIZE,), reaction=ReactionKind.RELOAD
            ),
        }
        version = f"{each} {self.versions[each]}"
        made = unit(version, dynamic=dynamic, reload=Reload(signal="HUP"))
        return entry(key=version, units={"server": made})

    def say(self, export: str, value: str | None) -> None:
        self.numbers += 1
        news = News(export=export, value=value, number=self.numbers)
        self.words[export].append(news)
        if not self.chance.happens(0.2):  # lost: the provider says it again
            self.tell(news)

    def tell(self, news: News) -> None:
        known = self.heard.get(news.export)
        if known is None or news.number >= known.number:
            self.heard[news.export] = news
        told = events.ValuesTold(at_ms=self.world.now, news=(news,))
        self.world.inbox.append(told)

    def happen(self) -> None:
        chance, world = self.chance, self.world
        export = chance.pick((PEER, SIZE))
        match chance.weighed(
            {
                "say": 10, "missing": 2, "again": 4, "old": 2, "silent": 2, "sound": 2, "crash": 3,
                "half": 3, "end": 2, "stop": 1, "start": 2, "edit": 1, "rates": 1,
            }
        ):  # fmt: skip
            case "say":
                self.say(export, chance.pick(("a", "b", "c")))
            case "missing":
                self.say(export, None)
            case "again" if self.words[export]:
                self.tell(self.words[export][-1])
            case "old" if self.words[export]:
                self.tell(chance.pick(self.words[export]))
            case ("silent" | "sound") as what:
                silence = events.Silence(
                    at_ms=world.now, exports=(export,), is_silent=what == "silent"
                )
                world.inbox.append(silence)
            case "crash":
                world.boot()
            case "half":
                self._crash_amid()
            case "end":
                world.host.processes.end(chance.pick(ENTRIES), SERVER, code=1)
            case "stop":
                which = chance.pick(ENTRIES)
                self.stopped.add(which)
                world.tell(events.PersonStopped(at_ms=world.now, entry=which, stop=BY_ANA))
            case "start":
                self._start(chance.pick(ENTRIES))
            case "edit":
                self.versions[chance.pick(ENTRIES)] += 1
                self.offer()
            case "rates":
                self.rates, self.retimed = self._rates(), True
                self.offer()
            case _:
                pass
        world.run(chance.pick((0, 10, 900, 5_000, 31_000)))

    def _start(self, which: EntryId) -> None:
        self.stopped.discard(which)
        self.world.tell(events.PersonStarted(at_ms=self.world.now, entry=which, who="ana"))

    def _crash_amid(self) -> None:
        """The agent is killed with some of its effects done."""
        world, left = self.world, self.chance.count(0, 3)
        while world.inbox and left >= 0:
            for effect in world.step(world.inbox.popleft()):
                left -= 1
                if left < 0:
                    break
                world.perform(effect)
        world.boot()

    def go(self) -> str:
        """The promise that was broken, or nothing."""
        self.offer()
        for export in (PEER, SIZE):
            self.say(export, "first")
        for _ in range(STEPS):
            self.happen()
            if self.broken:
                return self.broken
        self._heal()
        return self.broken

    def _heal(self) -> None:
        """Everything is said once more, and time passes until nothing holds anybody."""
        for which in ENTRIES:
            self._start(which)
        for export in (PEER, SIZE):
            self.say(export, "last")
            self.tell(self.words[export][-1])
        self.world.run(2 * (self.rates.budget_ms + 60_000))
        for which in ENTRIES:
            runs = [r for r in self.world.host.processes.runs.values() if r.seen.running]
            mine = [r.spec.env["PEER"] for r in runs if r.spec.entry == which]
            if mine != ["last"]:
                self.fault(LAST, f"{which} with {mine}")


def first_broken(seeds) -> tuple[int, str]:
    """The first seed that breaks a promise."""
    for seed in seeds:
        broken = Run(seed).go()
        if broken:
            return seed, broken
    return -1, ""
