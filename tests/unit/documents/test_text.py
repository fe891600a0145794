"""Bytes that are documents, and bytes that are none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyplane.documents import text
from keyplane.documents.rows import Rows
from keyplane.documents.text import Unreadable

SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
        b'{"\\udfff": 1}',
        b'{"a": "\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"a": 1} 2',
        b"[]",
        b"1",
        b"",
        b"nope",
        b'{"a": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b'{"a":' * 100 + b"1" + b"}" * 100,
    ],
)
def test_json_that_is_no_document(data: bytes):
    """Each is a reason, never an exception."""
    assert isinstance(text.parse(data, spelling="json"), Unreadable)


@pytest.mark.parametrize(
    "data",
    [
        b"a = 1\na = 2\n",
        b"a = nan\n",
        b"a = [inf]\n",
        b"a = \n",
        b"a = '\xff'\n",
        b"a = " + b"[" * 100_000,
        b"a = " + b"[" * 100 + b"]" * 100,
        b"a = " + b"9" * 5000,
        b".".join([b"a"] * 100) + b" = 1",
        b".".join([b"a"] * 200_000) + b" = 1",
        b"[" + b" . ".join([b'"a"'] * 200_000) + b"]",
        b"a = { " + b".".join([b"a"] * 200_000) + b" = 1 }",
    ],
)
def test_toml_that_is_no_document(data: bytes):
    """Each is a reason, never an exception."""
    assert isinstance(text.parse(data, spelling="toml"), Unreadable)


def test_dots_in_a_text_are_no_key():
    """Only keys are too deep."""
    said = "1." * 500
    assert text.parse(f"a = '{said}'\nb.c = 1\n".encode(), spelling="toml") == {
        "a": said,
        "b": {"c": 1},
    }


def test_a_surrogate_pair_is_a_character():
    """Only lone ones are refused."""
    assert text.parse(b'{"a": "\\ud83d\\udc0e"}', spelling="json") == {"a": "🐎"}


def test_dates_wide_integers_and_nul_are_rows_and_the_rest_is_kept():
    """The rows name the paths; what stood there is gone."""
    rows = Rows("x.toml")
    tree = text.parse(
        b'a = 2020-01-01\nb = [1, 10:00:00, "x"]\n[c]\nd = 9223372036854775808\ne = "\\u0000"\nf = 2\n',
        spelling="toml",
    )
    assert not isinstance(tree, Unreadable)
    text.sweep(tree, rows)
    assert tree == {"b": [1, "x"], "c": {"f": 2}}
    assert {(row.code, row.path) for row in rows.found} == {
        ("wrong-type", path) for path in ("a", "b.1", "c.d", "c.e")
    }


@given(st.binary())
def test_no_bytes_raise(data: bytes):
    """Trouble is a value."""
    for spelling in ("toml", "json"):
        assert isinstance(text.parse(data, spelling=spelling), (dict, Unreadable))


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), SCALARS | st.lists(SCALARS)))
def test_json_reads_back(tree: dict[str, object]):
    """What JSON can say is read as it was said."""
    assert text.parse(json.dumps(tree).encode(), spelling="json") == tree
