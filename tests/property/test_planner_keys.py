"""What keys promise, on any fleet."""

import copy
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.model.plan import Plan
from keyplane.plancheck import plan as plancheck
from keyplane.planner import compare
from tests.property.planner_fleets import MACHINES, keys, planned, richer, turned

Json = Any
EXAMPLES = 60
"""Some seconds: each example is two or three plans of a dozen entries."""


def encoded(plan: Plan) -> bytes:
    return msgspec.json.encode(plan, order="sorted")


@settings(max_examples=EXAMPLES, deadline=None)
@given(richer())
def test_a_plan_always_comes_out_and_its_hashes_are_right(documents: dict[str, Json]) -> None:
    assert plancheck.check(planned(documents).plan) == []


@settings(max_examples=EXAMPLES, deadline=None)
@given(richer())
def test_planning_a_planned_fleet_again_is_no_difference(documents: dict[str, Json]) -> None:
    first = planned(documents)
    again = planned(documents, first.plan)
    found = compare.diff(first.plan, again.plan)
    assert found.untouched == sorted(first.plan.entries)
    assert encoded(first.plan) == encoded(again.plan)
    assert first.digests == again.digests


@settings(max_examples=EXAMPLES, deadline=None)
@given(richer())
def test_no_order_of_documents_changes_a_byte(documents: dict[str, Json]) -> None:
    assert encoded(planned(documents).plan) == encoded(planned(turned(documents)).plan)


@settings(max_examples=EXAMPLES, deadline=None)
@given(richer(), st.sampled_from(MACHINES))
def test_an_instance_that_nothing_uses_comes_and_goes_without_a_trace(
    documents: dict[str, Json], machine: str
) -> None:
    before = planned(documents)
    more = copy.deepcopy(documents)
    more["fleet.json"]["instances"]["extra"] = {
        "module": "extra",
        "placement": {"every": {"main": {"machines": [machine]}}},
    }
    unit = {"kind": "process", "command": ["x", "${alloc.ports.web}"]}
    more["modules/extra/module.json"] = {
        "module": "extra",
        "version": "1",
        "roles": {"main": {"units": {"x": unit}, "listens": {"web": {"protocol": "tcp"}}}},
    }
    during = planned(more, before.plan)
    assert keys(during) == {
        **keys(before),
        f"extra:main@{machine}": keys(during)[f"extra:main@{machine}"],
    }
    assert keys(planned(documents, during.plan)) == keys(before)


@settings(max_examples=EXAMPLES, deadline=None)
@given(richer(), richer())
def test_a_difference_applied_to_the_old_keys_gives_the_new(
    old_documents: dict[str, Json], new_documents: dict[str, Json]
) -> None:
    old = planned(old_documents)
    new = planned(new_documents, old.plan)
    found = compare.diff(old.plan, new.plan)
    assert found == compare.diff(
        old.plan, new.plan, old_digests=old.digests, new_digests=new.digests
    )
    after = {name: key for name, key in keys(old).items() if name not in found.deactivate}
    assert not after.keys() & set(found.activate)
    after |= {name: keys(new)[name] for name in found.activate}
    assert after == keys(new)
    settled = {*found.untouched, *found.reload, *found.rewire}
    assert settled | set(found.activate) == new.plan.entries.keys()


@settings(max_examples=EXAMPLES, deadline=None)
@given(richer(), st.integers(0, 3))
def test_a_key_that_moves_takes_those_along_that_follow_it(
    documents: dict[str, Json], number: int
) -> None:
    """And nobody who follows values only, where no value is another."""
    changed = copy.deepcopy(documents)
    roles = changed[f"modules/m{number}/module.json"]["roles"]
    if "units" not in roles["main"]:
        return
    roles["main"]["units"]["side"]["command"] = ["another"]
    old = planned(documents)
    new = planned(changed, old.plan)
    moved = set(compare.diff(old.plan, new.plan).activate)
    instances = documents["fleet.json"]["instances"]
    followed: set[str] = set()
    for edge in old.plan.edges:
        entry = old.plan.entries[edge.consumer]
        instance, _, role_name = edge.consumer.partition("@")[0].partition(":")
        module = instances[instance]["module"] if instance in instances else instance
        role = documents[f"modules/{module}/module.json"]["roles"][role_name]
        follows = role["uses"][edge.slot].get("follow", "key")
        reads = [
            variable
            for name, unit in role.get("units", {}).items()
            for variable, text in unit["env"].items()
            if f"${{results.{edge.slot}." in text and variable in entry.units[name].env
        ]
        if reads and follows == "key" and edge.provider != edge.consumer:
            assert (edge.provider in moved) <= (edge.consumer in moved)
        if follows == "key":
            followed.add(edge.consumer)
    for entry in moved - followed:
        assert old.plan.entries[entry].module == f"m{number}"


@settings(max_examples=EXAMPLES, deadline=None)
@given(richer(), st.integers(0, 4))
def test_a_setting_moves_those_that_read_it_and_none_out_of_its_reach(
    documents: dict[str, Json], number: int
) -> None:
    changed = copy.deepcopy(documents)
    instances = changed["fleet.json"]["instances"]
    name = sorted(instances)[number % len(instances)]
    instances[name]["settings"]["main"]["s"] = "three"
    old = planned(documents)
    new = planned(changed, old.plan)
    assert old.plan.entries.keys() == new.plan.entries.keys()
    moved = set(compare.diff(old.plan, new.plan).activate)
    role = documents[f"modules/{instances[name]['module']}/module.json"]["roles"]["main"]
    for entry in old.plan.entries:
        if entry.startswith(f"{name}:main@"):
            for unit_name, unit in role.get("units", {}).items():
                made = old.plan.entries[entry].units[unit_name]
                read = [
                    variable
                    for variable, text in unit["env"].items()
                    if "${settings.s}" in text and variable in made.env
                ]
                if read:
                    assert entry in moved
    reach = {entry for entry in old.plan.entries if entry.startswith(f"{name}:")}
    edges = [(edge.consumer, edge.provider) for edge in old.plan.edges]
    grown = True
    while grown:
        beyond = {consumer for consumer, provider in edges if provider in reach}
        # What a consumer asks of its provider stands in the exports that it reads itself.
        grown = not beyond <= reach
        reach |= beyond
    assert moved <= reach
