"""The working copy of a state within one step.

Everything that a step changes goes through here, so that the ledger is a new value only if it
says something new, and an effect is issued only if its resource is free and it is not too soon.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from keyplane.converge import backoff, effects, reaction, reaction_state
from keyplane.converge.effects import Effect
from keyplane.converge.frozen import replace
from keyplane.converge.history import History, Note, add, told
from keyplane.converge.state import (
    EntryLive,
    EntryMemory,
    Owned,
    Rest,
    Retry,
    State,
    UnitLive,
    UnitMemory,
)
from keyplane.model.declaration import DeclaredEntry
from keyplane.model.host import ObservedPath
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.occurrence import Act, Cause


@dataclass(slots=True)
class Standing:
    """What one look at an entry found."""

    pending: bool = False
    """Something is under way, or is about to be."""
    failures: list[str] = field(default_factory=list[str])
    """Why it is failed, worst first."""
    waits: list[str] = field(default_factory=list[str])
    """Why it is not as declared yet."""
    asks: bool = False
    """A stop of it needs a permit, whether it has one or not."""
    reacts: bool = False
    """What waits for the permit is a reaction alone: it runs on, on values that are wrong."""
    given: str = ""
    """Why nothing of it runs, and is not to: its data is elsewhere."""
    refused: bool = False
    """One of the failures is by what was seen at a path: nothing is tried while it stands there."""
    stuck: bool = False
    """It failed before its units were looked at."""

    def blame(self, what: str, retry: Retry | None, *, under_way: bool = False) -> None:
        """An effect that failed, if it did, and is tried again: told also while it is under way."""
        self.pending = self.pending or under_way
        if retry is None:
            return
        failed = retry.permanent or retry.attempts >= backoff.FAILED_AFTER
        (self.failures if failed else self.waits).append(about(what, retry.cause))


def about(what: str, cause: str) -> str:
    """A cause that names what it is of, once."""
    return cause if cause.startswith(what) else f"{what}: {cause}"


class Draft:
    """One step's copy; `freeze` gives the next state."""

    def __init__(self, state: State, *, at_ms: int) -> None:
        self.now = max(state.now_ms, at_ms)  # a late event does not turn time back
        self.state = state
        self.reporting = state.reporting
        self.stops = dict(state.ledger.stops)
        self.words = dict(state.ledger.words)
        self.permits = dict(state.ledger.permits)
        self.asked = state.asked
        self.volumes = dict(state.ledger.volumes)
        self.copies = dict(state.ledger.copies)
        self.tried: set[EntryId] = set()
        """Of whose paths or archives something was tried just now, and failed."""
        self.seen_anew = False
        """All paths were just looked at."""
        self.look = False
        """Something has to be observed before more can be decided."""
        self.paths = dict(state.ledger.paths)
        self.seen = dict(state.seen)
        self.unseen = state.unseen
        self.artifacts = state.artifacts
        self.archives = state.ledger.archives
        self.former_archives = state.ledger.former_archives
        self.looked = state.looked
        self.in_flight = dict(state.in_flight)
        self.retries = dict(state.retries)
        self.issued: list[Effect] = []
        self.next_pass_ms = state.next_pass_ms
        self.wall_ms = state.wall_ms
        self.told = state.history.told
        self._notes: list[Note] = []
        self.reactions = state.reactions
        self.reacted: list[reaction_state.Reacted] = []
        """What the engine said in this step."""
        self.rendered: dict[Digest, bytes] = {}
        """Files that are made of dynamic values."""
        self.checks: dict[EntryId, list[Callable[[], effects.Probe]]] = {}
        """The health checks of each entry that was decided on."""
        self.dues: dict[EntryId, int] = {}
        """When something else of it is due."""
        self.rests: dict[EntryId, tuple[EntryLive, Rest]] = {}
        """Entries that rest, as they were when that was found."""
        self._reacting: Mapping[reaction_state.UnitId, reaction_state.Unit] | None = None
        self._memories = dict(state.ledger.entries)
        self._intends = False
        """The ledger says something that is not merely what was done."""
        self._entries = dict(state.entries)
        self._leftovers: Mapping[EntryId, tuple[str, ...]] | None = None

    # What is known of an entry.

    def known(self) -> set[EntryId]:
        """Every entry that is declared, remembered, seen, or was declared until now."""
        owners = {owned.entry for owned in self.paths.values()}
        untried = self.reporting.untried
        return {*self.state.wanted, *self._memories, *self._entries, *owners, *untried}

    def memory(self, entry: EntryId) -> EntryMemory | None:
        return self._memories.get(entry)

    def unit_memory(self, entry: EntryId, unit: UnitName) -> UnitMemory | None:
        memory = self._memories.get(entry)
        return None if memory is None else memory.units.get(unit)

    def remember_declared(self, entry: EntryId, declared: DeclaredEntry) -> None:
        memory = self._memories.get(entry) or EntryMemory(key=declared.key)
        kept = replace(memory, key=declared.key, guarded=declared.guarded)
        if self._memories.get(entry) != kept:
            self._memories[entry] = kept
            self._intends = True

    def remember(
        self,
        entry: EntryId,
        unit: UnitName,
        memory: UnitMemory | None,
        *,
        is_outcome: bool = False,
    ) -> None:
        """What is kept of a unit; an entry without a declaration has no key of its own.

        `is_outcome` if it would be found out anew were it lost.
        """
        kept = self._memories.get(entry) or EntryMemory(key=Digest(""))
        if kept.units.get(unit) == memory:
            return
        units = {**kept.units, unit: memory} if memory is not None else dict(kept.units)
        if memory is None:
            del units[unit]
        self._memories[entry] = replace(kept, units=units)
        self._intends = self._intends or not is_outcome

    def remember_done(self, entry: EntryId, unit: UnitName, done: tuple[Digest, ...]) -> None:
        kept = self._memories[entry]
        self._memories[entry] = replace(kept, done={**kept.done, unit: done})
        self._intends = True

    def live(self, entry: EntryId) -> EntryLive:
        return self._entries.get(entry) or EntryLive()

    def set_live(self, entry: EntryId, live: EntryLive) -> None:
        self._entries[entry] = live

    def unit_live(self, entry: EntryId, unit: UnitName) -> UnitLive:
        return self.live(entry).units.get(unit) or UnitLive()

    def set_unit(self, entry: EntryId, unit: UnitName, live: UnitLive) -> None:
        of_entry = self.live(entry)
        self._entries[entry] = replace(of_entry, units={**of_entry.units, unit: live})

    def drop(self, entry: EntryId) -> None:
        """Nothing of it is left on the machine."""
        self._intends = True
        self._memories.pop(entry, None)
        self._entries.pop(entry, None)
        self.stops.pop(entry, None)
        self.words.pop(entry, None)
        self.permits.pop(entry, None)
        self.volumes.pop(entry, None)

    def entries(self) -> Mapping[EntryId, EntryLive]:
        return self._entries

    def note(  # noqa: PLR0913  # all that a note says
        self,
        entry: EntryId,
        unit: UnitName | None,
        act: Act,
        cause: Cause,
        detail: str = "",
        *,
        who: str = "",
    ) -> None:
        """Something happened that a person may look back on."""
        self._notes.append(
            Note(
                entry=entry,
                unit=unit or UnitName(""),
                act=act,
                cause=cause,
                detail=detail,
                who=who,
            )
        )

    def history(self) -> History:
        """With what was noted in this step."""
        history = self.state.history
        if self._notes:
            history = add(history, self._notes, at_ms=self.wall_ms + self.now)
        return told(history, self.told)

    def wake(self, entry: EntryId, at_ms: int, *, to_check: bool = False) -> None:
        if not to_check:
            self.dues[entry] = min(at_ms, self.dues.get(entry, at_ms))
        live = self.live(entry)
        if live.wake_ms is None or at_ms < live.wake_ms:
            self._entries[entry] = replace(live, wake_ms=at_ms)

    # Paths.

    def disown(self, path: str) -> None:
        self._intends = True
        self.paths.pop(path, None)
        self._leftovers = None

    def own(self, path: str, owned: Owned, *, is_outcome: bool = False) -> None:
        """`is_outcome` as for a unit."""
        self._intends = self._intends or not is_outcome
        self.paths[path] = owned
        self._leftovers = None

    def leftovers(self, entry: EntryId) -> tuple[str, ...]:
        """Paths that the entry put there and that nobody declares any more, children first."""
        if self._leftovers is None:
            found: dict[EntryId, list[str]] = {}
            for path in sorted(self.paths.keys() - self.state.declared_at.keys(), reverse=True):
                found.setdefault(self.paths[path].entry, []).append(path)
            self._leftovers = {each: tuple(paths) for each, paths in found.items()}
        return self._leftovers.get(entry, ())

    def forget_below(self, path: str) -> None:
        """What stood below a path was replaced with it."""
        below = [each for each in self.seen if each.startswith(f"{path.rstrip('/')}/")]
        for each in below:
            del self.seen[each]

    def look_anew(self, paths: Iterable[str]) -> None:
        """Decide on what will stand there, not on what stood there."""
        gone = set(paths)
        self.seen = {path: seen for path, seen in self.seen.items() if path not in gone}
        self.unseen = {path: why for path, why in self.unseen.items() if path not in gone}

    def see(self, path: str, seen: ObservedPath) -> None:
        self.seen[path] = seen

    # Dynamic values.

    @property
    def reacting(self) -> Mapping[reaction_state.UnitId, reaction_state.Unit]:
        """The units that have dynamic values, as the engine has them now."""
        if self._reacting is None:
            units = self.reactions.units
            self._reacting = {(unit.entry, unit.name): unit for unit in units}
        return self._reacting

    def react(self, event: reaction_state.Event) -> tuple[reaction_state.Reacted, ...]:
        """Tell the engine; what it says is for the reconciler."""
        self.reactions, rows = reaction.step(self.reactions, event)
        self.reacted.extend(rows)
        self._reacting = None
        return rows

    def content(self, digest: Digest) -> bytes:
        """Of a file that is wanted."""
        made = self.rendered.get(digest)
        if made is not None:
            return made
        assert self.state.declaration is not None
        return self.state.declaration.contents[digest]

    # Effects.

    def busy(self, resource: str) -> bool:
        return resource in self.in_flight

    def attempt(self, entry: EntryId, effect: Effect) -> bool:
        """Have it done, unless it is being done or failed lately. True while it is under way."""
        resource = effects.resource(effect)
        if resource in self.in_flight:
            return True
        retry = self.retries.get(effects.attempt(effect))
        if retry is not None and retry.at_ms > self.now:
            self.wake(entry, retry.at_ms)
            return False
        self.in_flight[resource] = effect
        self.issued.append(effect)
        return True

    def failed(self, effect: Effect, cause: str, *, permanent: bool) -> Retry:
        name = effects.attempt(effect)
        before = self.retries.get(name)
        attempts = 1 if before is None else before.attempts + 1
        delay = backoff.LONGEST_MS if permanent else backoff.delay_ms(attempts)
        retry = Retry(attempts=attempts, at_ms=self.now + delay, cause=cause, permanent=permanent)
        self.retries[name] = retry
        return retry

    def clear(self, names: Iterable[str]) -> None:
        for name in names:
            self.retries.pop(name, None)

    def freeze(self) -> State:
        ledger = self.state.ledger
        before = ledger.stops, ledger.words, ledger.permits, ledger.volumes, ledger.copies
        now = self.stops, self.words, self.permits, self.volumes, self.copies
        is_said = now != before
        changed = replace(
            ledger,
            paths=self.paths,
            entries=self._memories,
            stops=self.stops,
            words=self.words,
            archives=self.archives,
            former_archives=self.former_archives,
            permits=self.permits,
            volumes=self.volumes,
            copies=self.copies,
        )
        return replace(
            self.state,
            now_ms=self.now,
            ledger=ledger if changed == ledger else changed,
            looked=self.looked,
            seen=self.seen,
            unseen=self.unseen,
            artifacts=self.artifacts,
            entries=self._entries,
            in_flight=self.in_flight,
            retries=self.retries,
            reporting=self.reporting,
            next_pass_ms=self.next_pass_ms,
            history=self.history(),
            wall_ms=self.wall_ms,
            reactions=self.reactions,
            intents=self.state.intents + (self._intends or is_said),
            asked=self.asked,
        )
