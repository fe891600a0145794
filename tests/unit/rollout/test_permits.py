"""Who may be stopped of a set of which some have to stay up."""

from collections.abc import Mapping
from typing import Any

from keyplane.model.declaration import Member
from keyplane.model.names import EntryId, MachineName
from keyplane.rollout import permits
from keyplane.rollout.permits import Asked, Decision, Guard
from keyplane.rollout.policies import Rule

ALPHA, BETA, GAMMA = (EntryId(f"web:main@{each}") for each in ("alpha", "beta", "gamma"))
SET = (ALPHA, BETA, GAMMA)
UP, DOWN = Member(up=True), Member(up=False)
ONE_AWAY = Guard(away=1)


def asks(name: str = "life/1", *, up: bool = True) -> Member:
    return Member(up=up, permit=name)


def holds(name: str = "life/1", *, up: bool = True) -> Member:
    return Member(up=up, permit=name, held=True)


def decide(
    members: Mapping[EntryId, Member],
    *,
    guard: Guard | None = ONE_AWAY,
    declared: tuple[EntryId, ...] = SET,
    **fields: Any,
) -> Decision:
    given = {
        "out": dict[EntryId, str](),
        "unheard": (),
        "waiting": [entry for entry, each in members.items() if each.permit and not each.held],
        **fields,
    }
    return permits.decide(
        Asked(
            guards={} if guard is None else {"web:main": guard},
            declared={"web:main": declared},
            members=members,
            **given,
        )
    )


def test_one_may_be_stopped_while_all_are_up() -> None:
    """And no second one, whoever of them asked first; the refusal says why."""
    found = decide({ALPHA: asks("a/1"), BETA: asks("b/1"), GAMMA: UP})
    assert found.granted == {ALPHA: "a/1"}
    assert found.refused == {
        BETA: f"2 of the 3 members of web:main have to stay up: {ALPHA} has a permit"
    }
    found = decide({ALPHA: asks("a/1"), BETA: asks("b/1"), GAMMA: UP}, waiting=[BETA, ALPHA])
    assert found.granted == {BETA: "b/1"}


def test_a_member_that_is_down_for_another_cause_counts() -> None:
    found = decide({ALPHA: asks(), BETA: UP, GAMMA: DOWN})
    assert found.granted == {}
    assert f"{GAMMA} is not up" in found.refused[ALPHA]


def test_a_member_that_was_never_reported_counts_as_down() -> None:
    assert f"{GAMMA} is not up" in decide({ALPHA: asks(), BETA: UP}).refused[ALPHA]


def test_members_of_a_machine_that_is_silent_count_as_down() -> None:
    """Their last report says that they are up, and may be wrong by now."""
    silent = {MachineName("gamma")}
    found = decide({ALPHA: asks(), BETA: UP, GAMMA: UP}, unheard=silent)
    assert found.granted == {}
    assert "gamma is not heard" in found.refused[ALPHA]


def test_a_permit_that_is_out_counts_whatever_its_member_is() -> None:
    """Granted and not heard of yet; taken, and its holder dead; known by its report alone."""
    for member, out in (
        (asks("b/1"), {BETA: "b/1"}),
        (holds("b/1"), {BETA: "b/1"}),
        (holds("b/1"), dict[EntryId, str]()),
    ):
        found = decide({ALPHA: asks("a/1"), BETA: member, GAMMA: UP}, out=out)
        assert found.granted == {}
        assert f"{BETA} has a permit" in found.refused[ALPHA]
        assert found.over == ()


def test_a_permit_is_over_once_its_member_does_not_name_it() -> None:
    """It is up again, gave up, or asks for another one; or its entry is gone."""
    for member in (UP, asks("b/2")):
        found = decide({ALPHA: UP, BETA: member, GAMMA: UP}, out={BETA: "b/1"})
        assert found.over == (BETA,)
    assert decide({ALPHA: UP}, out={BETA: "b/1"}).over == (BETA,)


def test_one_that_is_not_up_may_be_stopped_at_any_time() -> None:
    """It takes nothing away, and what it waits for may be its cure."""
    found = decide({ALPHA: asks(up=False), BETA: UP, GAMMA: DOWN})
    assert found.granted == {ALPHA: "life/1"}


def test_one_that_is_not_heard_is_not_known_to_be_down() -> None:
    """It is no help to the others, and it is not let go as if it took nothing away."""
    members = {ALPHA: asks("a/1"), BETA: asks("b/1"), GAMMA: UP}
    everybody = [MachineName(name) for name in ("alpha", "beta", "gamma")]
    assert decide(members, unheard=everybody).granted == {}
    assert decide({**members, BETA: UP}, unheard=everybody[:1]).granted == {ALPHA: "a/1"}


def test_a_floor_above_the_members_lets_one_go() -> None:
    """`min(floor, members - 1)`: a set of which none may be stopped could never be upgraded."""
    found = decide({ALPHA: asks("a/1"), BETA: asks("b/1"), GAMMA: UP}, guard=Guard(floor=9))
    assert found.granted == {ALPHA: "a/1"}
    alone = decide({ALPHA: asks()}, guard=Guard(floor=1), declared=(ALPHA,))
    assert alone.granted == {ALPHA: "life/1"}


def test_the_stricter_of_floor_and_max_unavailable_counts() -> None:
    assert Guard(floor=2, away=4).keeps(5) == 2
    assert Guard(floor=2, away=1).keeps(5) == 4
    assert Guard(floor=1).keeps(5) == 1
    assert Guard(away=9).keeps(5) == 0


def test_a_set_that_is_to_go_keeps_nothing() -> None:
    """Its instance was removed: nothing states anything, or none of its members is declared."""
    members = {ALPHA: asks("a/1"), BETA: asks("b/1")}
    assert decide(members, guard=None).granted == {ALPHA: "a/1", BETA: "b/1"}
    assert decide(members, declared=()).granted == {ALPHA: "a/1", BETA: "b/1"}


def test_a_member_that_is_to_go_counts_for_as_long_as_it_is_up() -> None:
    """Its successor need not be up before it goes, if enough of the others are."""
    delta = EntryId("web:main@delta")
    declared = (ALPHA, BETA, delta)
    assert decide({ALPHA: UP, BETA: UP, GAMMA: asks()}, declared=declared).granted
    refused = decide({ALPHA: DOWN, BETA: UP, GAMMA: asks(), delta: DOWN}, declared=declared)
    assert f"{delta} is not up" in refused.refused[GAMMA]


def test_one_whose_data_another_has_taken_is_missed_by_nobody() -> None:
    """It comes up no more: who has its data is the member by now."""
    members, declared = {ALPHA: DOWN, BETA: asks()}, (ALPHA, BETA)
    assert decide(members, declared=declared).granted == {}
    assert decide(members, declared=declared, given=[ALPHA]).granted == {BETA: "life/1"}


def test_what_is_stated_of_an_instance_guards_each_of_its_roles() -> None:
    """The pace of a rollout that nobody stated guards nothing."""
    rules = {"web": Rule(away=2, floors={"main": 1}), "db": Rule(floors={"other": 1})}
    entries = [ALPHA, EntryId("web:side@alpha"), EntryId("db:main@alpha"), EntryId("x:main@alpha")]
    found = permits.guards(rules, entries)
    assert found == {"web:main": Guard(floor=1, away=2), "web:side": Guard(away=2)}
    assert permits.sets(found, [*entries, BETA]) == {
        "web:main": frozenset({ALPHA, BETA}),
        "web:side": frozenset({EntryId("web:side@alpha")}),
    }


def test_machines_hear_of_guards_that_come_and_go() -> None:
    entries = [ALPHA, BETA, EntryId("db:main@gamma")]
    there, gone = {"web:main": ONE_AWAY}, dict[str, Guard]()
    both = {MachineName("alpha"), MachineName("beta")}
    assert permits.otherwise(gone, there, entries) == both
    assert permits.otherwise(there, gone, entries) == both
    assert permits.otherwise(there, {"web:main": Guard(floor=1)}, entries) == set()
