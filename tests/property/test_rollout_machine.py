"""Whatever becomes of messages, a rollout keeps its order and comes to its end."""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.model.declaration import EntryState, OfferNumber, Report
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.rollout import deadlines
from keyplane.rollout import machine as rollout
from keyplane.rollout import state as states
from keyplane.rollout.mixture import mix
from keyplane.rollout.outcome import Result
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.saving import Saving
from keyplane.rollout.state import Event, Finish, Offer, Offered, Reported, Started, State, Ticked
from tests.property.test_rollout_tiers import Side, any_difference
from tests.unit.rollout.values import said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keyplane.rollout.planned import Planned

ROUNDS_MAX = 2_000

few = settings(max_examples=60, deadline=None)
"""A run is hundreds of events; twice as many again would not fit beside the other tests."""


def any_rule(chance: Random) -> Rule:
    """None that only records, as then the target is not what it comes to."""
    return Rule(
        upgrade=chance.choice(("first", "together")),
        max_unavailable=chance.choice((1, 2, None)),
        settle_ms=chance.choice((1, 5)),
        rolls_back=chance.random() < 0.5,
    )


class World:
    """Machines that take what they are offered, and a line that loses, repeats and delays."""

    def __init__(self, both: tuple[Side, Side], chance: Random) -> None:
        (self.base, base_edges), (self.target, target_edges) = both
        self.chance = chance
        self.now_ms = 0
        self.offers: dict[MachineName, OfferNumber] = {}
        self.declared: dict[MachineName, Mapping[EntryId, Planned]] = {}
        self.applied: dict[MachineName, tuple[OfferNumber, OfferNumber]] = {}
        self.running: dict[MachineName, dict[EntryId, EntryState]] = {}
        self.made: dict[EntryId, Planned] = {}
        self.sequence = 0
        self.saving = Saving()
        self.line: list[Event] = []
        self.log: list[Event] = []
        self.ends: list[Finish] = []
        instances = sorted({split_entry(entry)[0] for entry in (*self.base, *self.target)})
        self.rules = {str(instance): any_rule(chance) for instance in instances}
        self.state = rollout.begin(
            base=self.base,
            base_edges=base_edges,
            target=self.target,
            target_edges=target_edges,
            reports={},
            terms=Terms(rules=self.rules),
        )

    def feed(self, event: Event) -> None:
        self.log.append(event)
        self.state, effects = rollout.step(self.state, event)
        assert self.saving.encode(self.state) == states.encode(self.state)
        for effect in effects:
            match effect:
                case Offer():
                    self.offer(effect)
                case Finish():
                    self.ends.append(effect)

    def offer(self, effect: Offer) -> None:
        if not effect.back:
            self.check_earlier_steps_are_well(effect.step)
        made = mix(self.base, self.target, self.state.steps, self.state.sent, {})
        mixture = made.by_machine(effect.machines)
        for machine in effect.machines:
            entries = mixture.get(machine, {})
            if self.declared.get(machine) != entries:
                counter = self.offers.get(machine, OfferNumber(1, 0)).counter
                self.offers[machine] = OfferNumber(1, counter + 1)
                self.declared[machine] = entries
            number = self.offers[machine]
            self.line.append(
                Offered(
                    step=effect.step,
                    machine=machine,
                    offer=number,
                    now_ms=self.now_ms,
                    back=effect.back,
                )
            )

    def check_earlier_steps_are_well(self, index: int) -> None:
        """Nothing is offered before all that came before it is there, running, or gone."""
        for step in self.state.steps[:index]:
            for entry in step.switched:
                running = self.running.get(split_entry(entry)[2], {})
                assert running.get(entry) is EntryState.HEALTHY
            for entry in step.removed:
                assert entry not in self.running.get(split_entry(entry)[2], {})

    def act(self, machine: MachineName) -> None:
        """The machine's agent does one thing, and reports."""
        number = self.offers.get(machine)
        if number is None:
            return
        accepted, settled = self.applied.get(machine, (OfferNumber(0, 0), OfferNumber(0, 0)))
        here = self.running.setdefault(machine, {})
        if accepted < number:
            accepted = number
        elif settled < number:
            settled = number
            for entry in here.keys() - self.declared[machine].keys():
                del here[entry]
            for entry, one in self.declared[machine].items():
                if entry not in here or self.made[entry] != one:
                    here[entry] = EntryState.APPLIED
                self.made[entry] = one
        else:
            for entry in here:
                here[entry] = EntryState.HEALTHY
        self.applied[machine] = (accepted, settled)
        self.sequence += 1
        self.line.append(
            Reported(report=self.report(machine, accepted, settled), now_ms=self.now_ms)
        )

    def report(self, machine: MachineName, accepted: OfferNumber, settled: OfferNumber) -> Report:
        entries = {
            entry: replace(said("1", state), key=self.declared[machine][entry].entry.key)
            for entry, state in self.running[machine].items()
            if entry in self.declared[machine]
        }
        return Report(
            machine=machine,
            offer=accepted,
            settled=settled,
            sequence=self.sequence,
            boot="b",
            entries=entries,
        )

    def round(self) -> None:
        self.now_ms += 1
        if self.offers:
            self.act(self.chance.choice(sorted(self.offers)))
        for _ in range(self.chance.randint(0, 3)):
            if not self.line:
                break
            event = self.line.pop(self.chance.randrange(len(self.line)))
            fate = self.chance.random()
            if fate < 0.25:
                if isinstance(event, Offered):  # the controller's own word is said again
                    self.line.append(event)
                continue
            self.feed(event)
            if fate > 0.75:
                self.line.append(event)
        if self.chance.random() < 0.1:
            saved = states.decode(states.encode(self.state))
            assert saved is not None
            assert saved == self.state
            self.state = saved
            self.feed(Started(now_ms=self.now_ms))
        if self.chance.random() < 0.1:
            self.feed(Ticked(now_ms=self.now_ms))


def run(world: World) -> None:
    world.feed(Started(now_ms=0))
    for _ in range(ROUNDS_MAX):
        if not world.state.phase.is_open:
            return
        world.round()
    raise AssertionError("it did not end")


@few
@given(any_difference, st.integers(0, 10_000))
def test_lost_late_and_repeated_reports_delay_a_rollout_and_no_more(
    both: tuple[Side, Side], seed: int
) -> None:
    """It is done in order, each step after all before it are well; and it ends."""
    world = World(both, Random(seed))
    run(world)
    assert world.state.phase is states.Phase.DONE
    assert {end.outcome.result for end in world.ends} == {Result.DONE}


@few
@given(any_difference, st.integers(0, 10_000), st.data())
def test_from_any_saved_state_the_same_events_lead_to_the_same_end(
    both: tuple[Side, Side], seed: int, data: st.DataObject
) -> None:
    """A controller that starts in the middle goes on as the one before would have."""
    world = World(both, Random(seed))
    begun = world.state
    run(world)
    cut = data.draw(st.integers(0, len(world.log)))

    def through(state: State, events: list[Event]) -> State:
        for event in events:
            state, _ = rollout.step(state, event)
        return state

    saved = states.decode(states.encode(through(begun, world.log[:cut])))
    assert saved is not None
    assert through(saved, world.log[cut:]) == world.state


@few
@given(any_difference, st.integers(0, 10_000), st.integers(0, 60))
def test_a_rollout_ends_though_everything_falls_silent(
    both: tuple[Side, Side], seed: int, rounds: int
) -> None:
    """At whatever point the machines go quiet, ticks alone bring it to an end, named."""
    world = World(both, Random(seed))
    world.feed(Started(now_ms=0))
    for _ in range(rounds):
        if world.state.phase.is_open:
            world.round()
    if not world.state.phase.is_open:
        return
    while (due_ms := deadlines.due_ms(world.state)) is not None:
        world.feed(Ticked(now_ms=due_ms))
    assert world.state.phase in (states.Phase.FAILED, states.Phase.ROLLBACK_FAILED)
    assert world.ends[-1].outcome.troubles
