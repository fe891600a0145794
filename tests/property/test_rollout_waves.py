"""However a tier is parted, nothing of it is lost, and no role loses more than it may."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout.mixture import mix, mix_edges
from keyplane.rollout.policies import Rule
from keyplane.rollout.steps import Step
from keyplane.rollout.tiers import tiers
from keyplane.rollout.waves import waves
from tests.property.test_rollout_tiers import IDS, Entries, Side, any_difference, differences
from tests.unit.rollout.values import planned

KINDS = ("activated", "changed", "live", "removed", "tightened", "awaited", "rewired", "gaps")

any_rule = st.builds(
    Rule,
    upgrade=st.sampled_from(["first", "together"]),
    max_unavailable=st.sampled_from([1, 2, 3, None]),
    settle_ms=st.just(5),
)
any_rules = st.dictionaries(st.sampled_from("abcd"), any_rule)
some_machines = st.sets(st.sampled_from([MachineName(name) for name in "xyz"]))


def all_of(steps: tuple[Step, ...], kind: str) -> list[object]:
    return sorted(each for step in steps for each in getattr(step, kind))


@settings(deadline=None, max_examples=60)
@given(differences(ports=True, circles=True), any_rules, some_machines)
def test_the_waves_are_their_tiers(
    both: tuple[Side, Side], rules: dict[str, Rule], absent: set[MachineName]
) -> None:
    """Each entry once, in the order of its tier; a machine is in one wave of a tier alone."""
    (base, base_edges), (target, target_edges) = both
    whole = tiers(base, base_edges, target, target_edges)
    parts = waves(whole, base_edges, target_edges, target, rules, absent)
    assert all(step.machines for step in parts)
    for kind in KINDS:
        assert all_of(parts, kind) == all_of(whole, kind)
    tier_of = {
        entry: at for at, step in enumerate(whole) for entry in (*step.switched, *step.removed)
    }
    order = [tier_of[entry] for step in parts for entry in (*step.switched, *step.removed)]
    assert order == sorted(order)


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Side, Side]:
    """One instance changes on each machine, and new ones that use each other come beside it."""
    old = [EntryId(f"a:main@{machine}") for machine in "xy"]
    new = draw(st.lists(st.sampled_from(IDS[2:]), min_size=2, max_size=3, unique=True))
    ends = zip(new, (*new[1:], new[0]), strict=True)
    circle = [
        Edge(consumer=one, slot="s", provider=other, provide="p", chosen="only")
        for one, other in ends
    ]
    base = {entry: planned("1") for entry in old}
    target = {entry: planned("2") for entry in (*old, *new)}
    return (base, []), (target, circle)


@settings(deadline=None, max_examples=100)
@given(st.one_of(arrivals(), any_difference), any_rules, some_machines)
def test_between_any_two_waves_nobody_uses_what_is_not_there(
    both: tuple[Side, Side], rules: dict[str, Rule], absent: set[MachineName]
) -> None:
    """However the machines of a tier are parted; entries of a circle are declared together."""
    (base, base_edges), (target, target_edges) = both
    whole = tiers(base, base_edges, target, target_edges)
    parts = waves(whole, base_edges, target_edges, target, rules, absent)
    for count in range(len(parts) + 1):
        entries = mix(base, target, parts, count, {}).entries
        for edge in mix_edges(base_edges, target_edges, parts, count):
            assert edge.consumer in entries
            assert edge.provider in entries


@settings(deadline=None, max_examples=60)
@given(differences(ports=False, circles=False), any_rules)
def test_no_role_restarts_more_members_at_once_than_it_may(
    both: tuple[Side, Side], rules: dict[str, Rule]
) -> None:
    """And the first of a module is alone, and watched where others follow in its tier."""
    (base, base_edges), (target, target_edges) = both
    whole = tiers(base, base_edges, target, target_edges)
    for tier in whole:
        parts = waves((tier,), base_edges, target_edges, target, rules, ())
        seen: set[str] = set()
        for step in parts:
            restarted = Counter(":".join(split_entry(entry)[:2]) for entry in step.changed)
            for role, count in restarted.items():
                limit = rules.get(role.partition(":")[0], Rule()).max_unavailable
                assert limit is None or count <= limit
            paced = [e for e in (*step.changed, *step.live) if is_first(rules, e)]
            modules = {target[entry].entry.module for entry in paced}
            for module in modules - seen:
                first = {split_entry(e)[2] for e in paced if target[e].entry.module == module}
                assert len(first) == 1
            seen |= modules
        for one, later in pairwise(parts):
            both_have = modules_of(one, rules, target) & modules_of(later, rules, target)
            if one is parts[0] and both_have:
                assert one.settle_ms > 0


def modules_of(step: Step, rules: dict[str, Rule], target: Entries) -> set[str]:
    """Those that send one machine first."""
    entries = (*step.changed, *step.live)
    return {target[entry].entry.module for entry in entries if is_first(rules, entry)}


def is_first(rules: dict[str, Rule], entry: EntryId) -> bool:
    return rules.get(split_entry(entry)[0], Rule()).upgrade == "first"
