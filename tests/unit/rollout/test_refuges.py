"""What entries go back to that an earlier rollout sent and nobody saw well."""

from dataclasses import replace
from typing import Any

import pytest

from keyplane.model.declaration import EntryState
from keyplane.model.names import EntryId, MachineName
from keyplane.rollout import machine as rollout
from keyplane.rollout import refuges
from keyplane.rollout import state as rollout_states
from keyplane.rollout.outcome import Lack, Result, Trouble
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.state import Missed, Offer, Offered, Phase, Started, State, Unsendable
from keyplane.rollout.tiers import tiers
from keyplane.rollout.volumes import Give, Transfers
from tests.unit.rollout.test_machine import offered, outcome_of, run, told
from tests.unit.rollout.values import digest, edges, names, plan, planned, report, said

WEB, PG = EntryId("web:main@a"), EntryId("pg:main@a")
BACK = Rule(settle_ms=1_000, rolls_back=True)


def at(key: str, *ends: str, **fields: Any) -> Refuge:
    return Refuge(planned=planned(key, **fields), edges=tuple(edges(*ends)))


def begin(
    base: str | None, target: str, fled: refuges.Refuges | None = None, **before: Any
) -> State:
    return rollout.begin(
        base=plan(web_a=planned(base)) if base else {},
        base_edges=[],
        target=plan(web_a=planned(target)),
        target_edges=[],
        reports={MachineName("a"): report("a", 1, 1, **before)},
        unproven=[WEB] if fled is not None else [],
        fled=fled,
        terms=Terms(rules={"web": BACK}),
    )


def failed(key: str, number: int, at_ms: int) -> Any:
    return told(report("a", number, number, web=said(key, EntryState.FAILED)), at_ms)


def kept(state: State, base: str | None) -> refuges.Refuges:
    """Of what that one leaves to the next."""
    entries = plan(web_a=planned(base)) if base else {}
    return refuges.left(state, entries, rollout.unproven(state))


def test_who_goes_back_goes_to_what_was_before_the_first_that_failed():
    """Through each rollout that took over, and to no version that it found there."""
    first, _ = run(begin("1", "2", web=said("1")), Started(now_ms=0), offered(0, "a", 2, 1))
    fled = kept(first, "1")
    assert fled == {WEB: at("1")}
    second = begin("2", "3", fled, web=said("2", EntryState.FAILED))
    second, _ = run(second, Started(now_ms=0), offered(0, "a", 3, 1))
    assert kept(second, "2") == fled
    third = begin("3", "4", kept(second, "2"), web=said("3", EntryState.FAILED))
    third, effects = run(third, Started(now_ms=0), offered(0, "a", 4, 1), failed("4", 4, 100))
    assert effects[-1] == Offer(step=0, machines=(MachineName("a"),), back=True)
    back = Offered(step=0, machine=MachineName("a"), offer=offer(5), now_ms=200, back=True)
    # As it was found is not as it was before the first.
    third, _ = run(third, back, told(report("a", 5, 5, web=said("3")), 300))
    assert third.phase is Phase.RETURNING
    third, effects = run(third, told(report("a", 5, 6, web=said("1")), 400))
    outcome = outcome_of(effects)
    assert outcome.result is Result.ROLLED_BACK
    told_so = "web:main@a to what was before an earlier rollout that nobody saw well"
    assert outcome.why_unsent.endswith(told_so)
    assert rollout.unproven(third) == ()


def offer(number: int) -> Any:
    return offered(0, "a", number, 0).offer


def test_what_was_not_there_is_gone_again():
    """It was new with the first that failed; a machine that said it had it is another matter."""
    first, _ = run(begin(None, "1"), Started(now_ms=0), offered(0, "a", 2, 1))
    assert kept(first, None) == {WEB: Refuge(planned=None)}
    lost, _ = run(begin(None, "1", web=said("0")), Started(now_ms=0), offered(0, "a", 2, 1))
    assert kept(lost, None) == {}


def test_where_it_went_on_without_a_machine_nothing_is_carried_over():
    """Others may have come to need what that machine is to be."""
    both = plan(pg_a=planned("1"), web_b=planned("1"))
    state = rollout.begin(
        base=both,
        base_edges=edges("web_b pg_a"),
        target=plan(pg_a=planned("2"), web_b=planned("2")),
        target_edges=edges("web_b pg_a"),
        reports={},
        terms=Terms(absent=frozenset([MachineName("a")])),
    )
    away = Missed(absent=frozenset([MachineName("a")]), now_ms=1)
    state, _ = run(state, Started(now_ms=0), away, offered(0, "a", 2, 2), offered(1, "b", 2, 3))
    assert {PG, EntryId("web:main@b")} <= set(rollout.unproven(state))
    assert list(refuges.left(state, both, rollout.unproven(state))) == ["web:main@b"]


def test_what_cannot_be_declared_is_what_the_rollout_found():
    """What was before an earlier one is tried first; nothing else is given up for it."""
    state = begin("2", "3", {WEB: at("1")}, web=said("2", EntryState.FAILED))
    state, _ = run(state, Started(now_ms=0), offered(0, "a", 3, 1), failed("3", 3, 100))
    assert state.refuges
    trouble = Trouble(machine=MachineName("a"), lack=Lack.OFFER, said="two hold port 80")
    unsendable = Unsendable(troubles=(trouble,), now_ms=150)
    state, effects = run(state, replace(unsendable, fled=True))
    assert (state.phase, dict(state.refuges)) == (Phase.RECALLING, {})
    assert effects == [Offer(step=0, machines=(MachineName("a"),), back=True)]
    state, _ = run(state, unsendable)
    assert state.phase is Phase.ROLLBACK_FAILED


def test_a_provider_that_may_be_needed_again_goes_after_its_former_consumer():
    """web used pg before it failed on another: pg stays until web is well without it."""
    steps = tiers(
        plan(web_a=planned("2"), pg_b=planned()),
        [],
        plan(web_a=planned("3")),
        [],
        [WEB],
        refuges={WEB: at("1", "web_a pg_b")},
    )
    assert [(names(s.changed), names(s.removed)) for s in steps] == [
        (["web_a"], []),
        ([], ["pg_b"]),
    ]


def test_a_port_that_may_be_needed_again_is_taken_last():
    """web had 80 before it failed on 81: who is to have 80 waits until web is well on 82."""
    steps = tiers(
        plan(web_a=planned("2", listens={"p": 81})),
        [],
        plan(web_a=planned("3", listens={"p": 82}), pg_a=planned("1", listens={"p": 80})),
        [],
        [WEB],
        refuges={WEB: at("1", listens={"p": 80})},
    )
    assert [names(s.switched) for s in steps] == [["web_a"], ["pg_a"]]


VOLUME: Any = {"volumes": {"data": "/srv/data"}}


@pytest.mark.parametrize(
    ("base", "fled", "uses", "transfers"),
    [
        # Its data would be left without it.
        (planned("2", **VOLUME), Refuge(planned=None), [], Transfers()),
        # Its data moves.
        (planned("2"), at("1"), [], Transfers(gives={WEB: Give(to=PG, number=1)})),
        (planned("2"), at("1"), [], Transfers(takes={WEB: 1})),
        # It used what is not there any more.
        (planned("2"), at("1", "web_a other_a"), [], Transfers()),
        # It is used by what stays.
        (planned("2"), Refuge(planned=None), ["pg_a web_a"], Transfers()),
        # Another one has its port by now.
        (planned("2"), at("1", listens={"p": 5432}), [], Transfers()),
    ],
)
def test_what_cannot_be_had_is_gone_back_to_by_nobody(
    base: Any, fled: Refuge, uses: list[str], transfers: Transfers
):
    """Nor is what needs it."""
    entries = plan(web_a=base, pg_a=planned("1", listens={"p": 5432}), app_a=planned("2"))
    app = EntryId("app:main@a")
    both = {WEB: fled, app: at("1")}
    assert list(refuges.usable(both, entries, edges(*uses), transfers)) == [app]


def test_what_was_well_by_itself_is_gone_back_to():
    """Its step did not pass, and what was before it cannot be had."""
    state = begin("2", "3", {}, web=said("2"))
    state, _ = run(state, Started(now_ms=0), offered(0, "a", 3, 1))
    assert {e: each.planned for e, each in kept(state, "2").items()} == {WEB: planned("2")}
    ill = begin("2", "3", {}, web=said("2", EntryState.FAILED))
    ill, _ = run(ill, Started(now_ms=0), offered(0, "a", 3, 1))
    assert kept(ill, "2") == {}


def test_what_was_well_once_it_was_back_is_proven():
    """It was not when the rollout found it; whoever comes next may go back to it."""
    state = begin("2", "3", {}, web=said("2", EntryState.FAILED))
    state, _ = run(state, Started(now_ms=0), offered(0, "a", 3, 1), failed("3", 3, 100))
    back = Offered(step=0, machine=MachineName("a"), offer=offer(4), now_ms=200, back=True)
    state, _ = run(state, back, told(report("a", 4, 4, web=said("2")), 300))
    assert (state.phase, rollout.unproven(state)) == (Phase.ROLLED_BACK, ())
    ill = begin("2", "3", {}, web=said("2", EntryState.FAILED))
    ill, _ = run(ill, Started(now_ms=0), offered(0, "a", 3, 1), failed("3", 3, 100))
    ill, _ = run(ill, back, failed("2", 4, 300))
    assert (ill.phase, rollout.unproven(ill)) == (Phase.ROLLED_BACK, (WEB,))


def test_a_refuge_survives_its_controller():
    """It is in what is saved, with its grants and edges."""
    fled = Refuge(
        planned=replace(planned("1"), grants={"/g": digest("g")}, udp=("p",)),
        edges=tuple(edges("web_a pg_a")),
        was_ill=True,
    )
    state = replace(begin("2", "3"), refuges={WEB: fled})
    assert rollout_states.decode(rollout_states.encode(state)) == state
