"""Whatever fails and is overtaken, a rollout that goes back leaves what was once seen well."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.model.declaration import EntryState, OfferNumber, Report
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.model.plan import Allocations, Edge, Plan
from keyplane.parts import mixing, rolling_state
from keyplane.parts.planning import Base
from keyplane.plancheck import mixture as plancheck
from keyplane.ports.inventory import PlannedEntry, StoredPlan, StoredRollout
from keyplane.rollout import deadlines, machine, policies, returning
from keyplane.rollout import state as states
from keyplane.rollout.outcome import Lack, Trouble
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.state import (
    Effect,
    Event,
    Offer,
    Offered,
    Phase,
    Reported,
    Started,
    State,
    Superseded,
    Ticked,
    Unsendable,
)
from tests.unit.rollout.values import digest, planned, said

MACHINES = [MachineName("x"), MachineName("y")]
ROUNDS_MAX = 400


@dataclass(frozen=True, kw_only=True)
class Text:
    """What a person applies."""

    entries: Mapping[EntryId, tuple[int, int]]
    """Version and port."""
    edges: tuple[tuple[EntryId, EntryId], ...]
    returns: frozenset[str]
    rounds: int
    """After how many somebody takes over, if it has not ended by then."""


@st.composite
def texts(draw: st.DrawFn, ids: list[EntryId], *, wild: bool) -> list[Text]:
    """One after the other, each an edit of some of the one before."""
    instances = sorted({split_entry(entry)[0] for entry in ids})
    versions = dict.fromkeys(ids, 0)
    edges: dict[EntryId, frozenset[EntryId]] = dict.fromkeys(ids, frozenset())
    found: list[Text] = []
    for _ in range(draw(st.integers(3, 6))):
        for at, entry in enumerate(ids):
            match draw(st.sampled_from(["same", "same", "edit", "edit", "move", "gone"])):
                case "edit":
                    versions[entry] += 1
                case "move":
                    versions[entry] += 1
                    others = st.sampled_from(ids if wild else ids[:at] or ids)
                    edges[entry] = draw(st.frozensets(others, max_size=2))
                case "gone":
                    versions[entry] = -abs(versions[entry])
                case _:
                    versions[entry] = abs(versions[entry])
        here = {entry: version for entry, version in versions.items() if version >= 0}
        ports = {
            name: list(draw(st.permutations(range(1, 4)))) if wild else [] for name in MACHINES
        }
        found.append(
            Text(
                entries={
                    entry: (here[entry], ports[split_entry(entry)[2]].pop() if wild else at)
                    for at, entry in enumerate(ids, start=1)
                    if entry in here
                },
                edges=tuple(
                    (entry, provider)
                    for entry in sorted(here)
                    for provider in sorted(edges[entry] & here.keys() - {entry})
                ),
                returns=frozenset(draw(st.sets(st.sampled_from(instances)))),
                rounds=draw(st.sampled_from([3, 8, 20, ROUNDS_MAX, ROUNDS_MAX])),
            )
        )
    return found


def stored(text: Text, number: int) -> StoredPlan:
    users = {
        entry: sorted(provider for consumer, provider in text.edges if consumer == entry)
        for entry in text.entries
    }
    entries = {
        # Where it comes from is in the key, as in every plan.
        entry: planned(f"{entry} {version} {port} {users[entry]}", listens={"p": port})
        for entry, (version, port) in text.entries.items()
    }
    return StoredPlan(
        plan=Plan(
            format="1",
            fleet="f",
            generation=digest(f"generation {number}"),
            entries={entry: each.entry for entry, each in entries.items()},
            allocations=Allocations(ports={}),
            edges=[
                Edge(consumer=one, slot=f"s{at}", provider=other, provide="p", chosen="only")
                for at, (one, other) in enumerate(text.edges)
            ],
            exports={},
            machines={},
            diagnostics=[],
        ),
        revision=number,
        entries={entry: PlannedEntry(entry=each.entry) for entry, each in entries.items()},
        contents={},
    )


class World:
    """Machines that take what they are offered; some versions of some entries never come up."""

    def __init__(self, broken: frozenset[tuple[EntryId, int]], chance: Random) -> None:
        self.broken = broken
        self.chance = chance
        self.now_ms = 0
        self.sequence = 0
        self.number = 0
        self.offers = dict.fromkeys(MACHINES, OfferNumber(1, 0))
        self.offered: dict[MachineName, Mapping[EntryId, Digest]] = {m: {} for m in MACHINES}
        self.failing: set[Digest] = set()
        self.well: set[tuple[EntryId, Digest]] = set()
        self.proven: dict[EntryId, Digest | None] = {}
        """What each entry is since a step that passed; None if that took it away."""
        self.dropped: set[EntryId] = set()
        """Entries that a target let go of."""
        self.is_whole = True
        """No refuge was given up."""
        self.refused = 0
        """How often a mixture was not in order, but for those of `_never_well`."""
        self.row: StoredRollout | None = None
        self.target: StoredPlan | None = None
        self.text: Text | None = None

    def state(self) -> State:
        assert self.row is not None
        state = states.decode(self.row.state)
        assert state is not None
        return state

    def base(self) -> Base:
        return rolling_state.base(self.target, self.row)

    def reports(self) -> dict[MachineName, Report]:
        return {name: self.report(name) for name in MACHINES}

    def report(self, name: MachineName) -> Report:
        self.sequence += 1
        entries = {
            entry: replace(
                said("1", EntryState.FAILED if key in self.failing else EntryState.HEALTHY), key=key
            )
            for entry, key in self.offered[name].items()
        }
        self.well.update(
            (e, each.key) for e, each in entries.items() if each.key not in self.failing
        )
        number = self.offers[name]
        return Report(
            machine=name,
            offer=number,
            settled=number,
            sequence=self.sequence,
            boot="b",
            entries=entries,
        )

    def apply(self, text: Text) -> None:
        """Take over from whatever is there, and go on until it ends or is overtaken."""
        self.prove()
        self.number += 1
        plan = stored(text, self.number)
        self.failing.update(
            Digest(plan.entries[entry].entry.key)
            for entry, (version, _) in text.entries.items()
            if (entry, version) in self.broken
        )
        base = self.base()
        if self.row is not None and self.state().phase.is_open:
            ended, _ = machine.step(self.state(), Superseded(now_ms=self.now_ms))
            self.row = replace(self.row, state=states.encode(ended), open=False)
            # It may have ended before its successor read what there is.
            base = self.base() if self.chance.random() < 0.5 else base
        rules = {
            str(name): Rule(
                upgrade=policies.TOGETHER, max_unavailable=None, rolls_back=name in text.returns
            )
            for name in sorted({split_entry(e)[0] for e in (*base.entries, *plan.entries)})
        }
        state = rolling_state.first_state(
            plan, base, self.target, self.reports(), Terms(rules=rules)
        )
        self.is_whole = self.is_whole and state.refuges.keys() == base.refuges.keys()
        self.target, self.text = plan, text
        self.row = StoredRollout(
            number=self.number,
            generation=Digest(plan.plan.generation),
            created_ms=0,
            who="ann",
            open=True,
            state=states.encode(state),
            base=base.entries,
        )
        self.feed(Started(now_ms=self.now_ms))
        for _ in range(text.rounds):
            if not self.state().phase.is_open:
                return
            self.round()

    def round(self) -> None:
        self.now_ms += 1_000
        name = self.chance.choice(MACHINES)
        self.feed(Reported(report=self.report(name), now_ms=self.now_ms))
        if self.chance.random() < 0.3:
            self.feed(Ticked(now_ms=self.now_ms))
        if self.chance.random() < 0.1:  # another life of the controller
            self.feed(Started(now_ms=self.now_ms))

    def feed(self, event: Event) -> None:
        events: list[Event] = [event]
        while events:
            assert self.row is not None
            state, effects = machine.step(self.state(), events.pop(0))
            self.row = replace(self.row, state=states.encode(state), open=state.phase.is_open)
            for effect in effects:
                events += self.carried_out(state, effect)

    def carried_out(self, state: State, effect: Effect) -> list[Event]:
        if not isinstance(effect, Offer):
            return []
        assert self.row is not None
        assert self.target is not None
        mixed = rolling_state.mixed(state, self.row.base, self.target)
        try:
            mixing.Checked().check(mixed, machine.edges(state, self.target.plan.edges))
        except mixing.UnsoundError as error:
            self.is_whole = False
            self.refused += not _never_well(state)
            troubles = (Trouble(machine=MACHINES[0], lack=Lack.OFFER, said=str(error)),)
            fled = returning.without(state) is not None
            return [Unsendable(troubles=troubles, now_ms=self.now_ms, fled=fled)]
        by_machine = mixed.by_machine(effect.machines)
        events: list[Event] = []
        for name in effect.machines:
            here = {e: Digest(each.entry.key) for e, each in by_machine.get(name, {}).items()}
            if here != self.offered[name]:
                self.offers[name] = OfferNumber(1, self.offers[name].counter + 1)
                lost = self.offered[name].keys() - here.keys() - self.target.entries.keys()
                self.dropped |= lost if not effect.back else set()
                self.offered[name] = here
            events.append(
                Offered(
                    step=effect.step,
                    machine=name,
                    offer=self.offers[name],
                    now_ms=self.now_ms,
                    back=effect.back,
                )
            )
        return events

    def prove(self) -> None:
        """Of what the latest leaves, that which it saw well."""
        if self.row is None:
            return
        state, declared = self.state(), self.base().entries
        came = len(state.steps) if state.phase is Phase.DONE else state.step
        # The one that failed did not pass, from wherever it goes back.
        came = min(came, state.furthest - 1) if state.back else came
        for step in state.steps[:came]:
            for entry in (*step.switched, *step.removed, *step.awaited):
                here = declared.get(entry)
                self.proven[entry] = None if here is None else Digest(here.entry.key)

    def check(self) -> None:
        """What is declared is what machines were offered, and could be offered at once."""
        base = self.base()
        declared = {
            name: {
                entry: each.entry.key
                for entry, each in base.entries.items()
                if split_entry(entry)[2] == name
            }
            for name in MACHINES
        }
        assert declared == self.offered
        entries = {entry: each.entry for entry, each in base.entries.items()}
        assert plancheck.check_mixture(entries, base.edges) == []

    def end(self) -> None:
        """Bring it to its end by time, if it has none yet."""
        while self.state().phase.is_open:
            due_ms = deadlines.due_ms(self.state())
            self.now_ms = max(self.now_ms, due_ms or 0)
            self.feed(Ticked(now_ms=self.now_ms))


def _never_well(state: State) -> bool:
    """Whether one that never was well goes by a step that was not sent: its users go after it."""
    late = (entry for step in state.steps[state.furthest :] for entry in step.removed)
    fled = (state.refuges[entry] for entry in late if entry in state.refuges)
    return state.back and any(refuge.planned is None for refuge in fled)


def sequences(
    ids: list[EntryId], *, wild: bool
) -> st.SearchStrategy[tuple[list[Text], frozenset[tuple[EntryId, int]], int]]:
    return st.tuples(
        texts(ids, wild=wild),
        st.frozensets(st.tuples(st.sampled_from(ids), st.integers(1, 4)), min_size=2),
        st.integers(0, 10_000),
    )


APART = [EntryId(f"{name}:main@{on}") for name, on in ("ax", "by", "cx", "dy")]
"""None has a twin on the other machine, to which it could move."""
MANY = [EntryId(f"{name}:main@{on}") for name in "abc" for on in MACHINES]

few = settings(max_examples=60, deadline=None)
"""A chain is hundreds of events; its fleets are small, and most of what can meet is met soon."""


@few
@given(sequences(APART, wild=False))
def test_who_goes_back_leaves_what_was_once_seen_well(
    drawn: tuple[list[Text], frozenset[tuple[EntryId, int]], int],
) -> None:
    """Every entry, be it one that this rollout sent or one before; or it is not there, if it was
    never well, or a target let go of it. Each mixture on the way is in order."""
    each, broken, seed = drawn
    world = World(broken, Random(seed))
    for text in each:
        world.apply(text)
        world.check()
        state = world.state()
        assert not world.refused
        assert state.phase is not Phase.ROLLBACK_FAILED
        if state.phase is not Phase.ROLLED_BACK or not world.is_whole:
            continue
        entries = world.base().entries
        for entry in APART:
            here = entries[entry].entry.key if entry in entries else None
            if here is not None or entry not in world.dropped:
                assert here == world.proven.get(entry)
            assert here is None or (entry, here) in world.well


@few
@given(sequences(MANY, wild=True))
def test_what_is_declared_in_any_chain_of_rollouts_can_be(
    drawn: tuple[list[Text], frozenset[tuple[EntryId, int]], int],
) -> None:
    """Each mixture is in order, is what machines were offered, and every rollout ends."""
    each, broken, seed = drawn
    world = World(broken, Random(seed))
    for text in each:
        world.apply(text)
        world.check()
    world.end()
    world.check()
