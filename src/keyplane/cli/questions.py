"""Questions to whoever sits at the terminal. An interrupt ends them whenever it comes."""

import os
import select
import signal
import sys
from collections.abc import Sequence

import click

from keyplane.cli import faults


def confirm(question: str) -> bool:
    """No, unless yes is said."""
    while True:
        said = _line(f"{question} [y/N]: ").lower()
        if said in ("y", "yes"):
            return True
        if said in ("", "n", "no"):
            return False
        faults.tell(f"{said} is neither y nor n")


def choose(question: str, choices: Sequence[str]) -> str:
    """One of them, which is asked for until it is said."""
    known = ", ".join(choices)
    while True:
        said = _line(f"{question} ({known}): ")
        if said in choices:
            return said
        if said:
            faults.tell(f"{said} is none of {known}")


def _line(prompt: str) -> str:
    """What is typed; click.Abort at the end of the input, and at an interrupt."""
    click.echo(prompt, nl=False)
    try:
        _await_input()
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        raise click.Abort from None
    if not line:
        raise click.Abort
    return line.strip()


def _await_input() -> None:
    """Wait until a line can be read.

    A read that an interrupt comes just before would wait on: it is heard of when the next line is.
    """
    heard, interrupt = os.pipe()
    try:
        os.set_blocking(interrupt, False)
        former = signal.set_wakeup_fd(interrupt)
        try:
            select.select([sys.stdin, heard], [], [])
        finally:
            signal.set_wakeup_fd(former)
    finally:
        os.close(heard)
        os.close(interrupt)
