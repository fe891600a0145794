"""References inside strings."""

from hypothesis import given
from hypothesis import strategies as st

from keyplane.documents import references
from keyplane.documents.references import Malformed, Reference


def test_a_string_without_a_mark_is_itself():
    """Dollars, braces and escapes of other languages mean nothing here."""
    for text in ("", "plain", "$HOME $(x) {0} $", "a$b{c}"):
        assert references.parse(text) == (text,)


def test_a_reference_has_root_path_and_text():
    """The path is split at every dot."""
    found = references.parse("x-${results.caches.*.url}-y")
    assert found == (
        "x-",
        Reference("results", ("caches", "*", "url"), "results.caches.*.url"),
        "-y",
    )


def test_adjoining_references_have_no_empty_literals_between():
    """Only what is there is listed."""
    found = references.parse("${a.b}${c}")
    assert found == (Reference("a", ("b",), "a.b"), Reference("c", (), "c"))


def test_an_escape_is_literal():
    """`$${` writes `${`, and nothing after it is looked at."""
    assert references.parse("$${a} $$${b}") == ("${a} $${b}",)


def test_unclosed_and_empty_are_malformed():
    """`${` needs a name and an end."""
    for text in ("${", "a ${b", "${}", "x${ }", "${a}${"):
        assert isinstance(references.parse(text), Malformed)


@given(st.text())
def test_no_text_raises(text: str):
    """Every text is a template or malformed, and one without a mark is itself."""
    found = references.parse(text)
    assert isinstance(found, Malformed) or "${" in text or found == (text,)
