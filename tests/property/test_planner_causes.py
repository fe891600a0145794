"""Entries that moved alike share one answer: it is the one that each would be given alone."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from keyplane.model.plan import Allocations, Dynamic, Entry, Plan, PlannedMachine, Unit
from keyplane.planner.causes import Pair, find, sort_out
from tests.unit.rollout.values import digest, planned, unit

WORDS = st.sampled_from(["a", "b"])
ENVS = st.sampled_from(
    [{"A": "1", "B": "1"}, {"A": "2", "B": "1"}, {"A": "1", "B": "2"}, {"B": "2", "A": "2"}, {}]
)
TEMPLATES = [{"C": Dynamic(from_="x", template=text)} for text in "tu"]
DYNAMIC = st.sampled_from([{}, {}, {}, *TEMPLATES])
UNIT = st.builds(
    lambda name, env, dynamic: unit(name, env=env, dynamic=dynamic), WORDS, ENVS, DYNAMIC
)
UNITS = st.one_of(
    st.fixed_dictionaries({"a": UNIT}), st.fixed_dictionaries({"a": UNIT}, optional={"b": UNIT})
)
SHARED = [[], ["p:main@x"], ["p:main@x", "q:main@x"], ["q:main@x"]]
"""As the planner makes them: entries of a role have the very same lists."""


def entry(units: dict[str, Unit], closure: str, needs: list[str], port: int) -> Entry:
    return planned(
        units=units, closure=digest(closure), dependencies=needs, listens={"p": port}
    ).entry


ENTRIES = st.builds(
    entry, UNITS, st.sampled_from("ab"), st.sampled_from(SHARED), st.sampled_from([1, 2])
)
PLAIN = st.builds(
    entry,
    st.fixed_dictionaries({"a": UNIT}),
    st.just("a"),
    st.sampled_from(SHARED[:2]),
    st.just(1),
)
"""Of which many move alike."""
KINDS = st.one_of(st.tuples(PLAIN, PLAIN), st.tuples(PLAIN, PLAIN), st.tuples(ENTRIES, ENTRIES))


def plan(machine_key: str, entries: dict[str, Entry]) -> Plan:
    return Plan(
        format="keyplane.plan/1",
        fleet="test",
        generation="g",
        entries=entries,
        allocations=Allocations(ports={}),
        edges=[],
        exports={},
        machines={"m": PlannedMachine(key=machine_key, address="a", rates={})},
        diagnostics=[],
    )


Answers = tuple[dict[str, list[str]], dict[str, list[str]]]


def found(pairs: list[Pair], machine_key: str, others: set[str]) -> Answers:
    """Of these alone, with a new one before, and one between that did not move."""
    same = planned().entry
    old = {name: replace(was, key="old") for name, was, _ in pairs}
    new = {name: replace(entry, key="new") for name, _, entry in pairs}
    before = plan("a", {**old, "same": same})
    after = plan(machine_key, {**new, "same": same, "come": same})
    names = [name for name, _, _ in pairs]
    half = len(names) // 2
    moved, come, kept = sort_out(["come", *names[:half], "same", *names[half:]], before, after)
    assert (moved.names, come, kept) == (names, ["come"], ["same"])
    return find(moved, before, after, others)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(KINDS, min_size=5, max_size=10),
    st.lists(st.integers(min_value=0, max_value=9), min_size=6, max_size=20),
    st.sets(st.sampled_from(["p:main@x", "q:main@x"])),
    WORDS,
)
def test_what_is_answered_for_many_is_answered_for_each(
    kinds: list[tuple[Entry, Entry]], order: list[int], others: set[str], machine_key: str
) -> None:
    """Whatever stands before and after it, also where the same kind comes again later."""
    pairs: list[Pair] = [
        (f"e{number}:main@m", *kinds[kind % len(kinds)]) for number, kind in enumerate(order)
    ]
    units, why = found(pairs, machine_key, others)
    assert [*units] == [*why] == [name for name, _, _ in pairs]
    for pair in pairs:
        alone = found([pair], machine_key, others)
        assert alone == ({pair[0]: units[pair[0]]}, {pair[0]: why[pair[0]]})
