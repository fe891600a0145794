"""Regular expressions matched in time that grows with the text alone.

Python's matcher tries one way after another, and some patterns have more ways than there is time.
Here all ways are followed at once. That takes back references, lookaround and atomic groups out:
patterns with those are none of ours.
"""

import importlib
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

_parser: Any = importlib.import_module("re._parser")
_compiler: Any = importlib.import_module("re._compiler")
_STATES_MAX = 20_000
"""Counted repeats are written out."""
_KEPT_MAX = 50_000
"""Steps that are remembered: a text has few different ones, unless it was made to."""
_EMPTY_MIDDLE = re.search(r"\B", "") is not None
"""Python took its time to settle whether an empty text has a place that is no word's end."""
_MULTILINE = 8
"""`re.MULTILINE`; a flag in the middle of a pattern is none of ours."""

States = frozenset[int]
Context = tuple[bool, ...]
Test = Callable[[str], bool]


class NotRegularError(Exception):
    """The pattern is too large, or holds what no automaton can do."""


def ways(tree: Any, length: int) -> float:
    """In how many ways at most a pattern can match from one place of a text."""
    total = 1.0
    for kind, said in tree:
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = said
                one, times = ways(inner, length), min(int(most), length)
                spread = max(times - int(least) + 1, 1)
                # `e100` is enough to say that it is too many.
                total *= spread if one <= 1 else min(one, 1e10) ** min(times, 10) * spread
            case "BRANCH":
                total *= sum(ways(one, length) for one in said[1])
            case "SUBPATTERN":
                total *= ways(said[3], length)
            case "ASSERT" | "ASSERT_NOT":
                total *= ways(said[1], length)
            case "ATOMIC_GROUP":
                total *= ways(said, length)
            case "GROUPREF_EXISTS":
                total *= sum(ways(one, length) for one in said[1:] if one is not None)
            case _:
                pass
        total = min(total, 1e100)
    return total


def parsed(pattern: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _parser.parse(pattern)


class Automaton:
    """A pattern as states: from each the tests that lead on, and those that are reached at once."""

    def __init__(self, tree: Any) -> None:
        self._flags: int = tree.state.flags
        self._tree = tree
        self._tests: dict[int, tuple[Test, int]] = {}
        self._free: dict[int, list[tuple[str, int]]] = {}
        """Reached with no character, if the place is as the word says; empty: wherever."""
        self._count = 1
        self._final = self._sequence(tree, 0)
        self._closed: dict[tuple[States, Context], States] = {}
        self._stepped: dict[tuple[States, str], States] = {}

    def search(self, text: str) -> bool:
        current: States = frozenset()
        for at in range(len(text) + 1):
            if len(self._closed) + len(self._stepped) > _KEPT_MAX:
                self._closed.clear()
                self._stepped.clear()
            place = _context(text, at)
            key = current, place
            closed = self._closed.get(key)
            if closed is None:
                closed = self._closed[key] = self._close((*current, 0), place)
            if self._final in closed:
                return True
            if at < len(text):
                current = self._step(closed, text[at])
        return False

    def _step(self, states: States, character: str) -> States:
        key = states, character
        found = self._stepped.get(key)
        if found is None:
            led = (self._tests[state] for state in states if state in self._tests)
            found = frozenset(target for test, target in led if test(character))
            self._stepped[key] = found
        return found

    def _close(self, states: Iterable[int], place: Context) -> States:
        found = set(states)
        waiting = list(found)
        while waiting:
            for word, target in self._free.get(waiting.pop(), ()):
                if target not in found and self._holds(word, place):
                    found.add(target)
                    waiting.append(target)
        return frozenset(found)

    def _holds(self, word: str, place: Context) -> bool:
        first, last, last_line, after_line, before_line, after_word, before_word = place
        lines = bool(self._flags & _MULTILINE)
        match word:
            case "":
                return True
            case "AT_BEGINNING":
                return first or (lines and after_line)
            case "AT_BEGINNING_STRING":
                return first
            case "AT_END":
                return last or last_line or (lines and before_line)
            case "AT_END_STRING":
                return last
            case "AT_BOUNDARY":
                return after_word != before_word
            case _:
                return after_word == before_word and (_EMPTY_MIDDLE or not (first and last))

    def _state(self) -> int:
        self._count += 1
        if self._count > _STATES_MAX:
            raise NotRegularError
        return self._count - 1

    def _link(self, source: int, target: int, word: str = "") -> None:
        self._free.setdefault(source, []).append((word, target))

    def _sequence(self, tree: Any, start: int) -> int:
        for kind, said in tree:
            start = self._node(str(kind), said, (kind, said), start)
        return start

    def _node(self, kind: str, said: Any, node: Any, start: int) -> int:
        match kind:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                end = self._state()
                self._tests[start] = self._test(node), end
                after = self._state()
                self._link(end, after)
                return after
            case "AT" if str(said) in _PLACES:
                end = self._state()
                self._link(start, end, str(said))
                return end
            case "SUBPATTERN" if not said[1] and not said[2]:
                return self._sequence(said[3], start)
            case "BRANCH":
                end = self._state()
                for one in said[1]:
                    first = self._state()
                    self._link(start, first)
                    self._link(self._sequence(one, first), end)
                return end
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(int(said[0]), said[1], said[2], start)
            case _:
                raise NotRegularError

    def _repeat(self, least: int, most: Any, inner: Any, start: int) -> int:
        for _ in range(least):
            start = self._sequence(inner, self._fresh(start))
        end = self._state()
        self._link(start, end)
        if str(most) == "MAXREPEAT":
            again = self._fresh(start)
            self._link(self._sequence(inner, again), again)
            self._link(again, end)
            return end
        for _ in range(int(most) - least):
            start = self._sequence(inner, self._fresh(start))
            self._link(start, end)
        return end

    def _fresh(self, start: int) -> int:
        """A state of its own, so that what begins there is not entered from elsewhere."""
        found = self._state()
        self._link(start, found)
        return found

    def _test(self, node: Any) -> Test:
        """Whether a character is one that the node takes, by Python's own word."""
        one = _compiler.compile(_parser.SubPattern(self._tree.state, [node]), self._flags)
        return lambda character: one.fullmatch(character) is not None


_PLACES = frozenset(
    {
        "AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING", "AT_BOUNDARY",
        "AT_NON_BOUNDARY",
    }
)  # fmt: skip


def _context(text: str, at: int) -> Context:
    """What can be asked of a place: its ends, and the characters beside it."""
    before = text[at - 1] if at else ""
    after = text[at] if at < len(text) else ""
    return (
        at == 0,
        not after,
        after == "\n" and at == len(text) - 1,
        before == "\n",
        after == "\n",
        _is_word(before),
        _is_word(after),
    )


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
