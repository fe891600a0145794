"""Which failures end a rollout, when, and with which words."""

from dataclasses import replace
from typing import Any

from keyplane.model.declaration import EntryState, OfferNumber, Report, UnitState
from keyplane.model.names import EntryId, MachineName
from keyplane.rollout import gate
from keyplane.rollout import machine as rollout
from keyplane.rollout import state as states
from keyplane.rollout.outcome import Lack, Trouble
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.state import Phase, Started, State, Ticked, Unsendable
from tests.unit.rollout.test_machine import offered, outcome_of, run, told
from tests.unit.rollout.values import plan, planned, report, said

TARGET = plan(a_alpha=planned("2"), b_alpha=planned("2"), c_beta=planned("2"))
BASE = plan(a_alpha=planned(), b_alpha=planned(), c_beta=planned())


def begin(**given: Any) -> State:
    """Two entries of alpha and one of beta, all in one step."""
    asked: dict[str, Any] = {
        "base": BASE, "base_edges": (), "target": TARGET, "target_edges": (), "reports": {},
    }  # fmt: skip
    at_once = {
        name: Rule(upgrade="together", max_unavailable=None) for name in ("a", "b", "c", "web")
    }
    return rollout.begin(**({"terms": Terms(rules=at_once)} | asked | given))


def sent() -> State:
    state, _ = run(
        begin(), Started(now_ms=0), offered(0, "alpha", 2, 10), offered(0, "beta", 2, 10)
    )
    assert state.phase is Phase.WAITING
    return state


def dead(restarts: int = 2, unit: UnitState = UnitState.BACKING_OFF, key: str = "2"):
    found = said(key, EntryState.FAILED, unit_state=unit)
    units = {
        name: replace(each, restarts=restarts, cause="ended: exit 1", pid=None)
        for name, each in found.units.items()
    }
    return replace(found, units=units)


BUSY = said("2", EntryState.APPLYING, unit_state=UnitState.STARTING)
WELL = said("2")


def failed(state: State, effects: list[Any]) -> list[EntryId | None]:
    assert state.phase is Phase.FAILED
    return [each.entry for each in outcome_of(effects).troubles]


def test_all_that_fail_together_are_named() -> None:
    """Of one machine that tells of one after the other, and of several."""
    state, _ = run(sent(), told(report("alpha", 2, 2, a=dead(), b=BUSY), 100))
    assert state.phase is Phase.WAITING
    state, _ = run(state, told(report("alpha", 2, 3, a=dead(), b=dead()), 900))
    assert state.phase is Phase.WAITING
    state, effects = run(state, told(report("beta", 2, 2, c=dead()), 1200))
    assert failed(state, effects) == ["a:main@alpha", "b:main@alpha", "c:main@beta"]


def test_a_failure_waits_for_the_others_only_a_while() -> None:
    """A machine that is silent, and a start that takes long, do not hide it."""
    state, _ = run(sent(), told(report("alpha", 2, 2, a=dead(), b=BUSY), 100))
    state, effects = run(state, Ticked(now_ms=99 + rollout.FAILING_MS))
    assert (state.phase, effects) == (Phase.WAITING, [])
    saved = states.decode(states.encode(state))
    assert saved == state
    state, effects = run(saved, Ticked(now_ms=100 + rollout.FAILING_MS))
    assert failed(state, effects) == ["a:main@alpha"]


def test_one_that_is_well_again_meanwhile_has_not_failed() -> None:
    state, _ = run(sent(), told(report("alpha", 2, 2, a=dead(), b=BUSY), 100))
    state, _ = run(state, told(report("alpha", 2, 3, a=WELL, b=WELL), 200))
    state, _ = run(state, Ticked(now_ms=100 + rollout.FAILING_MS))
    assert state.phase is Phase.WAITING
    state, _ = run(state, told(report("beta", 2, 2, c=WELL), 4000))
    assert state.phase is Phase.DONE


def refusing(number: int | None, *, text: str = "unknown field `x`", sequence: int = 2) -> Report:
    found = report("alpha", 1, sequence, a=said("1"), b=said("1"))
    offer = None if number is None else OfferNumber(1, number)
    return replace(found, refused=text, refused_offer=offer)


def test_a_refused_declaration_ends_it_at_once_in_the_machines_words() -> None:
    state, _ = run(sent(), told(report("beta", 2, 2, c=WELL), 90))
    state, effects = run(state, told(refusing(2), 100))
    assert state.phase is Phase.FAILED
    (trouble,) = outcome_of(effects).troubles
    assert trouble.lack is Lack.ACCEPTANCE
    assert trouble.said == "alpha refused its declaration 1.2: unknown field `x`"


def test_a_refusal_of_an_earlier_declaration_is_none_of_this_one() -> None:
    """Nor is one of which nobody knows the number: it may have been of any."""
    for number in (1, None):
        state, _ = run(sent(), told(report("beta", 2, 2, c=WELL), 90))
        state, _ = run(state, told(refusing(number), 100))
        assert state.phase is Phase.WAITING


UNPROVEN = (EntryId("a:main@alpha"),)


def again(before: Any) -> State:
    """The same is applied once more, after a rollout that failed by `a`."""
    state = begin(
        base=TARGET,
        unproven=UNPROVEN,
        reports={MachineName("alpha"): report("alpha", 2, 5, a=before, b=WELL)},
    )
    assert state.steps[0].awaited == UNPROVEN
    state, _ = run(state, Started(now_ms=0), offered(0, "alpha", 2, 10))
    return state


def test_what_failed_before_is_judged_by_what_is_tried_since() -> None:
    """A unit that backs off is not the failure of who applies the same again."""
    state = again(dead(restarts=2))
    assert state.phase is Phase.WAITING
    state, _ = run(state, told(report("alpha", 2, 6, a=dead(restarts=2), b=WELL), 100))
    assert state.phase is Phase.WAITING
    well, _ = run(state, told(report("alpha", 2, 7, a=WELL, b=WELL), 200))
    assert well.phase is Phase.DONE
    at = gate.BELATED_MS
    state, effects = run(state, told(report("alpha", 2, 7, a=dead(restarts=3), b=WELL), at))
    assert failed(state, effects) == ["a:main@alpha"]


def test_a_try_from_before_that_is_told_late_is_no_failure() -> None:
    """It may have ended before the cause was mended; the next try says what is so."""
    state = again(dead(restarts=2))
    late = told(report("alpha", 2, 6, a=dead(restarts=3), b=WELL), gate.BELATED_MS - 1)
    state, _ = run(state, late, Ticked(now_ms=gate.BELATED_MS + 1))
    assert state.phase is Phase.WAITING
    well, _ = run(state, told(report("alpha", 2, 7, a=WELL, b=WELL), 9000))
    assert well.phase is Phase.DONE
    state, effects = run(state, told(report("alpha", 2, 7, a=dead(restarts=4), b=WELL), 9000))
    assert failed(state, effects) == ["a:main@alpha"]


def test_an_entry_that_failed_is_told_with_its_own_cause() -> None:
    """Not with the state of a unit that was not even tried."""
    blocked = replace(
        said("2", EntryState.FAILED, pid=None, unit_state=UnitState.PENDING),
        cause="/etc/x: a file that is not ours was there before",
    )
    state = again(replace(blocked, tries=3))
    same = told(report("alpha", 2, 6, a=replace(blocked, tries=3), b=WELL), 100)
    state, _ = run(state, same)
    assert state.phase is Phase.WAITING
    tried, effects = run(
        state, told(report("alpha", 2, 7, a=replace(blocked, tries=4), b=WELL), 200)
    )
    assert failed(tried, effects) == ["a:main@alpha"]
    (lacking,) = gate.lacks(state)
    assert lacking.said == f"a:main@alpha is failed: {blocked.cause}"
    state, effects = run(state, Ticked(now_ms=1_000_000))
    assert failed(state, effects) == ["a:main@alpha"]
    assert outcome_of(effects).troubles == (lacking,)


def test_a_path_is_tried_anew_before_it_has_failed_again() -> None:
    """Also of an entry with no unit; an agent that tells of no tries is not waited for."""
    bare = replace(said("2", EntryState.FAILED), units={}, tries=1)
    state = again(bare)
    assert state.phase is Phase.WAITING
    state, _ = run(state, told(report("alpha", 2, 6, a=replace(bare, tries=2), b=WELL), 100))
    assert state.phase is Phase.FAILED
    assert again(replace(bare, tries=0)).phase is Phase.FAILED


def test_what_is_never_tried_again_has_failed_at_once() -> None:
    """Waiting would change nothing."""
    state = again(dead(unit=UnitState.FAILED))
    assert state.phase is Phase.FAILED


def test_what_was_well_before_and_failed_since_has_failed() -> None:
    state, effects = run(again(WELL), told(report("alpha", 2, 6, a=dead(0), b=WELL), 100))
    assert state.phase is Phase.DONE  # it passed before it failed: nothing waits for it any more
    state, effects = run(again(BUSY), told(report("alpha", 2, 6, a=dead(0), b=WELL), 100))
    assert failed(state, effects) == ["a:main@alpha"]


def test_what_cannot_be_sent_ends_it_at_once() -> None:
    """Nothing was offered, so nothing of the step is declared."""
    trouble = Trouble(machine=MachineName("alpha"), lack=Lack.OFFER, said="it is too large")
    state, _ = run(begin(), Started(now_ms=0))
    state, effects = run(state, Unsendable(troubles=(trouble,), now_ms=50))
    assert state.phase is Phase.FAILED
    assert outcome_of(effects).troubles == (trouble,)
    assert state.sent == 0
