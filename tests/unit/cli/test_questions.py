"""What is asked at a terminal, and what ends it."""

import ctypes
import operator
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click
import pytest

from keyplane.cli import questions


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """What somebody types at the terminal that we read."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "r") as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        yield lambda text: assert_written(ours, text)
    os.close(ours)


def assert_written(descriptor: int, text: str) -> None:
    assert os.write(descriptor, text.encode()) == len(text)


@pytest.mark.parametrize(
    ("text", "answer"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False)]
)
def test_only_a_yes_is_one(typed: Callable[[str], None], text: str, answer: bool) -> None:
    typed(text)
    assert questions.confirm("Apply?") is answer


def test_what_is_no_answer_is_asked_again(
    typed: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    typed("maybe\ny\n")
    assert questions.confirm("Apply?")
    typed("both\n\none\n")
    assert questions.choose("Which?", ["one", "other"]) == "one"
    found = capsys.readouterr()
    assert found.out == "Apply? [y/N]: " * 2 + "Which? (one, other): " * 3
    assert found.err == "x maybe is neither y nor n\nx both is none of one, other\n"


def test_the_end_of_the_input_is_no_answer(typed: Callable[[str], None]) -> None:
    typed("\x04")
    with pytest.raises(click.Abort):
        questions.confirm("Apply?")


def test_an_interrupt_just_before_the_wait_is_not_slept_through(
    typed: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes when Python looks at signals no more, and nothing is typed after it."""
    real = select.select
    pressed = partial(ctypes.CDLL(None)["raise"], int(signal.SIGINT))

    def interrupted(*waited: Any) -> Any:
        # One call of C after the other: no bytecode between them raises KeyboardInterrupt.
        return list(map(operator.call, (pressed, partial(real, *waited))))[-1]

    monkeypatch.setattr(select, "select", interrupted)
    typed_late = threading.Event()

    def type_late() -> None:
        typed_late.set()
        typed("\n")

    late = threading.Timer(60, type_late)
    late.start()
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(click.Abort):
            questions.confirm("Apply?")
        assert not typed_late.is_set()
    finally:
        signal.signal(signal.SIGINT, former)
        late.cancel()
        late.join()
