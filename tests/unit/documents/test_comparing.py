"""Two texts side by side, and two people's edits of one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.documents.comparing import difference, merge


def test_only_what_differs_is_shown_by_path() -> None:
    before = {"a": b"one\ntwo\n", "b": b"same", "gone": b"x\n"}
    after = {"a": b"one\n2\n", "b": b"same", "new": b"y"}
    assert difference(before, after) == (
        "--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        "--- gone\n+++ (no such file)\n@@ -1 +0,0 @@\n-x\n"
        "--- (no such file)\n+++ new\n@@ -0,0 +1 @@\n+y\n\\ no newline at the end\n"
    )
    assert difference(before, before) == ""


@pytest.mark.parametrize("data", [b"\xff", b"a\0b", b"\n" * 30_000])
def test_what_is_no_text_is_told_by_its_size(data: bytes) -> None:
    shown = difference({"x": b"a\n"}, {"x": data})
    assert f"2 bytes became {len(data)} bytes" in shown
    assert len(shown) < 200


BASE = b"a\nb\nc\nd\ne\n"


def test_edits_that_lie_apart_are_both_kept() -> None:
    assert merge(BASE, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n") == b"A\nb\nc\nd\nE\n"
    assert merge(BASE, b"b\nc\nd\ne\n", b"a\nb\nc\nd\ne\nf\n") == b"b\nc\nd\ne\nf\n"


def test_the_same_edit_twice_is_one() -> None:
    assert merge(BASE, b"A\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne\n") == b"A\nb\nc\nd\ne\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (b"a\nB\nc\nd\ne\n", b"a\n2\nc\nd\ne\n"),
        (b"a\nB\nc\nd\ne\n", b"a\nb\nC\nd\ne\n"),
        (b"a\nb\nc\nd\ne\nx\n", b"a\nb\nc\nd\ne\ny\n"),
        (b"a\nd\ne\n", b"a\nb\nX\nd\ne\n"),
        (b"\xff", b"a\n"),
    ],
)
def test_edits_that_meet_are_left_to_a_person(ours: bytes, theirs: bytes) -> None:
    """Also where they only touch: two lines that stand together often mean one thing."""
    assert merge(BASE, ours, theirs) is None
    assert merge(BASE, theirs, ours) is None


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n"]), max_size=8).map(
    lambda lines: "".join(lines).encode()
)


@settings(deadline=None)
@given(LINES, LINES, LINES)
def test_a_merge_takes_no_side(base: bytes, ours: bytes, theirs: bytes) -> None:
    """And where one side edited nothing, it is the other's."""
    assert merge(base, ours, base) == ours
    assert merge(base, base, theirs) == theirs
    assert merge(base, ours, theirs) == merge(base, theirs, ours)
    assert merge(base, ours, ours) == ours
