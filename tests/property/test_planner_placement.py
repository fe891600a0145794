"""A role by count moves no more than it must."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.planner_fleets import planned

MACHINES = [f"m{number}" for number in range(7)]
subsets = st.sets(st.sampled_from(MACHINES))


def documents(count: int, tagged: set[str], able: set[str], spread: str | None) -> dict[str, Any]:
    selection: dict[str, Any] = {"count": count, "tags": ["t"]}
    if spread is not None:
        selection["spread"] = spread
    found: dict[str, Any] = {
        "fleet.json": {
            "fleet": "drawn",
            "machines": {
                name: {
                    "address": name,
                    "tags": [*(["t"] if name in tagged else []), f"z={number % 3}"],
                }
                for number, name in enumerate(MACHINES)
            },
            "instances": {"i": {"module": "m", "placement": {"count": {"main": selection}}}},
        },
        "modules/m/module.json": {
            "module": "m",
            "version": "1",
            "roles": {
                "main": {
                    "units": {"u": {"kind": "process", "command": ["x"]}},
                    "requirements": [{"subject": "f", "predicate": "exists"}],
                }
            },
        },
    }
    for name in able:
        found[f"facts/{name}.json"] = {"machine": name, "facts": {"f": 1}}
    return found


def placed(result: Any) -> set[str]:
    return {name.rpartition("@")[2] for name in result.plan.entries}


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 5), st.integers(1, 5), subsets, subsets, subsets, subsets,
    st.sampled_from([None, "z"]),
)  # fmt: skip
def test_count_keeps_all_that_still_fits_and_fills_up_from_the_rest(
    first: int,
    second: int,
    tagged: set[str],
    able: set[str],
    tagged_later: set[str],
    able_later: set[str],
    spread: str | None,
) -> None:
    old = planned(documents(first, tagged, able, spread))
    new = planned(documents(second, tagged_later, able_later, spread), old.plan)
    fits = tagged_later & able_later
    assert placed(new) <= fits
    assert len(placed(new)) == min(second, len(fits))
    assert len(placed(old) & placed(new)) == min(second, len(placed(old) & fits))
    short = any(row.code == "placement-short" for row in new.plan.diagnostics)
    assert short == (len(fits) < second)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 7))
def test_a_fresh_spread_is_as_even_as_it_can_be(count: int) -> None:
    everywhere = set(MACHINES)
    members = placed(planned(documents(count, everywhere, everywhere, "z")))
    sizes = [sum(MACHINES.index(name) % 3 == value for name in members) for value in range(3)]
    assert len(members) == count
    assert all(
        size == max(sizes) or size >= max(sizes) - 1 or size == len(MACHINES[value::3])
        for value, size in enumerate(sizes)
    )


def implying(count: int, readers: set[str], able: set[str]) -> dict[str, Any]:
    """A role by count, and readers that imply an entry of it beside them where none stands."""
    found = documents(count, set(MACHINES), able, None)
    fleet = found["fleet.json"]
    provider = found.pop("modules/m/module.json")
    provider["module"] = "i"
    exports = {name: {"value": name, "lifecycle": "static"} for name in ("url",)}
    exports["n"] = {"value": 1, "lifecycle": "static"}
    provider["roles"]["main"]["provides"] = {"p": {"interface": "b", "exports": exports}}
    found["modules/i/module.json"] = provider
    fleet["instances"]["i"]["module"] = "i"
    fleet["instances"]["reader"] = {
        "module": "reader",
        "placement": {"every": {"main": {"machines": sorted(readers)}}},
    }
    unit = {"kind": "process", "command": ["x"], "env": {"A": "${results.u.url}"}}
    role = {"uses": {"u": {"interface": "b"}}, "units": {"u": unit}}
    found["modules/reader/module.json"] = {
        "module": "reader",
        "version": "1",
        "roles": {"main": role},
    }
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 2),
    st.sets(st.sampled_from(MACHINES[:4]), min_size=1),
    st.sets(st.sampled_from(MACHINES[2:]), min_size=1),
    subsets,
)
def test_what_is_implied_is_no_place_that_count_keeps(
    count: int, readers: set[str], able: set[str], able_later: set[str]
) -> None:
    """Machines that become able, and readers on them, move nothing of what was placed."""
    first = planned(implying(count, set(), able))
    then = planned(implying(count, readers, able | readers | able_later), first.plan)
    again = planned(implying(count, readers, able | readers | able_later), then.plan)
    assert again.plan.entries == then.plan.entries
    before = {name for name in first.plan.entries if name.startswith("i:")}
    assert before <= then.plan.entries.keys()
    implied = {edge.provider for edge in then.plan.edges if edge.chosen == "implied"}
    placed = {name for name in then.plan.entries if name.startswith("i:")} - implied
    assert len(placed) == min(count, len(able | readers | able_later))
