"""Patterns are Python's, and none takes for ever."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyplane.documents import automata, patterns

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\s", "^", "$", r"\b", r"\B", "x"])
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "*?", "+?", "??"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})")
        | st.tuples(inner, REPEATS).map(lambda two: f"({two[0]}){two[1]}")
    ),
    max_leaves=8,
)


@given(pattern=PATTERNS, flags=st.sampled_from(["", "(?m)", "(?s)", "(?i)"]), data=st.data())
def test_an_automaton_finds_what_python_finds(
    pattern: str, flags: str, data: st.DataObject
) -> None:
    text = data.draw(st.text("aAb x\n", max_size=8))
    automaton = automata.Automaton(automata.parsed(flags + pattern))
    assert automaton.search(text) == (re.search(flags + pattern, text) is not None)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^(a+)+$", "a" * 1000 + "!", False),
        (r"^(a+)+$", "a" * 1000, True),
        (r"(a|aa)*b", "a" * 1000, False),
        (r"x*x*x*x*y", "x" * 20_000, False),
        (r"^([a-z]([a-z-]*[a-z])?\.)*[a-z]+$", "abc." * 500, False),
        (r"^([a-z]([a-z-]*[a-z])?\.)*[a-z]+$", "abc." * 500 + "de", True),
        (r"^(?=.*\d)(?=.*[a-z]).{8,}$", "abcdefg1", True),
        (r"(.)\1", "abb", True),
        (r"(?i:A)b", "ab", True),
    ],
)
def test_a_pattern_is_searched_for_in_bounded_time(pattern: str, text: str, found: bool) -> None:
    assert patterns.finds(pattern, text) is found


def test_what_no_automaton_does_and_might_never_end_is_no_pattern() -> None:
    for pattern in (r"(a+)+\1$", r"^(?:(?=a)a+)+$", "(((x{1,1000}){1,1000}){1,1000})"):
        assert isinstance(patterns.compiled(pattern), str)
        assert not patterns.finds(pattern, "a" * 50)
    assert isinstance(patterns.compiled("("), str)
