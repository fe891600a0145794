"""How every command says what is wrong: as a diagnostic is shown, `x MESSAGE` and its ways out.

A note, which is no fault, begins with `keyplane:` instead. Both go to stderr.
"""

from collections.abc import Sequence
from typing import IO, Any

import click


class UnusableError(click.UsageError):
    """What was said cannot be done as it is; with the ways out."""

    def __init__(self, message: str, *ways: str) -> None:
        super().__init__(message)
        self.ways = ways

    def show(self, file: IO[Any] | None = None) -> None:
        del file
        tell(self.message, *self.ways)


def tell(message: str, *ways: str) -> None:
    click.echo(f"{click.style('x', fg='red')} {message}", err=True)
    for way in ways:
        click.echo(f"  resolution: {way}", err=True)


def tell_of(error: click.ClickException) -> None:
    """Of what click finds wrong with a command line, the way out is how that is written."""
    if isinstance(error, UnusableError | click.exceptions.NoArgsIsHelpError):
        error.show()
    elif isinstance(error, click.UsageError) and error.ctx is not None:
        tell(_message(error), _usage(error.ctx))
    else:
        tell(_message(error))


def _message(error: click.ClickException) -> str:
    """In the tone of all others: no sentence that begins with a capital and ends with a stop."""
    match error:
        case click.NoSuchOption():
            return f"no option {error.option_name}{_instead(error.possibilities)}"
        case click.exceptions.NoSuchCommand():
            return f"no command `{error.command_name}`{_instead(error.possibilities)}"
        case _:
            pass
    said = error.format_message().removesuffix(".")
    for kind in ("a valid integer range", "a valid integer"):
        said = said.replace(f"is not {kind}", "is no whole number")
    return said[:1].lower() + said[1:]


def _instead(near: Sequence[str] | None) -> str:
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _usage(context: click.Context) -> str:
    command = context.command
    line = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    return f"write `{line}`; `{context.command_path} --help` tells of each"
