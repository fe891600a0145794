"""Patterns in Python's dialect, as documents write them: none raises, warns or takes for ever."""

import functools
import re
import warnings

from keyplane.documents import automata
from keyplane.documents.automata import Automaton

_KEPT_MAX = 1_000
"""A fleet has tens of patterns, and each is asked once for each instance or machine."""
_WAYS_MAX = 1e6
"""Ways to try, one after another: a fraction of a second."""
_TEXT_MAX = 1 << 20
"""Characters: a longer value is no name or address that a pattern is for."""
_SHORT = 60
"""A pattern that has too many ways through so short a text has them because of its own form."""


@functools.lru_cache(_KEPT_MAX)
def compiled(pattern: str) -> re.Pattern[str] | str:
    """The pattern, or why it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = re.compile(pattern)
            endless = _ways(pattern, _SHORT.bit_length()) > _WAYS_MAX * _WAYS_MAX
    except (re.error, ValueError, RecursionError, OverflowError) as error:
        return str(error)
    if endless and _automaton(pattern) is None:
        return "it repeats what repeats, in a way that might take for ever"
    return found


def finds(pattern: str, text: str) -> bool:
    """Whether the pattern is somewhere in the text; what is no pattern is nowhere."""
    found = compiled(pattern)
    if isinstance(found, str) or len(text) > _TEXT_MAX:
        return False
    if _ways(pattern, len(text).bit_length()) * (len(text) + 1) <= _WAYS_MAX:
        return found.search(text) is not None
    automaton = _automaton(pattern)
    return automaton is not None and automaton.search(text)


@functools.lru_cache(_KEPT_MAX)
def _ways(pattern: str, bits: int) -> float:
    """Those through a text of so many bits of length."""
    return automata.ways(automata.parsed(pattern), 1 << bits)


@functools.lru_cache(_KEPT_MAX)
def _automaton(pattern: str) -> Automaton | None:
    try:
        return Automaton(automata.parsed(pattern))
    except automata.NotRegularError:
        return None
