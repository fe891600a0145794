"""Whatever the plan: nothing overlaps, nothing leaves its box, and lines keep off the cards."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.drawing import ground, layout
from keyplane.drawing.cards import Level
from keyplane.drawing.geometry import Box, Point
from keyplane.drawing.layout import Layout, PlacedNet
from keyplane.drawing.sketch import Sketch, sketch
from tests.unit.drawing import fleets

if TYPE_CHECKING:
    from keyplane.model.plan import Edge, Entry

PLANES = ("closure", "env", "config", "dynamic", "placement")
Piece = tuple[Point, Point]


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    machines = [f"m{number}" for number in range(draw(st.integers(1, 7)))]
    # Some machines are crowded and others have nothing.
    crowd = draw(st.lists(st.sampled_from(machines), max_size=26))
    entries: dict[str, Entry] = {}
    for number, machine in enumerate(crowd):
        name = f"{draw(st.sampled_from(('a', 'service', 'x' * 60)))}-{number}:main@{machine}"
        listens = {f"listen-{n}": 20000 + n for n in range(draw(st.integers(0, 4)))}
        units = [f"unit-{n}" for n in range(draw(st.integers(0, 3)))]
        entries[name] = fleets.entry(name, "module", listens=listens, units=units)
    providers = [*entries, "external:s3", "external:mail"]
    edges: list[Edge] = []
    if entries:
        # Circles and entries that read themselves are plans too.
        pairs = st.tuples(
            st.sampled_from(list(entries)),
            st.sampled_from(("db", "bus", "a-slot-with-a-long-name-" * 2)),
            st.sampled_from(providers),
            st.sampled_from(("main", "other")),
        )
        edges = [fleets.edge(*each) for each in sorted(draw(st.sets(pairs, max_size=50)))]
    planes = [draw(st.sets(st.sampled_from(PLANES), max_size=3)) for _ in edges]
    made = fleets.plan(entries, edges, machines)
    return sketch(made, fleets.values(edges, [sorted(several) for several in planes]))


def at(level: Level, drawn: Sketch) -> Layout:
    return layout.place(level, layout.route(ground.ground(level, drawn), level, drawn), drawn)


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def within(inner: Box, outer: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def pieces(net: PlacedNet) -> Iterator[Piece]:
    for path in net.wire.paths:
        for one, other in itertools.pairwise(path):
            yield min(one, other), max(one, other)


@settings(max_examples=40, deadline=None)
@given(sketches(), st.sampled_from(list(Level)))
def test_boxes_and_cards_keep_apart_and_inside(drawn: Sketch, level: Level) -> None:
    found = at(level, drawn)
    whole = Box(x=0, y=0, width=found.width, height=found.height)
    machines = {machine.name: machine.box for machine in found.machines}
    for one, other in itertools.combinations(machines.values(), 2):
        assert not overlap(one, other)
    for one, other in itertools.combinations(found.cards, 2):
        assert not overlap(one.box, other.box)
    for card in found.cards:
        home = card.card.node.machine
        assert within(card.box, whole)
        if home is None:
            assert not any(overlap(card.box, box) for box in machines.values())
        else:
            assert within(card.box, machines[home])
    assert all(within(box, whole) for box in machines.values())
    assert sorted(card.card.node.id for card in found.cards) == sorted(n.id for n in drawn.nodes)
    assert sorted(machines) == sorted(name for name, _ in drawn.machines)


@settings(max_examples=40, deadline=None)
@given(sketches(), st.sampled_from(list(Level)))
def test_lines_run_beside_the_cards(drawn: Sketch, level: Level) -> None:
    found = at(level, drawn)
    for net in found.nets:
        for (x, y), (right, low) in pieces(net):
            assert 0 <= x <= right <= found.width
            assert 0 <= y <= low <= found.height
            # A line may end at the side of a card, and is nowhere in one.
            line = Box(x=x, y=y, width=max(right - x, 1), height=max(low - y, 1))
            assert not any(overlap(line, card.box) for card in found.cards if right > x or low > y)


@settings(max_examples=40, deadline=None)
@given(sketches(), st.sampled_from(list(Level)))
def test_two_lines_share_nothing_but_the_end_at_one_port(drawn: Sketch, level: Level) -> None:
    found = at(level, drawn)
    across: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for index, net in enumerate(found.nets):
        for (x, y), (right, low) in pieces(net):
            where, start, end = (("y", y), x, right) if y == low else (("x", x), y, low)
            across.setdefault(where, []).append((start, end, index))
    for (axis, at_), several in across.items():
        for (s1, e1, one), (s2, e2, other) in itertools.combinations(several, 2):
            if one == other or min(e1, e2) <= max(s1, s2):
                continue
            assert axis == "y"
            first, second = found.nets[one], found.nets[other]
            assert first.net.strand is second.net.strand
            shared = {*first.tips, *first.starts} & {*second.tips, *second.starts}
            assert any(y == at_ and x in (s1, e1) and x in (s2, e2) for x, y in shared)


@settings(max_examples=40, deadline=None)
@given(sketches(), st.sampled_from(list(Level)))
def test_each_line_joins_all_its_ends(drawn: Sketch, level: Level) -> None:
    found = at(level, drawn)
    boxes = {card.card.node.id: card.box for card in found.cards}
    assert {link for net in found.nets for link in net.net.links} == set(drawn.links)
    for net in found.nets:
        near: dict[Point, set[Point]] = {}
        for path in net.wire.paths:
            near.setdefault(path[0], set()).add(path[-1])
            near.setdefault(path[-1], set()).add(path[0])
        reached = {net.starts[0]}
        queue = [net.starts[0]]
        while queue:
            for point in near[queue.pop()] - reached:
                reached.add(point)
                queue.append(point)
        assert {*net.starts, *net.tips} <= reached
        # Each end is at the side of the card that it is of: readers left, providers right.
        for link in net.net.links:
            reader, provider = boxes[link.consumer], boxes[link.provider]
            assert any(
                x == reader.x and reader.y < y < reader.y + reader.height for x, y in net.tips
            )
            assert any(
                x == provider.x + provider.width and provider.y < y < provider.y + provider.height
                for x, y in net.starts
            )


def mesh(count: int, planes: tuple[str, ...]) -> Sketch:
    """Machines of one entry each, and each reads of some other."""
    names = [f"s-{number}:main@m{number}" for number in range(count)]
    made = {name: fleets.entry(name, "module", listens={}, units=[]) for name in names}
    edges = [fleets.edge(name, "up", names[(n * 37 + 11) % count]) for n, name in enumerate(names)]
    return sketch(fleets.plan(made, edges), fleets.values(edges, [planes] * count))


@pytest.mark.parametrize(
    ("count", "level"), [(40, Level.DETAILED), (300, Level.COMPACT), (850, Level.CONDENSED)]
)
def test_large_plans_are_drawn_with_less_text(count: int, level: Level) -> None:
    names = [f"s-{number}:main@m{number % 20}" for number in range(count)]
    made = {name: fleets.entry(name, "module", listens={}, units=[]) for name in names}
    edges = [fleets.edge(name, "db", names[0]) for name in names[1:]]
    drawn = sketch(fleets.plan(made, edges), fleets.values(edges, [("env",)] * len(edges)))
    assert layout.lay_out(drawn).level is level


def test_lines_that_nobody_could_follow_are_one() -> None:
    few, many = layout.lay_out(mesh(180, ("env",))), layout.lay_out(mesh(180, PLANES))
    assert few.level is Level.COMPACT
    assert len(few.nets) == 180
    assert many.level is Level.BUS
    assert len(many.nets) == len(PLANES)


def test_what_many_give_to_the_same_slots_is_one_line() -> None:
    """Those that others read as well have a line of their own."""
    names = [f"exporter-{number}:main@m{number}" for number in range(12)]
    made = {name: fleets.entry(name, "exporter", listens={}, units=[]) for name in names}
    for reader in ("metrics:main@m0", "alerts:main@m1"):
        made[reader] = fleets.entry(reader, "reader", listens={}, units=[])
    alone = [fleets.edge("metrics:main@m0", "targets", name) for name in names]
    more = [fleets.edge("alerts:main@m1", "targets", name) for name in names]
    counts = []
    for edges in (alone, [*alone, *more], [*alone, *more[:5]]):
        planes = fleets.values(edges, [("config",)] * len(edges))
        counts.append(len(layout.lay_out(sketch(fleets.plan(made, edges), planes)).nets))
    assert counts == [1, 1, 2]


@settings(deadline=None, max_examples=60)
@given(sketches(), st.sampled_from([Level.DETAILED, Level.COMPACT]))
def test_each_beginning_of_a_line_gives_to_each_of_its_ends(drawn: Sketch, level: Level) -> None:
    """A line that several share says nothing that is not so."""
    given_to = {(link.provider, link.consumer, link.strand) for link in drawn.links}
    for placed in at(level, drawn).nets:
        net = placed.net
        for begin in (end.card for end in net.ends if end.outgoing):
            for end in (end.card for end in net.ends if not end.outgoing):
                assert (begin, end, net.strand) in given_to
