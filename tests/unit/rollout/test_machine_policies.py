"""First machines, machines that are off, pauses, and the way back."""

from typing import Any

import pytest

from keyplane.model.declaration import EntryState
from keyplane.model.names import EntryId, MachineName
from keyplane.rollout import deadlines, progress, view
from keyplane.rollout import machine as rollout
from keyplane.rollout import state as states
from keyplane.rollout.outcome import Result
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.state import (
    Event,
    Finish,
    Missed,
    Offer,
    Offered,
    Paused,
    Phase,
    Reported,
    Resumed,
    Started,
    State,
    Stopped,
    Superseded,
    Ticked,
)
from tests.unit.rollout.test_machine import offered, outcome_of, run, told
from tests.unit.rollout.values import edges, plan, planned, report, said

THREE = ("a", "b", "c")
RULE = Rule(settle_ms=1_000)
BACK = Rule(settle_ms=1_000, rolls_back=True)


def web(key: str, machines: tuple[str, ...] = THREE) -> Any:
    return plan(**{f"web_{each}": planned(key) for each in machines})


def begin(rule: Rule = RULE, *, target: Any = None, **terms: Any) -> State:
    return rollout.begin(
        base=web("1"),
        base_edges=[],
        target=web("2") if target is None else target,
        target_edges=[],
        reports={MachineName(m): report(m, 1, 1, web=said("1", pid=5)) for m in THREE},
        terms=Terms(rules={"web": rule}, **terms),
    )


def well(machine: str, now_ms: int, key: str = "2", number: int = 2, sequence: int = 2) -> Reported:
    return told(report(machine, number, sequence, web=said(key, pid=number)), now_ms)


def ill(machine: str, now_ms: int, number: int = 2, sequence: int = 2) -> Reported:
    dead = said("2", EntryState.FAILED, cause="it burned")
    return told(report(machine, number, sequence, web=dead), now_ms)


def back(step: int, machine: str, number: int, now_ms: int) -> Offered:
    one = offered(step, machine, number, now_ms)
    return Offered(step=one.step, machine=one.machine, offer=one.offer, now_ms=now_ms, back=True)


FIRST = (Started(now_ms=0), offered(0, "a", 2), well("a", 100))


def sent_to(effects: list[Any]) -> list[str]:
    return ["".join(each.machines) for each in effects if isinstance(each, Offer)]


def test_others_follow_once_the_first_was_well_for_its_time():
    """Not a moment before; each wave follows the one before at once."""
    state, effects = run(begin(), *FIRST, Ticked(now_ms=1_099))
    assert (state.phase, sent_to(effects)) == (Phase.SETTLING, ["a"])
    assert progress.sentence(state) == (
        "step 1 of 3: a is well; watched for 1s before others follow"
    )
    state, effects = run(state, Ticked(now_ms=1_100), offered(1, "b", 2), well("b", 1_150))
    assert (state.phase, sent_to(effects)) == (Phase.SENDING, ["b", "c"])
    state, effects = run(state, offered(2, "c", 2), well("c", 1_200))
    assert outcome_of(effects).result is Result.DONE


def test_a_first_machine_that_comes_and_goes_begins_its_time_anew():
    """And is given no more of it than one that never comes."""
    starting = told(report("a", 2, 3, web=said("2", EntryState.APPLIED)), 900)
    state, _ = run(begin(), *FIRST, starting)
    assert state.phase is Phase.WAITING
    state, _ = run(state, well("a", 950, sequence=4), Ticked(now_ms=1_949))
    assert state.phase is Phase.SETTLING
    late = told(report("a", 2, 5, web=said("2", EntryState.APPLIED)), 200_000)
    state, effects = run(state, late)
    assert state.phase is Phase.FAILED
    assert outcome_of(effects).unsent == ("web:main@b", "web:main@c")


def test_time_without_a_controller_proves_nothing():
    state, effects = run(begin(), *FIRST, Started(now_ms=50_000), Ticked(now_ms=50_999))
    assert (state.phase, sent_to(effects)) == (Phase.SETTLING, ["a"])
    state, _ = run(state, Ticked(now_ms=51_000))
    assert state.step == 1


def test_a_first_machine_that_fails_or_is_silent_leaves_the_others_alone():
    """The end names it, and whom it spared."""
    for last in (ill("a", 100), Ticked(now_ms=121_000)):
        state, effects = run(begin(), *FIRST[:2], last)
        outcome = outcome_of(effects)
        assert sent_to(effects) == ["a"]
        assert state.phase is Phase.FAILED
        assert {each.machine for each in outcome.troubles} == {"a"}
        assert outcome.unsent == ("web:main@b", "web:main@c")


def test_a_machine_that_is_off_is_not_waited_for_and_named():
    """Its declaration is stored as the others' are; the others come first."""
    state, effects = run(
        begin(absent=frozenset({MachineName("a")})),
        Started(now_ms=0),
        offered(0, "b", 2),
        well("b", 100),
        Ticked(now_ms=1_100),
        offered(1, "c", 2),
        well("c", 1_200),
        offered(2, "a", 2, 1_300),
    )
    assert sent_to(effects) == ["b", "c", "a"]
    outcome = outcome_of(effects)
    assert (outcome.result, outcome.skipped) == (Result.DONE, ("a",))
    assert rollout.unproven(state) == ("web:main@a",)


def test_a_machine_that_is_back_in_time_is_waited_for():
    """And is skipped by nobody's account."""
    away = frozenset({MachineName("a")})
    before = told(report("a", 1, 2, web=said("1")), 1_250)
    state, _ = run(
        begin(absent=away),
        Started(now_ms=0),
        offered(0, "b", 2),
        well("b", 100),
        Ticked(now_ms=1_100),
        before,
        offered(1, "c", 2),
        well("c", 1_200),
        offered(2, "a", 2, 1_300),
    )
    assert state.phase is Phase.WAITING
    state, effects = run(state, well("a", 1_400, sequence=3))
    assert outcome_of(effects).skipped == ()
    assert rollout.unproven(state) == ()


def test_a_machine_that_falls_silent_with_what_it_was_sent_is_no_skipped_one():
    """It may be what it was sent that silenced it."""
    gone = Missed(absent=frozenset({MachineName("b")}), now_ms=2_000)
    state, _ = run(begin(), *FIRST, Ticked(now_ms=1_100), offered(1, "b", 2, 1_100), gone)
    assert state.phase is Phase.WAITING
    state, effects = run(state, Ticked(now_ms=121_100))
    assert state.phase is Phase.FAILED
    assert outcome_of(effects).unsent == ("web:main@c",)


def test_what_failed_goes_back_to_what_it_was():
    """With all that was sent before it, the last first; then another rollout can begin."""
    state, effects = run(
        begin(BACK),
        *FIRST,
        Ticked(now_ms=1_100),
        offered(1, "b", 2, 1_100),
        ill("b", 1_200),
    )
    assert (state.phase, state.sent) == (Phase.RECALLING, 1)
    assert [(each.step, each.back) for each in effects if isinstance(each, Offer)] == [
        (0, False),
        (1, False),
        (1, True),
    ]
    state, _ = run(state, back(1, "b", 3, 1_300))
    assert progress.sentence(state) == "step 2 of 3 goes back: b"
    state, effects = run(state, well("b", 1_400, key="1", number=3, sequence=3))
    assert (state.phase, state.step, sent_to(effects)) == (Phase.RECALLING, 0, ["a"])
    state, effects = run(state, back(0, "a", 3, 1_500), well("a", 1_600, "1", 3, 3))
    outcome = outcome_of(effects)
    assert (state.phase, state.sent) == (Phase.ROLLED_BACK, 0)
    assert outcome.result is Result.ROLLED_BACK
    assert [each.entry for each in outcome.troubles] == ["web:main@b"]
    assert (outcome.sent, outcome.unsent) == (("web:main@a", "web:main@b"), ("web:main@c",))
    assert [(turn.machine, turn.state, turn.said) for turn in view.turns(state)] == [
        ("a", "returned", ""),
        ("b", "returned", "main of web:main@b is failed: it burned"),
        ("c", "unsent", ""),
    ]
    assert rollout.unproven(state) == ()


def test_a_word_of_the_way_there_is_none_of_the_way_back():
    """The number under which something failed is not that of what was before."""
    state, _ = run(begin(BACK), *FIRST[:2], ill("a", 100), offered(0, "a", 2, 110))
    assert (state.phase, state.offered) == (Phase.RECALLING, frozenset())


@pytest.mark.parametrize(
    "last",
    [
        told(report("a", 3, 3, web=said("1", EntryState.FAILED)), 300),
        Ticked(now_ms=130_000),
    ],
)
def test_going_back_may_fail_too(last: Event):
    """Which is another end than having failed, and names both troubles."""
    state, effects = run(begin(BACK), *FIRST[:2], ill("a", 100), back(0, "a", 3, 200), last)
    assert state.phase is Phase.ROLLBACK_FAILED
    outcome = outcome_of(effects)
    assert outcome.result is Result.ROLLBACK_FAILED
    assert len(outcome.troubles) == 2
    assert rollout.unproven(state) == ("web:main@a",)


def test_a_new_entry_that_failed_is_taken_away_again():
    """What was not there before is gone at the end."""
    state = rollout.begin(
        base={},
        base_edges=[],
        target=web("2", ("a",)),
        target_edges=[],
        reports={},
        terms=Terms(rules={"web": BACK}),
    )
    state, _ = run(state, *FIRST[:2], ill("a", 100), back(0, "a", 3, 200))
    assert state.phase is Phase.RETURNING
    state, _ = run(state, ill("a", 300, number=3, sequence=3))
    assert state.phase is Phase.RETURNING
    state, _ = run(state, told(report("a", 3, 4), 400))
    assert state.phase is Phase.ROLLED_BACK


def test_what_was_ill_before_need_not_be_well_afterwards():
    """Going back is to be as it was, and no better."""
    broken = report("a", 1, 1, web=said("1", EntryState.FAILED))
    state = rollout.begin(
        base=web("1", ("a",)),
        base_edges=[],
        target=web("2", ("a",)),
        target_edges=[],
        reports={MachineName("a"): broken},
        terms=Terms(rules={"web": BACK}),
    )
    again = told(report("a", 3, 3, web=said("1", EntryState.FAILED)), 300)
    state, _ = run(state, *FIRST[:2], ill("a", 100), back(0, "a", 3, 200), again)
    assert state.phase is Phase.ROLLED_BACK


@pytest.mark.parametrize("now", [EntryState.FAILED, EntryState.HEALTHY])
def test_who_goes_back_to_what_nobody_saw_well_is_told_so(now: EntryState):
    """An earlier rollout had sent it when this one took over."""
    broken = report("a", 1, 1, web=said("1", EntryState.FAILED))
    state = rollout.begin(
        base=web("1", ("a",)),
        base_edges=[],
        target=web("2", ("a",)),
        target_edges=[],
        reports={MachineName("a"): broken},
        unproven=[EntryId("web:main@a")],
        terms=Terms(rules={"web": BACK}),
    )
    again = told(report("a", 3, 3, web=said("1", now)), 300)
    _, effects = run(state, *FIRST[:2], ill("a", 100), back(0, "a", 3, 200), again)
    outcome = outcome_of(effects)
    assert outcome.result is Result.ROLLED_BACK
    is_told = "but web:main@a was not well before it either" in outcome.why_unsent
    assert is_told == (now is EntryState.FAILED)


def test_a_pause_ends_no_step_and_begins_none():
    """What was sent is judged; nothing further is sent until a person lets it go on."""
    pause = Paused(why="by ann", now_ms=50)
    state, effects = run(begin(), *FIRST[:2], pause, FIRST[2], Ticked(now_ms=1_100))
    assert (state.phase, state.step, state.sent) == (Phase.PAUSED, 1, 1)
    assert sent_to(effects) == ["a"]
    assert progress.sentence(state) == "paused before step 2 of 3: by ann"
    state, effects = run(state, Ticked(now_ms=600_000), Resumed(now_ms=600_001))
    assert (state.phase, sent_to(effects)) == (Phase.SENDING, ["b"])
    assert deadlines.due_ms(state) == 720_001


def test_what_is_being_offered_is_offered_before_a_pause():
    """A machine may have it already, where only the answer was lost; nobody may take it back."""
    pause = Paused(why="by ann", now_ms=50)
    state, effects = run(begin(), Started(now_ms=0), pause)
    assert (state.phase, state.sent, sent_to(effects)) == (Phase.SENDING, 1, ["a"])
    resumed, effects = run(state, Started(now_ms=60))  # as by another life of the controller
    assert (resumed.sent, sent_to(effects)) == (1, ["a"])
    state, _ = run(state, *FIRST[1:], Ticked(now_ms=1_100))
    assert (state.phase, state.step, state.sent) == (Phase.PAUSED, 1, 1)


def test_a_rollout_may_begin_with_a_pause():
    state, effects = run(begin(paused="frozen by ann"), Started(now_ms=0))
    assert (state.phase, state.sent, effects) == (Phase.PAUSED, 0, [])
    state, effects = run(state, Resumed(now_ms=10))
    assert sent_to(effects) == ["a"]


def test_a_pause_that_nobody_ends_is_an_end():
    state, effects = run(begin(paused="by ann"), Started(now_ms=0), Ticked(now_ms=86_399_999))
    assert state.phase is Phase.PAUSED
    state, effects = run(state, Ticked(now_ms=86_400_000))
    outcome = outcome_of(effects)
    assert outcome.result is Result.STOPPED
    assert outcome.why_unsent == "it was stopped: it was paused for a day (by ann)"


def test_a_person_may_end_it_at_any_time():
    """What was sent stays; nothing further is sent."""
    for count in range(4):
        events = (*FIRST, Ticked(now_ms=1_100))[: count + 1]
        state, effects = run(begin(), *events, Stopped(why="by ann", now_ms=2_000))
        assert state.phase is Phase.STOPPED
        assert outcome_of(effects).result is Result.STOPPED
        assert outcome_of(effects).why_unsent == "it was stopped: by ann"


def test_another_rollout_in_the_middle_of_the_way_back_starts_from_there():
    state, _ = run(begin(BACK), *FIRST[:2], ill("a", 100), back(0, "a", 3, 200))
    state, _ = run(state, Superseded(now_ms=300))
    assert (state.phase, state.sent) == (Phase.SUPERSEDED, 0)
    assert rollout.unproven(state) == ("web:main@a",)


def test_what_is_only_recorded_is_sent_to_whom_a_person_names():
    """The others keep what they have, and the end says so."""
    rule = Rule(upgrade="record")
    state, effects = run(begin(rule), Started(now_ms=0))
    outcome = outcome_of(effects)
    assert (outcome.result, sent_to(effects)) == (Result.DONE, [])
    assert [each.entry for each in outcome.held] == [f"web:main@{m}" for m in THREE]
    assert outcome.unsent == ()
    named = frozenset({MachineName("b")})
    state, effects = run(begin(rule, named=named), Started(now_ms=0), offered(0, "b", 2))
    state, effects = run(state, well("b", 100))
    assert state.sent == 1
    assert [each.entry for each in outcome_of(effects).held] == ["web:main@a", "web:main@c"]


def test_what_waits_behind_something_held_is_still_not_known_to_be_well():
    """Whoever begins the next rollout is told of it: its consumers wait for it then."""
    base, target = (
        plan(db_a=planned("1"), web_a=planned("1")),
        plan(db_a=planned("2"), web_a=planned("1")),
    )
    state = rollout.begin(
        base=base,
        base_edges=edges("web_a db_a"),
        target=target,
        target_edges=edges("web_a db_a"),
        reports={},
        unproven=[EntryId("web:main@a")],
        terms=Terms(rules={"db": Rule(upgrade="record")}),
    )
    state, _ = run(state, Started(now_ms=0))
    assert (state.phase, state.asked) == (Phase.DONE, 0)
    assert rollout.unproven(state) == ("web:main@a",)


def test_what_was_to_change_and_was_not_sent_is_still_not_known_to_be_well():
    """One that goes back to what is declared waits for it, as the one before would have."""
    links = edges("web_a db_a")
    state = rollout.begin(
        base=plan(db_a=planned("1"), web_a=planned("1")),
        base_edges=links,
        target=plan(db_a=planned("2"), web_a=planned("2")),
        target_edges=links,
        reports={},
        unproven=[EntryId("web:main@a")],
    )
    state, _ = run(state, Started(now_ms=0), Superseded(now_ms=1))
    assert "web:main@a" in rollout.unproven(state)


def test_every_phase_is_saved_whole():
    state, _ = run(begin(BACK), *FIRST[:2], ill("a", 100), back(0, "a", 3, 200))
    assert states.decode(states.encode(state)) == state


def test_an_ended_one_says_its_end_again():
    state, _ = run(begin(), Started(now_ms=0), Stopped(why="by ann", now_ms=1))
    _, effects = rollout.step(state, Started(now_ms=2))
    assert isinstance(effects[0], Finish)


def test_what_waits_for_a_permit_is_told_with_why_it_is_given_none():
    """As the step lacks it, and as what ended the rollout."""
    why = "2 of the 3 members of web:main have to stay up: b is not heard"
    refused = {EntryId("web:main@a"): why, EntryId("web:main@z"): "it is another's"}
    applying = told(report("a", 2, 2, settled=1, web=said("1", EntryState.APPLYING)), 20)
    told_so = f"web:main@a: its stop waits for a permit, as {why}."
    state, _ = run(begin(), *FIRST[:2], Ticked(now_ms=30, refused=refused))
    assert "permit" not in view.turns(state)[0].said, "nothing was heard of it"
    state, _ = run(state, applying)
    assert view.turns(state)[0].said == told_so
    ended, effects = run(state, Ticked(now_ms=200_000, refused=refused))
    assert ended.phase is Phase.FAILED
    assert [each.said for each in outcome_of(effects).troubles] == [told_so]
    granted, _ = run(state, Ticked(now_ms=40))
    assert view.turns(granted)[0].said == "a accepted 1.2 and is still applying it."
