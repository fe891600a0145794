"""Edits in the text of a fleet document: the values move, and no other byte does."""

import difflib
import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.documents.edits import Put, Refused, Remove
from keyplane.documents.rewriting import edited, rewrite

DOTTED = """fleet = "arena"   # the name

[machines.alpha]
address = "10.0.0.3"

# what people play
[instances.game]
module = "game"
settings.server.slots = 32   # thirty-two
placement.every.server = { machines = ["alpha"] } # here

[instances.page]   # alone
module = "page"
# the end
"""
TABLES = """fleet = "arena"
[machines]
[machines.alpha]
address = "10.0.0.3"
[instances.game]
module = "game"
[instances.game.settings.server]
# how many
slots = 32 # thirty-two

[instances.game.placement.every.server]
machines = [
  "alpha",  # first
]
# after it
[instances.page]
module = "page"
"""
INLINE = """fleet = "arena"
machines = { alpha = { address = "10.0.0.3" } }
instances = { game = { module = "game", settings = { server = { slots = 32 } }, placement = { every = { server = { machines = ["alpha"] } } } }, page = { module = "page" } }
"""

SLOTS = ("instances", "game", "settings", "server", "slots")
MACHINES = ("instances", "game", "placement", "every", "server", "machines")
PIN = ("machines", "alpha", "pins", "store")


def made(text: str, *steps: Put | Remove, name: str = "fleet.toml") -> str:
    found = rewrite({name: text.encode(), "other": b"\xff"}, steps)
    assert not isinstance(found, Refused), found.message
    assert found["other"] == b"\xff"
    return found[name].decode()


def moved(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came."""
    lines = list(difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True)))
    return [line[2:] for line in lines if line[0] == "-"], [
        line[2:] for line in lines if line[0] == "+"
    ]


@pytest.mark.parametrize("text", [DOTTED, TABLES])
def test_a_value_is_replaced_and_its_comment_stays(text: str) -> None:
    gone, come = moved(text, made(text, Put(SLOTS, 64)))
    assert len(gone) == len(come) == 1
    assert come[0] == gone[0].replace("= 32", "= 64")


def test_a_line_that_is_new_stands_with_those_of_its_instance() -> None:
    text = made(DOTTED, Put(("instances", "page", "settings", "main", "title"), 'a "b"'))
    assert moved(DOTTED, text) == ([], ['settings.main.title = "a \\"b\\""\n'])
    assert text.index("settings.main.title") < text.index("# the end")
    text = made(TABLES, Put((*SLOTS[:-1], "motd"), "hello"))
    assert moved(TABLES, text) == ([], ['motd = "hello"\n'])
    text = made(DOTTED, Put(PIN, "beta"))
    assert moved(DOTTED, text) == ([], ['pins.store = "beta"\n'])
    assert moved(text, made(text, Remove(PIN))) == (['pins.store = "beta"\n'], [])


def test_an_array_keeps_its_shape_and_its_comments() -> None:
    text = made(TABLES, Put(MACHINES, ["alpha", "beta"]))
    assert moved(TABLES, text) == ([], ['  "beta",\n'])
    assert moved(text, made(text, Put(MACHINES, ["alpha"]))) == (['  "beta",\n'], [])
    gone, come = moved(DOTTED, made(DOTTED, Put(MACHINES, ["alpha", "beta"])))
    assert come == [gone[0].replace('"alpha"', '"alpha", "beta"')]


def test_a_new_instance_stands_at_the_end() -> None:
    steps = (
        Put(("instances", "spare", "module"), "spare"),
        Put(("instances", "spare", "placement", "every", "main"), {"machines": ["alpha"]}),
    )
    new = '\n[instances.spare]\nmodule = "spare"\n'
    new += 'placement.every.main = { machines = ["alpha"] }\n'
    assert made(DOTTED, *steps) == DOTTED + new
    assert made(DOTTED.rstrip("\n"), *steps) == DOTTED + new


def test_line_ends_stay_as_they_are() -> None:
    """Of a document from another system."""
    text = DOTTED.replace("\n", "\r\n")
    for step in (Put(SLOTS, 64), Put(PIN, "beta"), Put(("instances", "new", "module"), "new")):
        after = made(text, step)
        assert after.count("\n") == after.count("\r\n")


def test_json_keeps_its_own_indentation() -> None:
    tree = tomllib.loads(DOTTED)
    for indent in (2, 4, "\t"):
        text = json.dumps(tree, indent=indent, ensure_ascii=False) + "\n"
        gone, come = moved(text, made(text, Put(SLOTS, 64), name="fleet.json"))
        assert [line.strip() for line in (*gone, *come)] == ['"slots": 32', '"slots": 64']
    text = json.dumps(tree, separators=(",", ":"))
    assert made(text, Put(SLOTS, 64), name="fleet.json") == text.replace("32", "64")
    text = json.dumps(tree)
    assert made(text, Put(SLOTS, 64), name="fleet.json") == text.replace("32", "64")


def test_what_starlark_computes_is_changed_by_hand() -> None:
    """And it says what."""
    found = rewrite({"fleet.star": b"def fleet(): return {}"}, (Put(SLOTS, 64),))
    assert isinstance(found, Refused)
    assert "set instances.game.settings.server.slots to 64 in what fleet() of" in found.message
    found = rewrite({}, (Remove(PIN),))
    assert isinstance(found, Refused)
    assert "it is reached by a link" in found.message
    assert "remove machines.alpha.pins.store in the fleet document" in found.message


NAMES = st.sampled_from(["a", "b-c", "main", "x1"])
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(1 << 62), 1 << 62),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.text("ab", max_size=3), max_size=3),
)
STEPS = st.one_of(
    st.builds(
        lambda role, name, value: Put(("instances", "game", "settings", role, name), value),
        NAMES | st.just("server"),
        NAMES | st.just("slots"),
        VALUES,
    ),
    st.builds(
        lambda instance, value: Put(
            ("instances", instance, "placement", "every", "server", "machines"), value
        ),
        st.sampled_from(["game", "page", "new"]),
        st.lists(NAMES, max_size=4, unique=True),
    ),
    st.builds(lambda name, value: Put(("machines", "alpha", "pins", name), value), NAMES, NAMES),
)


@settings(deadline=None)
@given(st.sampled_from([DOTTED, TABLES, INLINE]), st.lists(STEPS, min_size=1, max_size=6))
def test_any_edits_one_after_another_say_what_is_wanted_and_keep_every_comment(
    text: str, steps: list[Put]
) -> None:
    """In each of the spellings that people use, whatever was edited before."""
    wanted = tomllib.loads(text)
    after = text
    for step in steps:
        wanted = edited(wanted, (step,))
        after = made(after, step)
        assert tomllib.loads(after) == wanted
    # A comment beside a machine that an edit takes away goes with it.
    kept = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    assert [line for line in after.splitlines() if line.lstrip().startswith("#")] == kept


@pytest.mark.parametrize("text", [DOTTED, TABLES])
def test_a_pin_that_goes_again_leaves_the_text_as_it_was(text: str) -> None:
    assert made(made(text, Put(PIN, "beta")), Remove(PIN)) == text


def test_a_value_in_one_line_is_edited_there() -> None:
    text = made(INLINE, Put(SLOTS, 64), Put(PIN, "beta"))
    assert tomllib.loads(text) == edited(tomllib.loads(INLINE), (Put(SLOTS, 64), Put(PIN, "beta")))
    assert "pins" not in edited(tomllib.loads(text), (Remove(PIN),))["machines"]["alpha"]
    assert "pins" not in str(tomllib.loads(made(text, Remove(PIN))).get("instances"))
