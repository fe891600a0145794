"""Who goes when, where a machine's voice comes or goes in the midst of a rollout."""

from typing import Any

from keyplane.model.names import MachineName
from keyplane.rollout import machine as rollout
from keyplane.rollout import progress
from keyplane.rollout.outcome import Result
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.state import Event, Missed, Phase, Reported, Started, State, Ticked
from tests.unit.rollout.test_machine import offered, outcome_of, run, told
from tests.unit.rollout.test_machine_policies import sent_to
from tests.unit.rollout.values import edges, plan, planned, report, said

ALL = ("a", "b", "c", "d")


def begin(rule: Rule, machines: tuple[str, ...] = ALL, *, absent: str = "") -> State:
    """A database on z, then its readers."""

    def fleet(key: str) -> Any:
        readers = {f"web_{each}": planned(key) for each in machines}
        return plan(pg_z=planned(key, module="sql"), **readers)

    between = edges(*(f"web_{each} pg_z" for each in machines))
    known = {MachineName(m): report(m, 1, 1, web=said("1", pid=5)) for m in machines}
    known[MachineName("z")] = report("z", 1, 1, pg=said("1", pid=5))
    return rollout.begin(
        base=fleet("1"),
        base_edges=between,
        target=fleet("2"),
        target_edges=between,
        reports=known,
        terms=Terms(rules={"web": rule}, absent=names(absent)),
    )


def names(machines: str) -> frozenset[MachineName]:
    return frozenset(map(MachineName, machines))


def missed(machines: str, now_ms: int) -> Missed:
    return Missed(absent=names(machines), now_ms=now_ms)


def well(machine: str, now_ms: int) -> Reported:
    return told(report(machine, 2, 2, web=said("2", pid=7)), now_ms)


def done(step: int, machine: str, now_ms: int) -> tuple[Event, ...]:
    return offered(step, machine, 2, now_ms), well(machine, now_ms)


PROVIDER = (
    Started(now_ms=0),
    offered(0, "z", 2),
)
UP = told(report("z", 2, 2, pg=said("2", pid=7)), 100)
RULE = Rule(settle_ms=1_000, max_unavailable=9)


def test_where_the_first_machine_falls_silent_the_next_is_watched_in_its_place():
    """It is sent nothing before its turn, and goes last."""
    state, effects = run(begin(RULE), *PROVIDER, missed("a", 50), UP)
    assert sent_to(effects) == ["z", "b"]
    assert [step.machines for step in state.steps] == [("z",), ("b",), ("c",), ("d",), ("a",)]
    assert progress.sentence(state) == (
        "step 2 of 5: b first; others follow once it was well for 1s"
    )
    state, effects = run(state, *done(1, "b", 200), Ticked(now_ms=1_199))
    assert (state.phase, sent_to(effects)) == (Phase.SETTLING, [])
    state, effects = run(state, Ticked(now_ms=1_200))
    assert sent_to(effects) == ["c"]
    state, effects = run(state, *done(2, "c", 1_300), *done(3, "d", 1_400))
    state, effects = run(state, offered(4, "a", 2, 1_500))
    assert outcome_of(effects).result is Result.DONE
    assert outcome_of(effects).skipped == ("a",)


def test_each_that_falls_silent_before_its_turn_is_followed_by_another_first():
    state, effects = run(begin(RULE), *PROVIDER, missed("abc", 50), UP)
    assert sent_to(effects) == ["z", "d"]
    state, effects = run(state, *done(1, "d", 200))
    assert sent_to(effects) == ["abc"], "nobody who is heard follows, and so none is watched"
    state, effects = run(begin(RULE), *PROVIDER, missed("abcd", 50), UP)
    state, effects = run(state, *(offered(1, each, 2, 60) for each in ALL))
    assert outcome_of(effects).skipped == ALL


def test_a_first_machine_that_falls_silent_once_it_was_sent_something_ends_it():
    """Nobody else is sent what may have silenced it."""
    state, _ = run(begin(RULE), *PROVIDER, UP, offered(1, "a", 2, 150), missed("a", 200))
    state, effects = run(state, Ticked(now_ms=500_000))
    found = outcome_of(effects)
    assert (found.result, found.silent) == (Result.FAILED, ("a",))
    assert found.unsent == ("web:main@b", "web:main@c", "web:main@d")


def test_machines_that_were_off_are_sent_by_the_same_pace_once_they_are_back():
    """Though they are heard again at one moment: no more than may be away."""
    state = begin(Rule(settle_ms=1_000, max_unavailable=1), absent="cd")
    assert [step.machines for step in state.steps] == [("z",), ("a",), ("b",), ("c", "d")]
    state, _ = run(state, *PROVIDER, UP, *done(1, "a", 200), Ticked(now_ms=1_300))
    state, effects = run(state, missed("", 1_400), *done(2, "b", 1_500), *done(3, "c", 1_600))
    assert sent_to(effects) == ["c", "d"]
    assert not any(step.settle_ms for step in state.steps[2:]), "the first was watched by then"


def test_a_first_machine_that_seemed_alone_is_watched_where_others_are_back():
    """They are heard again while it is at work."""
    state = begin(Rule(settle_ms=1_000, max_unavailable=9), absent="bcd")
    state, effects = run(state, *PROVIDER, UP, missed("c", 150), *done(1, "a", 200))
    assert (state.phase, sent_to(effects)) == (Phase.SETTLING, ["z", "a"])
    state, effects = run(state, Ticked(now_ms=1_200))
    assert sent_to(effects) == ["b"]
    assert [(step.machines, step.settle_ms) for step in state.steps[2:]] == [
        (("b",), 0),
        (("d",), 0),
        (("c",), 0),
    ]


def test_what_is_parted_anew_is_as_patient_as_it_was():
    rule = Rule(settle_ms=1_000, max_unavailable=9, deadline_ms=7_000)
    state, _ = run(begin(rule), *PROVIDER, missed("a", 50), UP)
    assert len(state.patience_ms) == len(state.steps)
    assert set(state.patience_ms[1:]) == {7_000}


def losing(absent: str = "") -> State:
    """The web of two machines, of which one will not be back."""
    return rollout.begin(
        base=plan(web_a=planned("1"), web_b=planned("1")),
        base_edges=[],
        target=plan(web_b=planned("1")),
        target_edges=[],
        reports={MachineName("a"): report("a", 1, 1, web=said("1", pid=5))},
        terms=Terms(absent=names(absent), lost=names("a")),
    )


def test_a_lost_machine_is_waited_for_only_as_long_as_it_is_heard():
    """One that falls silent later holds nothing up either; and nobody misses it at the end."""
    _, effects = run(losing("a"), Started(now_ms=0), offered(0, "a", 2, 10))
    assert (outcome_of(effects).result, outcome_of(effects).skipped) == (Result.DONE, ())
    # A controller that was just started does not know yet who is silent.
    state, _ = run(losing(), Started(now_ms=0), offered(0, "a", 2, 10), Started(now_ms=200))
    assert state.phase is Phase.WAITING
    _, effects = run(state, missed("a", 15_000))
    assert (outcome_of(effects).result, outcome_of(effects).skipped) == (Result.DONE, ())


def test_a_lost_machine_that_speaks_is_cleared_before_the_rollout_ends():
    state, _ = run(losing(), Started(now_ms=0), offered(0, "a", 2, 10), missed("", 100))
    assert state.phase is Phase.WAITING
    _, effects = run(state, told(report("a", 2, 2), 200))
    assert outcome_of(effects).result is Result.DONE
