"""The SVG itself: whole, safe, and the same each time."""

import random
import xml.etree.ElementTree as ET

import msgspec
import pytest

from keyplane.drawing import Value, draw, text
from keyplane.model.diagnostic import Diagnostic
from tests.unit.drawing import fleets

SVG = "{http://www.w3.org/2000/svg}"


def titles(picture: str, kind: str) -> list[str]:
    """The first line of each title of that kind of group."""
    root = ET.fromstring(picture)
    return [
        str(group.findtext(f"{SVG}title")).partition("\n")[0]
        for group in root.iter(f"{SVG}g")
        if group.get("class") == kind
    ]


@pytest.mark.parametrize(("count", "machines"), [(0, 1), (5, 3), (50, 8), (120, 10), (850, 60)])
def test_each_entry_and_each_machine_is_there_once(count: int, machines: int) -> None:
    plan, values = fleets.fleet(count, machines)
    picture = draw(plan, values)
    outside = {edge.provider for edge in plan.edges if edge.provider.startswith("external:")}
    assert sorted(titles(picture, "entry")) == sorted([*plan.entries, *outside])
    places = [each.partition(" ")[0] for each in titles(picture, "place")]
    assert sorted(places) == sorted(plan.machines)


def test_a_plan_of_nothing_is_a_picture_too() -> None:
    root = ET.fromstring(draw(fleets.plan({}), {}))
    assert int(root.attrib["height"]) > 0


def test_equal_plans_are_equal_bytes() -> None:
    """Whatever the order in which a plan is held."""
    plan, values = fleets.fleet(60, 8)
    names = list(plan.entries)
    shuffler = random.Random(7)
    shuffler.shuffle(names)
    edges = shuffler.sample(plan.edges, len(plan.edges))
    other = msgspec.structs.replace(
        plan,
        entries={name: plan.entries[name] for name in names},
        machines=dict(reversed(plan.machines.items())),
        edges=edges,
    )
    again = {name: values[name] for name in reversed(values)}
    assert draw(other, again) == draw(plan, values)


def test_text_of_others_is_escaped() -> None:
    """A message may hold anything; what XML cannot write at all is replaced."""
    nasty = "</text><script>alert('&\"')</script>\x00\x1b[31m\ud800 ü"
    row = Diagnostic(code="wrong-type", subject="fleet.toml", message=nasty)
    on_entry = Diagnostic(code="wrong-type", subject="a:main", message=nasty)
    made = {"a:main@m": fleets.entry("a", "<b>", listens={}, units=["server"])}
    reads = {"a:main@m": [Value(name=nasty, plane="env", sources=("external:x/provides/p/e",))]}
    edges = [fleets.edge("a:main@m", "s", "external:x", "p")]
    picture = draw(fleets.plan(made, edges, ["m"], [row, on_entry], fleet="<fleet>"), reads)
    root = ET.fromstring(picture.encode())
    assert "script" not in {element.tag.removeprefix(SVG) for element in root.iter()}
    assert root.findtext(f"{SVG}title", "").startswith("<fleet>")
    assert "alert('&\"')</script>" in "".join(root.itertext())


def test_it_says_what_it_is_to_those_who_do_not_see_it() -> None:
    plan, values = fleets.fleet(5, 3)
    root = ET.fromstring(draw(plan, values))
    assert root.get("role") == "img"
    named = {element.get("id") for element in root if element.tag in (f"{SVG}title", f"{SVG}desc")}
    assert set(str(root.get("aria-labelledby")).split()) == named
    assert "5 entries" in root.findtext(f"{SVG}desc", "")


def test_it_has_a_background_of_its_own() -> None:
    plan, values = fleets.fleet(5, 3)
    root = ET.fromstring(draw(plan, values))
    page = next(root.iter(f"{SVG}rect"))
    assert page.get("class") == "page"
    assert (page.get("width"), page.get("height")) == (root.get("width"), root.get("height"))


def test_entries_with_error_rows_are_marked() -> None:
    plan, values = fleets.fleet(24, 5)
    wrong = {row.subject for row in plan.diagnostics}
    root = ET.fromstring(draw(plan, values))
    marked = {
        str(group.findtext(f"{SVG}title")).partition("\n")[0]
        for group in root.iter(f"{SVG}g")
        if group.get("class") == "entry" and group.find(f"{SVG}rect[@class='wrong']") is not None
    }
    assert wrong
    assert marked == wrong


@pytest.mark.parametrize(("count", "machines"), [(24, 5), (120, 10)])
def test_text_stays_in_its_card(count: int, machines: int) -> None:
    plan, values = fleets.fleet(count, machines)
    for group in ET.fromstring(draw(plan, values)).iter(f"{SVG}g"):
        if group.get("class") not in ("entry", "place"):
            continue
        box = group.find(f"{SVG}rect")
        assert box is not None
        left = int(box.attrib["x"])
        right = left + int(box.attrib["width"])
        for each in group.iter(f"{SVG}text"):
            kinds = each.get("class", "").split()
            if "m" in kinds:
                continue
            wide = text.width(str(each.text), int(each.attrib["font-size"]), bold="b" in kinds)
            x = int(each.attrib["x"])
            assert (x - wide >= left) if "r" in kinds else (left <= x and x + wide <= right)


def test_a_long_text_ends_in_an_ellipsis() -> None:
    assert text.fit("short", 200, 12) == "short"
    cut = text.fit("a-very-long-name-of-a-service", 80, 12)
    assert cut.endswith("…")
    assert text.width(cut, 12) <= 80
    assert text.fit("anything", 2, 12) == ""
