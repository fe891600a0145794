"""Whatever two plans are, their difference is carried out in an order that harms nobody."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from keyplane.model.names import EntryId
from keyplane.model.plan import Edge
from keyplane.rollout.mixture import mix, mix_edges
from keyplane.rollout.planned import Planned
from keyplane.rollout.steps import Step
from keyplane.rollout.tiers import tiers
from tests.unit.rollout.values import digest, planned, unit

Entries = Mapping[EntryId, Planned]
Side = tuple[Entries, list[Edge]]

IDS = [EntryId(f"{instance}:main@{machine}") for instance in "abcd" for machine in "xy"]


@st.composite
def sides(draw: st.DrawFn, *, ports: bool, circles: bool) -> Side:
    """A plan: some entries, and edges between them."""
    here = draw(st.lists(st.sampled_from(IDS), unique=True))
    modules = {instance: draw(st.sampled_from(["m", "n"])) for instance in "abcd"}
    entries: dict[EntryId, Planned] = {}
    for entry in sorted(here):
        config = draw(st.sampled_from(["1", "2"]))
        listens = {"p": draw(st.integers(1, 3))} if ports and draw(st.booleans()) else {}
        handover = {"handover": "stop-first"} if ports and draw(st.booleans()) else {}
        entries[entry] = planned(
            draw(st.sampled_from(["1", "2"])),
            module=modules[entry.partition(":")[0]],
            units={"main": unit("1", config_data={"/c" + entry: digest(config)}, **handover)},
            listens=listens,
            grants={"/g" + entry: digest(draw(st.sampled_from(["1", "2"])))},
        )
    edges: list[Edge] = []
    for number, consumer in enumerate(sorted(here)):
        choices = sorted(here) if circles else sorted(here)[:number]
        for provider in draw(st.lists(st.sampled_from(choices or [consumer]), max_size=2)):
            ends = {"consumer": consumer, "slot": "s", "provider": provider, "provide": "p"}
            edges.extend([Edge(chosen="only", **ends)] if provider != consumer else [])
    return entries, edges


def differences(*, ports: bool, circles: bool) -> st.SearchStrategy[tuple[Side, Side]]:
    one = sides(ports=ports, circles=circles)
    return st.tuples(one, one)


any_difference = differences(ports=True, circles=True)


def when(steps: tuple[Step, ...], *lists: str) -> dict[EntryId, int]:
    """The step in which each entry of these lists stands."""
    return {
        entry: index
        for index, step in enumerate(steps)
        for name in lists
        for entry in getattr(step, name)
    }


def sent(entries: Entries) -> dict[EntryId, object]:
    """What machines are told, as far as these plans differ in it."""
    return {
        entry: (one.entry.key, one.entry.module, one.entry.units, one.entry.listens, one.grants)
        for entry, one in entries.items()
    }


@given(any_difference)
def test_the_steps_lead_from_one_plan_to_the_other(both: tuple[Side, Side]) -> None:
    """Nothing is sent twice or left out; before the first step is the base, after the last the
    target, and no step is empty."""
    (base, base_edges), (target, target_edges) = both
    steps = tiers(base, base_edges, target, target_edges)
    touched = [entry for step in steps for entry in (*step.switched, *step.removed)]
    assert len(touched) == len(set(touched))
    assert all(step.machines for step in steps)
    assert sent(mix(base, target, steps, 0, {}).entries) == sent(base)
    assert sent(mix(base, target, steps, len(steps), {}).entries) == sent(target)
    assert tiers(target, target_edges, target, target_edges) == ()


@given(any_difference)
def test_no_provider_switches_after_its_consumer(both: tuple[Side, Side]) -> None:
    (base, base_edges), (target, target_edges) = both
    steps = tiers(base, base_edges, target, target_edges)
    at = when(steps, "switched")
    for edge in target_edges:
        if edge.provider in at and edge.consumer in at:
            assert at[EntryId(edge.provider)] <= at[EntryId(edge.consumer)]


@given(differences(ports=False, circles=False))
def test_providers_switch_strictly_before_where_there_is_no_circle(
    both: tuple[Side, Side],
) -> None:
    """They are healthy by then, and no entry that is gone was taken from under anybody."""
    (base, base_edges), (target, target_edges) = both
    steps = tiers(base, base_edges, target, target_edges)
    at, gone = when(steps, "switched", "rewired"), when(steps, "removed")
    for edge in target_edges:
        if edge.provider in when(steps, "switched") and edge.consumer in when(steps, "switched"):
            assert at[EntryId(edge.provider)] < at[EntryId(edge.consumer)]
    for edge in base_edges:
        if edge.provider in gone:
            left = gone if edge.consumer in gone else at
            if edge.consumer in left and edge.consumer not in when(steps, "rewired"):
                assert left[EntryId(edge.consumer)] < gone[EntryId(edge.provider)]
    assert all(step.gaps == () for step in steps)


@given(any_difference)
def test_in_no_mixture_does_an_entry_use_one_that_is_not_there(both: tuple[Side, Side]) -> None:
    """Save for gaps that a step names: there two entries could not be on one machine at once."""
    (base, base_edges), (target, target_edges) = both
    steps = tiers(base, base_edges, target, target_edges)
    for count in range(len(steps) + 1):
        entries = mix(base, target, steps, count, {}).entries
        for edge in mix_edges(base_edges, target_edges, steps, count):
            assert edge.consumer in entries
            assert edge.provider in entries
    held = {port for one in base.values() for port in one.entry.listens.values()}
    if not held and not any(stops_first(one) for one in target.values()):
        assert all(step.gaps == () for step in steps)


@given(any_difference)
def test_the_new_holder_of_a_port_comes_after_the_old_one_has_gone(
    both: tuple[Side, Side],
) -> None:
    (base, base_edges), (target, target_edges) = both
    steps = tiers(base, base_edges, target, target_edges)
    at, gone = when(steps, "switched"), when(steps, "removed")
    for leaving, index in gone.items():
        for taking, later in at.items():
            same = leaving.rpartition("@")[2] == taking.rpartition("@")[2]
            ports = set(base[leaving].entry.listens.values())
            wanted = set(target[taking].entry.listens.values())
            had = set(base[taking].entry.listens.values()) if taking in base else set()
            if same and ports & (wanted - had):
                assert index < later


def stops_first(one: Planned) -> bool:
    return one.entry.units["main"].handover == "stop-first"


@given(any_difference)
def test_what_stops_first_is_gone_before_it_is_there(both: tuple[Side, Side]) -> None:
    """Where it moves from the one machine to the other, nothing keeps the two together."""
    (base, base_edges), (target, target_edges) = both
    steps = tiers(base, base_edges, target, target_edges)
    came, gone = when(steps, "activated"), when(steps, "removed")
    for entry, later in came.items():
        role = entry.rpartition("@")[0]
        left = [index for old, index in gone.items() if old.rpartition("@")[0] == role]
        if left and stops_first(target[entry]):
            assert left[0] < later


@given(any_difference, st.randoms())
def test_the_order_of_what_has_none_changes_nothing(both: tuple[Side, Side], chance) -> None:
    (base, base_edges), (target, target_edges) = both
    steps = tiers(base, base_edges, target, target_edges)

    def stirred(entries: Entries) -> Entries:
        items = list(entries.items())
        chance.shuffle(items)
        return dict(items)

    def stirred_edges(edges: list[Edge]) -> list[Edge]:
        return chance.sample(edges, len(edges))

    again = tiers(
        stirred(base), stirred_edges(base_edges), stirred(target), stirred_edges(target_edges)
    )
    assert again == steps
