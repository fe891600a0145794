"""While the fleet is frozen, values are heard and nothing is done for them."""

import pytest

from keyplane.converge import events
from keyplane.converge.reaction_state import News, ReactionState
from keyplane.model.declaration import EntryState, Reload
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.reaction import Contract, DeclaredRates
from tests.unit.converge.world import BY_ANA, SERVER, WEB, World, entry, unit

PEER = "db:main@beta/provides/db/peer"
RATES = DeclaredRates(window_ms=1_000, burst=3, restarts_per_unit=5, budget_ms=60_000)
LONG_MS = 600_000


def declared(kind: ReactionKind, on_missing: OnMissing = OnMissing.KEEP_LAST):
    contract = Contract(sources=(PEER,), reaction=kind, on_missing=on_missing)
    made = unit("1", dynamic={"PEER": contract}, reload=Reload(signal="HUP"))
    return {WEB: entry(units={"server": made})}


class Frozen:
    """A machine that runs a unit with one value, and a controller that freezes it."""

    def __init__(self, kind: ReactionKind, on_missing: OnMissing = OnMissing.KEEP_LAST) -> None:
        self.world = World()
        self.entries = declared(kind, on_missing)
        self.number = 0
        self.freeze(is_frozen=False)

    def freeze(self, *, is_frozen: bool = True) -> None:
        self.world.offer(self.entries, rates=RATES, frozen=is_frozen)

    def say(self, value: str | None, *, run_ms: int = LONG_MS) -> None:
        self.number += 1
        news = News(export=PEER, value=value, number=self.number)
        told = events.ValuesTold(at_ms=self.world.now, news=(news,))
        self.world.tell(told, run_ms=run_ms)

    @property
    def reaction(self) -> str | None:
        return self.world.report().units[SERVER].reaction

    @property
    def runs_with(self) -> str | None:
        runs = self.world.host.processes.runs.values()
        return next((run.spec.env["PEER"] for run in runs if run.seen.running), None)


@pytest.mark.parametrize("kind", list(ReactionKind))
def test_a_change_waits_for_the_thaw(kind: ReactionKind) -> None:
    """It is `running-stale` for as long as it is to be another, however it would have reacted."""
    fleet = Frozen(kind)
    fleet.say("one")
    fleet.freeze()
    assert fleet.reaction == ReactionState.RUNNING
    pid = fleet.world.pid()
    fleet.world.forget()
    fleet.say("two")
    fleet.say("three")
    assert fleet.world.acts == []
    assert fleet.reaction == ReactionState.STALE
    report = fleet.world.report()
    assert report.state is EntryState.STALE
    assert list(report.units[SERVER].stale_since_ms) == ["PEER"]
    fleet.freeze(is_frozen=False)
    assert fleet.reaction == ReactionState.RUNNING
    assert (fleet.world.pid() == pid) is (kind is not ReactionKind.RESTART)
    acts = {ReactionKind.RESTART: ["stop", "start"], ReactionKind.RELOAD: ["reload"]}
    assert [act for act, _ in fleet.world.acts] == acts.get(kind, [])


def test_what_is_as_before_by_then_is_nothing_to_do() -> None:
    fleet = Frozen(ReactionKind.RESTART)
    fleet.say("one")
    fleet.freeze()
    fleet.world.forget()
    fleet.say("two")
    fleet.say("one")
    assert fleet.reaction == ReactionState.RUNNING
    fleet.freeze(is_frozen=False)
    fleet.world.run(LONG_MS)
    assert fleet.world.acts == []


def test_a_first_value_starts_nothing_before_the_thaw() -> None:
    fleet = Frozen(ReactionKind.RESTART)
    fleet.freeze()
    fleet.say("one")
    assert fleet.world.report().state is EntryState.WAITING
    fleet.freeze(is_frozen=False)
    assert fleet.runs_with == "one"
    assert fleet.world.report().state is EntryState.HEALTHY


def test_what_is_to_stop_for_a_missing_value_stops_with_the_thaw() -> None:
    fleet = Frozen(ReactionKind.RESTART, OnMissing.STOP)
    fleet.say("one")
    fleet.freeze()
    fleet.say(None)
    assert fleet.runs_with == "one"
    assert fleet.reaction == ReactionState.STALE
    fleet.freeze(is_frozen=False)
    assert fleet.runs_with is None
    assert fleet.reaction == ReactionState.STOPPED


def test_an_end_of_its_own_starts_it_again_with_what_is_known() -> None:
    """A freeze holds reactions; it keeps nobody down."""
    fleet = Frozen(ReactionKind.RESTART)
    fleet.say("one")
    fleet.freeze()
    fleet.say("two")
    fleet.world.host.processes.end(WEB, SERVER, code=1)
    fleet.world.run(5_000)
    assert fleet.runs_with == "two"
    assert fleet.reaction == ReactionState.RUNNING


def test_a_person_stops_and_starts_it_all_the_same() -> None:
    fleet = Frozen(ReactionKind.RESTART)
    fleet.say("one")
    fleet.freeze()
    fleet.world.tell(events.PersonStopped(at_ms=fleet.world.now, entry=WEB, stop=BY_ANA))
    fleet.world.run(1_000)
    assert fleet.runs_with is None
    fleet.world.tell(events.PersonStarted(at_ms=fleet.world.now, entry=WEB, who="ana"))
    fleet.world.run(2_000)
    assert fleet.runs_with == "one"


def test_another_life_of_the_agent_is_as_frozen() -> None:
    fleet = Frozen(ReactionKind.RESTART)
    fleet.say("one")
    fleet.freeze()
    fleet.world.forget()
    fleet.world.boot()
    fleet.say("two")
    assert fleet.world.acts == []
    assert fleet.reaction == ReactionState.STALE
    fleet.freeze(is_frozen=False)
    assert fleet.runs_with == "two"


def test_a_frozen_machine_comes_to_rest() -> None:
    """What is due and held wakes nobody."""
    fleet = Frozen(ReactionKind.RESTART)
    fleet.say("one")
    fleet.freeze()
    fleet.say("two")
    before = len(fleet.world.effects)
    fleet.world.run(3_600_000)
    looks = [type(each).__name__ for each in fleet.world.effects[before:]]
    assert set(looks) <= {"Observe"}
    assert len(looks) <= 121
