"""One machine first, then more and more at once, within what may be away."""

from collections.abc import Iterable
from typing import Any

import pytest

from keyplane.model.documents import Documents
from keyplane.model.duration import parse
from keyplane.model.fleet import Fleet, Instance
from keyplane.model.module import Module, Policy
from keyplane.model.names import EntryId, MachineName
from keyplane.model.plan import Edge
from keyplane.rollout import machine as rollout
from keyplane.rollout import policies
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.steps import Step
from keyplane.rollout.tiers import tiers
from keyplane.rollout.waves import waves
from tests.unit.rollout.values import edges, plan, planned

SIX = ("a", "b", "c", "d", "e", "f")


def fleet(key: str, machines: Iterable[str] = SIX, instance: str = "web", **fields: Any):
    return plan(**{f"{instance}_{each}": planned(key, **fields) for each in machines})


def steps(
    base: Any,
    target: Any,
    rules: dict[str, Rule],
    *,
    absent: Iterable[str] = (),
    between: list[Edge] | None = None,
    recorded: Iterable[str] = (),
) -> tuple[Step, ...]:
    both = between or []
    whole = tiers(base, both, target, both, recorded={EntryId(each): "" for each in recorded})
    return waves(whole, both, both, target, rules, {MachineName(each) for each in absent})


def sent(found: tuple[Step, ...]) -> list[str]:
    return ["".join(step.machines) for step in found]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, ["a", "b", "c", "d", "e", "f"]),
        (2, ["a", "b", "cd", "ef"]),
        (3, ["a", "b", "cd", "ef"]),
        (100, ["a", "b", "cd", "ef"]),
    ],
)
def test_one_is_first_and_then_they_become_more(most: int, expected: list[str]) -> None:
    """1, 2, 4 and so on, never more than may be unavailable; only the first is watched."""
    rule = Rule(max_unavailable=most, settle_ms=7)
    found = steps(fleet("1"), fleet("2"), {"web": rule})
    assert sent(found) == expected
    assert [step.settle_ms for step in found] == [7, *[0] * (len(expected) - 1)]


def test_one_machine_alone_is_not_watched() -> None:
    """Nobody follows, so nobody waits."""
    found = steps(fleet("1", "a"), fleet("2", "a"), {"web": Rule(settle_ms=7)})
    assert [(step.machines, step.settle_ms) for step in found] == [(("a",), 0)]


def test_together_is_all_at_once_unless_it_has_a_limit() -> None:
    rule = Rule(upgrade="together", max_unavailable=None)
    assert sent(steps(fleet("1"), fleet("2"), {"web": rule})) == ["abcdef"]
    rule = Rule(upgrade="together", max_unavailable=4)
    found = steps(fleet("1"), fleet("2"), {"web": rule})
    assert sent(found) == ["abcd", "ef"]
    assert all(step.settle_ms == 0 for step in found)


def test_what_restarts_nothing_goes_to_all_after_the_first() -> None:
    """New configData takes nobody away, and may still be wrong."""
    found = steps(fleet("1"), fleet("1", version="2"), {"web": Rule(settle_ms=7)})
    assert [(step.machines, step.settle_ms) for step in found] == [
        (("a",), 7),
        (tuple(SIX[1:]), 0),
    ]


def test_what_is_new_and_what_goes_waits_for_nobody() -> None:
    """There is nothing that could be taken away."""
    assert sent(steps({}, fleet("1"), {})) == ["abcdef"]
    assert sent(steps(fleet("1"), {}, {})) == ["abcdef"]


def test_a_machine_that_is_not_heard_is_last_and_never_the_first() -> None:
    found = steps(fleet("1"), fleet("2"), {"web": Rule(max_unavailable=9)}, absent="ad")
    assert sent(found) == ["b", "c", "ef", "ad"]
    assert found[0].settle_ms
    found = steps(fleet("1"), fleet("2"), {"web": Rule(max_unavailable=9)}, absent=SIX)
    assert sent(found) == ["abcdef"]
    found = steps(fleet("1", "ab"), fleet("2", "ab"), {}, absent="b")
    assert [(step.machines, step.away) for step in found] == [(("a",), False), (("b",), True)]
    assert found[0].settle_ms, "should b be back by then"


def test_the_first_of_one_module_is_not_the_second_of_another() -> None:
    """Each module has one first machine, also where they share some."""
    base = {**fleet("1", "ab", module="m"), **fleet("1", "bc", "api", module="n")}
    target = {**fleet("2", "ab", module="m"), **fleet("2", "bc", "api", module="n")}
    assert sent(steps(base, target, {})) == ["a", "b", "c"]


def test_instances_of_one_module_have_one_first_machine() -> None:
    """What a module's new version does is seen on one of them."""
    base = {**fleet("1", "a"), **fleet("1", "b", "api")}
    target = {**fleet("2", "a"), **fleet("2", "b", "api")}
    assert sent(steps(base, target, {})) == ["a", "b"]


def test_a_circle_is_never_parted() -> None:
    """Each of two that use each other would wait for the other."""
    between = edges("web_a web_c", "web_c web_a")
    found = steps(fleet("1", "abc"), fleet("2", "abc"), {}, between=between)
    assert sent(found) == ["ac", "b"]


def test_who_goes_is_not_waited_for_by_what_it_used() -> None:
    """Nothing orders the two, so that the first of a module stays alone."""
    base = {**fleet("1", "ab"), **fleet("1", "c", "old", module="o")}
    used = edges("old_c web_a", "old_c web_b")
    target = fleet("2", "ab")
    found = waves(tiers(base, used, target, []), used, [], target, {}, ())
    assert [(step.changed, step.removed) for step in found] == [
        (("web:main@a",), ("old:main@c",)),
        (("web:main@b",), ()),
    ]


def test_nobody_follows_a_first_machine_that_was_not_seen_well() -> None:
    """Whoever begins a rollout after one that failed: what failed is still the first."""
    rules = {"web": Rule(max_unavailable=9, settle_ms=7)}
    base = {**fleet("1", "abf"), **fleet("2", "c")}
    whole = tiers(base, [], fleet("2", "abcf"), [], [EntryId("web:main@c")])
    found = waves(whole, [], [], fleet("2", "abcf"), rules, ())
    assert [(step.awaited, step.changed) for step in found] == [
        (("web:main@c",), ()),
        ((), ("web:main@a",)),
        ((), ("web:main@b", "web:main@f")),
    ]
    assert [step.settle_ms for step in found] == [7, 0, 0]


def test_nobody_goes_before_what_is_still_watched_though_it_is_down() -> None:
    """It is no loss where it is down, and may be one where the new version comes up."""
    rules = {"web": Rule(max_unavailable=9, settle_ms=7)}
    base = {**fleet("1", "ab"), **fleet("2", "c")}
    whole = tiers(base, [], fleet("2", "abc"), [], [EntryId("web:main@c")])
    found = waves(whole, [], [], fleet("2", "abc"), rules, (), (), [EntryId("web:main@b")])
    assert [(step.awaited, step.changed) for step in found] == [
        (("web:main@c",), ()),
        ((), ("web:main@b",)),
        ((), ("web:main@a",)),
    ]


def test_one_that_is_down_goes_before_those_that_wait_for_it_to_be_up() -> None:
    """Though something else was sent to them before, and not seen well."""
    rules = {"web": Rule(settle_ms=7)}
    base = {**fleet("1", "abc"), **fleet("2", "ab", "api", module="n")}
    target = {**fleet("2", "abc"), **fleet("2", "ab", "api", module="n")}
    unproven = [EntryId("api:main@a"), EntryId("api:main@b")]
    whole = tiers(base, [], target, [], unproven)
    found = waves(whole, [], [], target, rules, (), (), [EntryId("web:main@c")])
    assert sent(found) == ["c", "a", "b"]


def test_one_that_waits_for_its_stop_goes_before_others_are_stopped() -> None:
    """It has it once the one that is down is up again, and the others would wait for it."""
    base, target = fleet("1", "abcd"), fleet("2", "abcd")
    whole = tiers(base, [], target, [])
    down, asking = [EntryId("web:main@c")], [EntryId("web:main@b")]
    found = waves(whole, [], [], target, {"web": Rule()}, (), (), down, asking)
    assert sent(found) == ["c", "b", "a", "d"]


def test_one_that_waits_for_its_stop_goes_after_the_one_that_is_down() -> None:
    """Though something else was sent to its machine before, and not seen well."""
    rules = {"web": Rule(), "api": Rule()}
    base = {**fleet("1", "ab"), **fleet("2", "a", "api", module="n")}
    target = {**fleet("2", "ab"), **fleet("2", "a", "api", module="n")}
    whole = tiers(base, [], target, [], [EntryId("api:main@a")])
    down, asking = [EntryId("web:main@b")], [EntryId("web:main@a")]
    assert sent(waves(whole, [], [], target, rules, (), (), down, asking)) == ["b", "a"]


def test_one_that_is_down_waits_with_its_machine_for_another_set() -> None:
    """On its machine a member of a set is up, of which another waits for its stop."""
    rules = {"web": Rule(), "api": Rule()}
    base = {**fleet("1", "ab"), **fleet("1", "a", "api", module="n")}
    target = {**fleet("2", "ab"), **fleet("2", "a", "api", module="n")}
    whole = tiers(base, [], target, [])
    down, asking = [EntryId("api:main@a")], [EntryId("web:main@b")]
    assert sent(waves(whole, [], [], target, rules, (), (), down, asking)) == ["b", "a"]


def test_who_is_named_is_the_first() -> None:
    found = waves(
        tiers(fleet("1", "abcd"), [], fleet("2", "abcd"), []),
        [],
        [],
        fleet("2", "abcd"),
        {"web": Rule(max_unavailable=9)},
        (),
        [MachineName("c"), MachineName("d")],
    )
    assert sent(found) == ["c", "d", "ab"]


def test_tiers_keep_their_order() -> None:
    base = {**fleet("1", "ab"), **fleet("1", "c", "pg", module="sql")}
    target = {**fleet("2", "ab"), **fleet("2", "c", "pg", module="sql")}
    found = steps(base, target, {}, between=edges("web_a pg_c", "web_b pg_c"))
    assert sent(found) == ["c", "a", "b"]
    assert [bool(step.settle_ms) for step in found] == [False, True, False]


def test_what_is_only_recorded_is_held_with_all_that_comes_after_it() -> None:
    """In steps behind all others, each entry with what it waits for."""
    base = {**fleet("1", "ab"), **fleet("1", "ab", "pg", module="sql"), **fleet("1", "b", "cron")}
    target = {**fleet("2", "ab"), **fleet("2", "ab", "pg", module="sql"), **fleet("2", "b", "cron")}
    between = edges("web_a pg_a", "web_b pg_b")
    found = steps(base, target, {}, between=between, recorded=["pg:main@a"])
    asked = [step for step in found if not step.held]
    assert [step.switched for step in asked] == [
        ("cron:main@b", "pg:main@b"),
        ("web:main@b",),
    ]
    assert [step.holds for step in found if step.held] == [
        (("pg:main@a", None, ""),),
        (("web:main@a", "pg:main@a", ""),),
    ]
    assert found[-1].held


def test_an_instance_says_field_by_field_what_its_module_does_not() -> None:
    """A field that neither states has its default; `together` alone has no limit."""
    settle = parse("3s")
    module = Module(
        name="web",
        version="1",
        file="",
        policy=Policy(upgrade="together", settle=settle, on_failure="rollback"),
    )
    fleet = Fleet(
        name="f",
        file="",
        instances={
            "eu": Instance(name="eu", module="web", policy=Policy(upgrade="first")),
            "us": Instance(
                name="us", module="web", policy=Policy(on_failure="stop", deadline=parse("1m"))
            ),
            "lost": Instance(name="lost", module="absent"),
        },
    )
    rules = policies.rules(Documents(fleet=fleet, modules={"web": module}))
    assert rules["eu"] == Rule(upgrade="first", max_unavailable=1, settle_ms=3_000, rolls_back=True)
    assert rules["us"] == Rule(
        upgrade="together", max_unavailable=None, settle_ms=3_000, deadline_ms=60_000
    )
    assert rules["web"].upgrade == "together"
    assert rules["lost"] == Rule() == policies.of({}, EntryId("any:main@a"))


def test_a_step_is_given_what_its_most_patient_entry_says() -> None:
    """Where nothing is said, the usual time and what its units take."""

    def patience(**rules: Rule) -> tuple[int, ...]:
        target = plan(web_a=planned("2"), db_a=planned("2"))
        state = rollout.begin(
            base=plan(web_a=planned("1"), db_a=planned("1")),
            base_edges=[],
            target=target,
            target_edges=[],
            reports={},
            terms=Terms(rules=rules),
            deadline_ms=50,
        )
        return state.patience_ms

    assert patience() == (50,)
    assert patience(web=Rule(deadline_ms=7)) == (50,)
    assert patience(web=Rule(deadline_ms=7), db=Rule(deadline_ms=9)) == (9,)
    assert patience(web=Rule(deadline_ms=70)) == (70,)
