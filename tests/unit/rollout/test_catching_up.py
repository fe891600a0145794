"""What was off together comes back together, and restarts one after the other all the same."""

from typing import Any

from keyplane.model.declaration import EntryState, Report
from keyplane.model.names import EntryId, MachineName
from keyplane.rollout import catching_up
from keyplane.rollout import machine as rollout
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.state import Phase, Started, State
from tests.unit.rollout.test_machine import offered, run
from tests.unit.rollout.values import plan, planned, report, said

OFF = ("a", "b", "c")


def web(key: str) -> Any:
    return plan(**{f"web_{each}": planned(key) for each in OFF})


def without_them(rule: Rule) -> State:
    """A rollout that went on without all three."""
    state = rollout.begin(
        base=web("1"),
        base_edges=[],
        target=web("2"),
        target_edges=[],
        reports={MachineName(each): old(each) for each in OFF},
        terms=Terms(rules={"web": rule}, absent=frozenset(map(MachineName, OFF))),
    )
    state, _ = run(state, Started(now_ms=0), *(offered(0, each, 2, 10) for each in OFF))
    assert state.phase is Phase.DONE
    return state


def old(machine: str) -> Report:
    return report(machine, 1, 1, web=said("1"))


def entries(*machines: str) -> tuple[EntryId, ...]:
    return tuple(EntryId(f"web:main@{each}") for each in machines)


def test_no_more_of_a_role_than_may_be_away_come_to_what_they_missed_at_once():
    state = without_them(Rule(max_unavailable=2))
    assert catching_up.outdated(state, old("a")) == entries("a")
    assert not catching_up.has_to_wait(state, old("a"), entries("b"))
    assert catching_up.has_to_wait(state, old("a"), entries("b", "c"))


def test_whoever_has_it_already_or_was_not_missed_waits_for_nobody():
    state = without_them(Rule(max_unavailable=1))
    assert not catching_up.has_to_wait(state, report("a", 2, 2, web=said("2")), entries("b"))
    assert not catching_up.has_to_wait(state, old("z"), entries("b"))
    other = report("a", 1, 1, pg=said("1"))
    assert not catching_up.has_to_wait(state, other, entries("b")), "nothing of it runs there"


def test_what_is_guarded_by_what_is_stated_asks_for_permits_instead():
    state = without_them(Rule(max_unavailable=1, away=1))
    assert not catching_up.has_to_wait(state, old("a"), entries("b"))
    assert not catching_up.has_to_wait(
        without_them(Rule(upgrade="together", max_unavailable=None)), old("a"), entries("b", "c")
    )


def test_one_is_at_it_until_it_is_well_as_it_was_sent():
    state = without_them(Rule(max_unavailable=1))
    assert catching_up.unwell(state, old("a")) == (), "it has not begun"
    applying = report("a", 2, 2, settled=1, web=said("1", EntryState.APPLYING))
    assert catching_up.unwell(state, applying) == entries("a")
    starting = report("a", 2, 3, web=said("2", EntryState.APPLIED))
    assert catching_up.unwell(state, starting) == entries("a")
    assert catching_up.unwell(state, report("a", 2, 4, web=said("2"))) == ()
